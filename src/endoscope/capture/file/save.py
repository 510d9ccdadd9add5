"""`trace.save(path)`: everything that a trace knows, in one file; see `docs/reference/trace-files.md`.

values ─► which memory, once each (written.py) ─► values.safetensors
nodes, slots, calls ─► tables (columns.py)     ─► *.arrow
all else            ─► header.json
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from endoscope import errors
from endoscope.capture.data.arguments import Placeholder, is_tensor, map_arguments
from endoscope.capture.data.nodes import Node, Position, slots_of
from endoscope.capture.data.record import Overwritten
from endoscope.capture.file.archive import FORMAT, place_for, writing
from endoscope.capture.file.columns import TABLES, from_read, to_arrow
from endoscope.capture.file.decisions import encode_decision
from endoscope.capture.file.plain import encode
from endoscope.capture.file.special import taken_apart
from endoscope.capture.file.values import CANNOT, KEPT, NOT_KEPT, OVERWRITTEN, VALUES
from endoscope.capture.file.written import CannotWrite, Tensors
from endoscope.capture.patch.torch_private import DisableTorchFunction
from endoscope.capture.record.regions import unwrapped
from endoscope.capture.views.facts import statements_of
from endoscope.capture.views.modules import module_facts
from endoscope.capture.views.trace_views import TraceViews
from endoscope.errors import BadArgument
from endoscope.schema.ops import SourceLine


def save(trace: TraceViews, path: str | os.PathLike[str], result: Callable[[], Any], origin: Any) -> Path:
    """`origin` gives target, arguments and edits of a trace that can be taken again; None for one that cannot."""
    if not trace.sealed:
        raise BadArgument("The trace is still running: call save() behind the `with endoscope.tracing()` block.")
    place = place_for(path)
    with DisableTorchFunction(), torch.no_grad():
        collected = _Collected(trace)
        tables = {"nodes": collected.nodes(), "slots": collected.slots(), "calls": collected.calls()}
        header = collected.header(result(), origin)
        with writing(place) as archive:
            with archive.part(VALUES) as file:
                sums = collected.tensors.write(file)
            for name, columns in {**tables, "tensors": {"crc": sums}}.items():
                archive.write(f"{name}.arrow", to_arrow(name, columns))
            archive.write("header.json", json.dumps(header, separators=(",", ":"), allow_nan=False).encode())
    return place


class _Collected:
    """What one trace puts into its file."""

    def __init__(self, trace: TraceViews) -> None:
        self.trace = trace
        self.record = trace.record
        self.tensors = Tensors()
        self._functions: dict[tuple[Any, ...], int] = {}
        self._lines: dict[SourceLine, int] = {}
        self._places: dict[Position, int] = {}
        self._itemsizes: dict[str, int] = {}
        self._modules = {id(module): n for n, (_, module) in enumerate(self.record.calls.addresses.values())}

    # ---- tables ----------------------------------------------------------------------------------

    def nodes(self) -> dict[str, list[Any]]:
        record, graph = self.record, self.trace.graph_data
        statements = dict(zip(graph.ops, statements_of(record, graph.ops), strict=True))
        learned = self.trace.learned or ()
        columns: dict[str, list[Any]] = {name: [] for name in TABLES["nodes"]}
        for number, node in enumerate(record.nodes):
            source, draw = record.sources.get(number), record.rng.get(number)
            edits = record.edited.get(number)
            hidden = record.hidden_reads.get(number)
            row = {
                "function": self._function(node),
                "func": None if node.func is None else _name_of(node.func),
                "arguments": self._arguments(node),
                "reads": list(map(from_read, node.reads)),
                "hidden_reads": None if hidden is None else list(map(from_read, hidden)),
                "slot": node.slot,
                "outputs": node.outputs,
                "written": node.written,
                "started": node.started,
                "ended": node.ended,
                "line": self._line(node.position),
                "call": node.call,
                "autocast": None if node.context is None else json.dumps(self._plain(node.context)),
                "grad": bool(node.grad),
                "kind": None if source is None else str(source.kind),
                "name": None if source is None else source.name,
                "sequence": number in record.sequences,
                "kept": record.chosen is None or number in record.chosen,
                "learned": number in learned,
                "statement": statements.get(number),
                "random_state": None if draw is None or draw.state is None else self._state(draw.state),
                "edits": None if edits is None else [repr(applied.edit) for applied in edits],
            }
            for name, cell in row.items():
                columns[name].append(cell)
        return columns

    def _state(self, state: Any) -> int:
        return self.tensors.add(torch.as_tensor(state)).number

    def _function(self, node: Node) -> int:
        f = node.facts
        key = (
            f.type, f.name, int(f.role),
            f.overwrites, f.random, f.replayable, f.opaque, f.reshapes, f.uncounted, f.moves,
        )  # fmt: skip
        return self._functions.setdefault(key, len(self._functions))

    def _line(self, position: Position) -> int:
        known = self._places.get(position)
        if known is None:
            line = position.line
            known = self._places[position] = -1 if line is None else self._lines.setdefault(line, len(self._lines))
        return known

    def _arguments(self, node: Node) -> str:
        """Tensors without their values; with a shape where it is not that of the value that was read."""
        reads, values = list(node.reads), self.trace.values

        def told(tensor: Any) -> Placeholder:
            slots = slots_of(reads.pop(0)) if reads else ()
            shape = values.shape_of(tensor)
            return Placeholder(None if shape is None or (slots and shape == values.shape(slots[0])) else shape)

        given = (map_arguments(tuple(node.args), told), map_arguments(node.kwargs or {}, told))
        return json.dumps(self._plain(list(given)), separators=(",", ":"))

    def _plain(self, value: Any) -> Any:
        return encode(value, _placeholder)

    def slots(self) -> dict[str, list[Any]]:
        record, values = self.record, self.trace.values
        wanted = {slot for n, node in enumerate(record.nodes) if self._is_kept(n) for slot in node.returned}
        columns: dict[str, list[Any]] = {name: [] for name in TABLES["slots"]}
        for slot, node in enumerate(record.slot_node):
            meta = values.meta(slot)
            self._itemsizes[str(meta.dtype)] = meta.dtype.itemsize
            row = {
                "node": node,
                "shape": list(meta.shape),
                "dtype": str(meta.dtype),
                "device": str(meta.device),
                "requires_grad": bool(meta.requires_grad),
                "grad_fn": meta.grad_fn,
                "elements": meta.elements,
                **(self._value(slot) if slot in wanted else {"state": NOT_KEPT}),
                **self._gradient(slot),
            }
            for name in columns:
                columns[name].append(row.get(name))
        return columns

    def _is_kept(self, node: int) -> bool:
        return self.record.chosen is None or node in self.record.chosen

    def _value(self, slot: int) -> dict[str, Any]:
        try:
            piece = self.trace.store.piece(slot)
            if piece is not None:
                number, strides = self.tensors.add_piece(piece)
                shape = None if piece.shown in (None, tuple(self.trace.values.shape(slot))) else list(piece.shown)
                return {"state": KEPT, "tensor": number, "strides": strides, "value_shape": shape}
            value = unwrapped(self.trace.values.tensor(slot))
            special = taken_apart(value)
            if special is not None:
                told, parts = special
                return {"state": KEPT, "special": json.dumps({**told, "parts": list(map(self._placed, parts))})}
            number, strides = self.tensors.add(value)
            shape = None if tuple(value.shape) == tuple(self.trace.values.shape(slot)) else list(value.shape)
            return {"state": KEPT, "tensor": number, "strides": strides, "value_shape": shape}
        except KeyError:
            return {"state": NOT_KEPT}
        except Overwritten:
            return {"state": OVERWRITTEN}
        except CannotWrite as error:
            return {"state": CANNOT, "reason": str(error)}

    def _gradient(self, slot: int) -> dict[str, Any]:
        try:
            gradient = self.trace.values.gradient(slot)
            if gradient is None:
                return {}
            gradient = torch.as_tensor(gradient)
            if gradient.layout is torch.sparse_coo:  # nn.Embedding(sparse=True)
                gradient = gradient.to_dense()
            number, strides = self.tensors.add(gradient)
            return {"gradient": number, "gradient_strides": strides}
        except (errors.ValueNotKept, CannotWrite):
            return {}

    def calls(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {name: [] for name in TABLES["calls"]}
        for call in self.record.calls.entries:
            row = {
                "module": None if call.is_function else self._modules[id(call.module)],
                "custom": call.module if call.is_function else None,
                "parent": call.parent,
                "pass": call.pass_,
                "first_node": call.first_node,
                "last_node": call.last_node,
                "entered": call.entered,
                "returned": list(map(from_read, call.returned)),
                "root": call.root,
                "line": self._line(call.position),
            }
            for name, cell in row.items():
                columns[name].append(cell)
        return columns

    # ---- header ----------------------------------------------------------------------------------

    def header(self, result: Any, origin: Any) -> dict[str, Any]:
        """To be asked last: it lists what the tables refer to."""
        trace, record = self.trace, self.record
        departures = [
            {
                "name": left.name,
                "reads": list(map(from_read, left.reads)),
                "line": self._line(left.position),
                "call": left.call,
                "control": left.control,
                "node": left.node,
                "value": self._plain(left.value),
            }
            for left in record.departures
        ]
        notices = [[n.kind, n.message, -1 if n.source is None else self._index(n.source)] for n in record.notices]
        timing = trace.timing
        return {
            "format": FORMAT,
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "name": trace.name,
            "finished": trace.finished,
            "stopped_after": trace.stopped_after,
            "seed": trace.seed,
            "save": record.save_text,
            "full": record.full,
            "gradients": self._has_gradients(),
            "timing": {name: getattr(timing, name) for name in ("started", "ended", "run", "ops")},
            "functions": [list(key) for key in self._functions],
            "lines": [[line.file, line.line, line.function] for line in self._lines],
            "modules": [
                [m.address, m.type, list(m.children), m.parameters, m.trainable, m.bytes, m.training]
                for m in module_facts(record)
            ],
            "other_names": record.calls.other_names(),
            "notices": notices,
            "departures": departures,
            "decisions": [encode_decision(found) for found in trace.decisions_by_node],
            "random": [[one.generator, self._valued(one.state), one.used] for one in trace.random],
            "result": self._valued(result),
            "origin": self._origin(origin),
            "itemsizes": self._itemsizes,
        }

    def _index(self, line: SourceLine) -> int:
        return self._lines.setdefault(line, len(self._lines))

    def _has_gradients(self) -> bool:
        try:
            self.trace.values.gradient(0)
        except errors.ValueNotKept:
            return False
        except IndexError:
            pass
        return True

    def _valued(self, value: Any) -> Any:
        """Plain data, with its tensors in the file."""
        return encode(value, self._tensor)

    def _placed(self, tensor: Any) -> dict[str, Any]:
        number, strides = self.tensors.add(tensor)
        self._itemsizes[str(tensor.dtype)] = tensor.dtype.itemsize
        return {"value": number, "dtype": str(tensor.dtype), "shape": list(tensor.shape), "strides": strides}

    def _tensor(self, value: Any) -> Any:
        is_array = isinstance(value, np.ndarray)
        if not is_array and not is_tensor(value):
            return None
        try:
            if is_array:
                found = self._placed(torch.from_numpy(np.ascontiguousarray(value)))
                return {"array": found.pop("value"), **found, "shape": list(value.shape)}
            special = taken_apart(value)
            if special is None:
                return self._placed(value)
            return {"special": {**special[0], "parts": list(map(self._placed, special[1]))}}
        except (CannotWrite, TypeError) as error:
            return {"object": f"<{error}>", "type": type(value).__name__}

    def _origin(self, origin: Any) -> Any:
        """The arguments, with which a model can be run again; only if the values that came of it are there, too."""
        if origin is None or not self.record.full:
            return None
        _, args, kwargs, changes = origin()
        if changes:  # edits are functions, which are not in a file
            return None
        inputs = self._inputs()

        def as_captured(tensor: Any) -> Any:
            """An input may have been changed in place since."""
            slot = inputs.get(id(tensor))
            try:
                return tensor if slot is None else self.trace.values.tensor(slot)
            except Overwritten:
                return tensor

        given = (map_arguments(tuple(args), as_captured), map_arguments(dict(kwargs), as_captured))
        return {"args": self._valued(given[0]), "kwargs": self._valued(given[1])}

    def _inputs(self) -> dict[int, int]:
        objects, nodes = self.trace.recorder.objects, self.record.nodes
        return {id(objects[nodes[n].slot]): nodes[n].slot for n in self.record.sources}


def _placeholder(value: Any) -> Any:
    if isinstance(value, Placeholder):
        return {"tensor": None if value.shape is None else list(value.shape)}
    return {"object": "array", "type": "ndarray"} if isinstance(value, np.ndarray) and value.ndim else None


def _name_of(func: Any) -> str:
    """torch.nn.functional.linear, Tensor.add_: a name for people; nothing looks it up."""
    owner = getattr(func, "__module__", None) or getattr(getattr(func, "__objclass__", None), "__name__", "")
    name = getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__name__
    return f"{owner}.{name}" if owner else str(name)

"""A finished trace: look-ups, tables, values.

    Recorder ─► assemble() ─► Trace ─► Op views, made once and on demand
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from endoscope.analysis.reach import children_of
from endoscope.capture.assemble import Graph, assemble
from endoscope.capture.leaves import map_arguments
from endoscope.capture.lookup import Keys
from endoscope.capture.modules import Layer, ModuleInfo, module_infos
from endoscope.capture.op import Op
from endoscope.capture.recorder import Recorder
from endoscope.capture.records import Node, slots_of
from endoscope.capture.summary import Timing, Totals
from endoscope.capture.tables import Table
from endoscope.capture.values import TensorStore
from endoscope.errors import LookupFailed
from endoscope.schema.ops import Kind, Notice


class Trace:
    """Everything that happened in one traced piece of code; see `docs/reference/trace.md`."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder = recorder
        self.name = name  # class of the target, or name of the function
        self.result: Any = None  # whatever the target returned, untouched
        self.seed: int | None = None
        self.finished = False  # False while running, and after an exception
        self.rerun: Callable[[], Any] | None = None  # runs the target again on the same inputs
        self.timing = Timing()
        self.values = TensorStore(recorder)

    # ---- parts -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def graph_data(self) -> Graph:
        return assemble(self.recorder)

    @functools.cached_property
    def _by_node(self) -> dict[int, Op]:
        graph, names = self.graph_data, self.graph_data.names
        found: dict[int, Op] = {}
        for position, node in enumerate(graph.ops):
            layer = names.layer[position]
            label, pass_ = names.label[layer], names.pass_[position]
            found[node] = Op(self, node, f"{label}:{pass_}" if names.passes[layer] > 1 else label, label, pass_)
        counts: dict[str, int] = {}
        for node in graph.orphans:
            found[node] = self._unnumbered(node, "orphan_" + self.recorder.nodes[node][0].type, counts)
        for node, source in self.recorder.sources.items():
            if node not in found:
                if source.name:
                    found[node] = Op(self, node, source.name, source.name, 1)
                else:
                    found[node] = self._unnumbered(node, str(source.kind), counts)
        return found

    def _unnumbered(self, node: int, stem: str, counts: dict[str, int]) -> Op:
        counts[stem] = counts.get(stem, 0) + 1
        label = f"{stem}_{counts[stem]}"
        return Op(self, node, label, label, 1)

    def raw(self, node: int) -> Node:
        """The node as it was heard."""
        return Node._make(self.recorder.nodes[node])

    def op_at(self, node: int) -> Op:
        return self._by_node[node]

    @functools.cached_property
    def children(self) -> list[list[int]]:
        return children_of(self.graph_data.parents)

    @functools.cached_property
    def ops(self) -> Table[Op]:
        """Inputs, then all operations and outputs in the order of execution."""
        return Table([self._by_node[n] for n in self.graph_data.ops])

    @functools.cached_property
    def kept(self) -> Table[Op]:
        """The operations whose value was kept; positions count over these."""
        return self.ops if self.recorder.full else Table([op for op in self.ops if op.kept])

    def _of_kind(self, kind: Kind) -> Table[Op]:
        nodes = [n for n, source in self.recorder.sources.items() if source.kind == kind]
        return Table([self._by_node[n] for n in nodes])

    @functools.cached_property
    def inputs(self) -> Table[Op]:
        return self._of_kind(Kind.INPUT)

    @functools.cached_property
    def outputs(self) -> Table[Op]:
        return self._of_kind(Kind.OUTPUT)

    @functools.cached_property
    def parameters(self) -> Table[Op]:
        """All parameters of the target, used or not."""
        return self._of_kind(Kind.PARAMETER)

    @functools.cached_property
    def buffers(self) -> Table[Op]:
        return self._of_kind(Kind.BUFFER)

    @functools.cached_property
    def constants(self) -> Table[Op]:
        """Tensors that existed before the trace, or came from code that could not be seen."""
        return self._of_kind(Kind.CONSTANT)

    @functools.cached_property
    def orphans(self) -> Table[Op]:
        """Operations that neither come from an input nor reach an output."""
        return Table([self._by_node[n] for n in self.graph_data.orphans])

    @functools.cached_property
    def layers(self) -> Table[Layer]:
        passes: dict[str, list[Op]] = {}
        for op in self.ops:
            passes.setdefault(op.layer, []).append(op)
        return Table([Layer(label, tuple(ops)) for label, ops in passes.items()])

    @functools.cached_property
    def modules(self) -> Table[ModuleInfo]:
        """Every module of the target (and others that ran), with calls and parameters."""
        return Table(module_infos(self))

    @functools.cached_property
    def totals(self) -> Totals:
        return Totals.of(self)

    def everything(self) -> Iterator[Op]:
        """Operations, orphans, parameters, buffers and constants."""
        yield from self.ops
        seen = set(self.graph_data.ops)
        for node, op in self._by_node.items():
            if node not in seen:
                yield op

    # ---- facts -----------------------------------------------------------------------------------------------------

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """What could not be seen."""
        return tuple(self.recorder.notices)

    @property
    def complete(self) -> bool:
        """Everything that the code computed was seen."""
        return self.finished and not self.recorder.notices

    @property
    def recurrent(self) -> bool:
        return self.max_passes > 1

    @property
    def max_passes(self) -> int:
        return max(self.graph_data.names.passes, default=0)

    @property
    def branching(self) -> bool:
        """Some operation feeds more than one other."""
        made = set(self.graph_data.ops)
        return any(len([c for c in self.children[n] if c in made]) > 1 for n in made)

    @property
    def conditional(self) -> bool:
        """Some tensor steered the control flow of Python."""
        return bool(self.conditions)

    @functools.cached_property
    def conditions(self) -> tuple[Op, ...]:
        """Operations whose value decided an `if`, `while` or the like."""
        slot_node = self.recorder.slot_node
        nodes: dict[int, None] = {}
        for departure in self.recorder.departures:
            if departure.control:
                nodes.update((slot_node[slot], None) for slot in slots_of(departure.read))
        return tuple(self._by_node[n] for n in nodes)

    @functools.cached_property
    def graph_hash(self) -> str:
        """Equal for equal architectures: types, edges and parameter shapes count, values and batch size do not."""
        graph, nodes = self.graph_data, self.recorder.nodes
        number = {node: i for i, node in enumerate(graph.ops)}
        digest = hashlib.sha256()
        for node in graph.ops:
            above = [str(number[p]) if p in number else self._signature(p) for p in graph.parents[node]]
            digest.update(f"{nodes[node][0].type}({','.join(above)})\n".encode())
        return digest.hexdigest()[:32]

    def _signature(self, node: int) -> str:
        kind = self.graph_data.kinds[node]
        if kind in (Kind.PARAMETER, Kind.BUFFER):
            meta = self.values.meta(self.recorder.nodes[node][5])
            return f"{kind}{tuple(meta.shape)}{meta.dtype}"
        return str(kind)

    # ---- look-up -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _keys(self) -> Keys:
        return Keys(self)

    def keys_of(self, op: Op) -> tuple[str, ...]:
        return self._keys.of(op)

    def passes_of(self, op: Op) -> int:
        names = self.graph_data.names
        position = self._keys.position.get(op.node)
        return names.passes[names.layer[position]] if position is not None else 1

    def position_of(self, op: Op) -> int | None:
        """Its place in `trace.ops`; None for parameters, buffers, constants and orphans."""
        return self._keys.position.get(op.node)

    def __getitem__(self, key: int | str) -> Any:
        """An operation by label, module address, parameter name or position; a layer if it has several passes."""
        if isinstance(key, int) and not isinstance(key, bool):
            return self._at_position(key)
        if isinstance(key, str):
            found = self._keys.find(key)
            if found is not None:
                return found
            raise LookupFailed(self._keys.explain(key))
        raise LookupFailed(f"{key!r} is no key: use a label, a module address, a parameter name or a position.")

    def _at_position(self, position: int) -> Op:
        kept = self.kept if not self.recorder.full and len(self.kept) else self.ops
        if not -len(kept) <= position < len(kept):
            raise LookupFailed(
                f"There is no operation at position {position}: {self.name} has {len(kept)} of them, "
                f"0 to {len(kept) - 1} or -{len(kept)} to -1."
            )
        return kept[position]

    def __contains__(self, key: object) -> bool:
        if isinstance(key, Op):
            return key._trace is self
        return isinstance(key, str) and self._keys.find(key) is not None

    def __len__(self) -> int:
        return len(self.graph_data.ops)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    # ---- arguments -----------------------------------------------------------------------------------------------------

    def returned_sequence(self, node: int) -> bool:
        """The function returned a list or tuple, even if only one tensor was in it."""
        return node in self.recorder.sequences

    def arguments_with(self, node: int, make: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Arguments of a call with each tensor replaced by `make(meta)`."""
        raw = self.raw(node)
        reads = list(raw.reads)

        def replace(tensor: Any) -> Any:
            read = reads.pop(0) if reads else -1
            slot = read if isinstance(read, int) else read[0]
            if isinstance(tensor, torch.Tensor):
                return make(tensor)
            return make(self.values.meta(slot)) if slot >= 0 else None

        return map_arguments(tuple(raw.args), replace), map_arguments(raw.kwargs or {}, replace)

    # ---- proofs, printing ------------------------------------------------------------------------------------------------

    def freeze(self) -> Trace:
        """Copy every kept value, so that later in-place changes (an optimizer step) cannot reach it."""
        self.values.freeze()
        return self

    def validate(self) -> Any:
        """Prove this trace by replay; see `endoscope.validate`."""
        import endoscope

        return endoscope.validate(self)

    def __repr__(self) -> str:
        return f"<Trace of {self.name}: {len(self)} operations{'' if self.complete else ', incomplete'}>"

    def __str__(self) -> str:
        from endoscope.capture.printing import trace_text

        return trace_text(self)

    def _repr_html_(self) -> str:
        from endoscope.capture.printing import trace_html

        return trace_html(self)

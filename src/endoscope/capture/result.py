"""A finished trace: look-ups, tables, values.

Recorder ─► assemble() ─► Trace ─► Op views, made once and on demand
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from endoscope.analysis.reach import children_of
from endoscope.capture.assemble import Graph, assemble
from endoscope.capture.decisions import Decision, decisions_of
from endoscope.capture.leaves import map_arguments
from endoscope.capture.lookup import Keys
from endoscope.capture.loops import Loop, loops_of, reused_in
from endoscope.capture.modules import Layer, ModuleInfo, module_infos
from endoscope.capture.op import Op
from endoscope.capture.recorder import Recorder
from endoscope.capture.records import Node, meta_of, slots_of
from endoscope.capture.structure import TraceGraph
from endoscope.capture.summary import Timing, Totals
from endoscope.capture.tables import OpRows, Table
from endoscope.capture.torch_private import DisableTorchFunction
from endoscope.capture.values import TensorStore
from endoscope.errors import LookupFailed
from endoscope.schema.ops import Kind, Notice


class sealed_property(functools.cached_property):  # type: ignore[type-arg]
    """Computed once the traced code has ended, anew before: a running trace can be looked at, too."""

    def __get__(self, trace: Any, owner: Any = None) -> Any:
        if trace is None or trace.sealed:
            return super().__get__(trace, owner)
        return self.func(trace)


class Trace:
    """Everything that happened in one traced piece of code; see `docs/reference/trace.md`.

    Operations refer to their trace, never the other way round for long: a trace that is dropped is freed at once,
    with all the memory it holds, without waiting for the garbage collector.
    """

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder = recorder
        self.name = name  # class of the target, or name of the function
        self.result: Any = None  # whatever the target returned, untouched
        self.seed: int | None = None
        self.finished = False  # False while running, and after an exception
        self.sealed = False  # nothing more will be heard
        self.origin: Callable[[], Any] | None = None  # gives target, arguments and edits, to run it again
        self.timing = Timing()
        self.values = TensorStore(recorder)
        self._alive: dict[int, weakref.ref[Op]] = {}

    # ---- parts -----------------------------------------------------------------------------------

    @sealed_property
    def graph_data(self) -> Graph:
        return assemble(self.recorder)

    @sealed_property
    def labels(self) -> dict[int, tuple[str, str, int]]:
        """Node -> label, layer, pass."""
        graph, names = self.graph_data, self.graph_data.names
        found: dict[int, tuple[str, str, int]] = {}
        for node, layer, pass_ in zip(graph.ops, names.layer, names.pass_, strict=True):
            label = names.label[layer]
            found[node] = (f"{label}:{pass_}" if names.passes[layer] > 1 else label, label, pass_)
        counts: dict[str, int] = {}
        orphans = {node: "orphan_" + self.recorder.nodes[node][0].type for node in graph.orphans}
        sources = {n: source.name or str(source.kind) for n, source in self.recorder.sources.items() if n not in found}
        for node, stem in (orphans | sources).items():
            counts[stem] = number = counts.get(stem, 0) + 1
            named = node in self.recorder.sources and self.recorder.sources[node].name
            label = stem if named and number == 1 else f"{stem}_{number}"
            found[node] = (label, label, 1)
        return found

    def raw(self, node: int) -> Node:
        """The node as it was heard."""
        return Node(*self.recorder.nodes[node])

    def op_at(self, node: int) -> Op:
        """The one object that stands for a node as long as anybody uses it."""
        alive = self._alive.get(node)
        op = alive() if alive is not None else None
        if op is None or not self.sealed:
            op = Op(self, node)
            self._alive[node] = weakref.ref(op)
        return op

    @sealed_property
    def children(self) -> list[list[int]]:
        return children_of(self.graph_data.parents)

    @property
    def ops(self) -> Table[Op]:
        """Inputs, then all operations and outputs in the order of execution."""
        return Table(OpRows(self, self.graph_data.ops))

    @property
    def kept(self) -> Table[Op]:
        """The operations whose value was kept; positions count over these."""
        chosen = self.recorder.chosen
        return self.ops if chosen is None else Table(OpRows(self, [n for n in self.graph_data.ops if n in chosen]))

    def _of_kind(self, kind: Kind) -> Table[Op]:
        return Table(OpRows(self, [n for n, source in self.recorder.sources.items() if source.kind == kind]))

    @property
    def inputs(self) -> Table[Op]:
        return self._of_kind(Kind.INPUT)

    @property
    def outputs(self) -> Table[Op]:
        return self._of_kind(Kind.OUTPUT)

    @property
    def parameters(self) -> Table[Op]:
        """All parameters of the target, used or not."""
        return self._of_kind(Kind.PARAMETER)

    @property
    def buffers(self) -> Table[Op]:
        return self._of_kind(Kind.BUFFER)

    @property
    def constants(self) -> Table[Op]:
        """Tensors that existed before the trace, or came from code that could not be seen."""
        return self._of_kind(Kind.CONSTANT)

    @property
    def orphans(self) -> Table[Op]:
        """Operations that neither come from an input nor reach an output."""
        return Table(OpRows(self, self.graph_data.orphans))

    @property
    def edited(self) -> Table[Op]:
        """Operations, parameters and inputs that were edited."""
        return Table(OpRows(self, sorted(self.recorder.edited)))

    @property
    def layers(self) -> Table[Layer]:
        passes: dict[str, list[Op]] = {}
        for op in self.ops:
            passes.setdefault(op.layer, []).append(op)
        return Table([Layer(label, tuple(ops)) for label, ops in passes.items()])

    @property
    def modules(self) -> Table[ModuleInfo]:
        """Every module of the target (and others that ran), with calls and parameters."""
        return Table(module_infos(self))

    @sealed_property
    def totals(self) -> Totals:
        return Totals.of(self)

    def everything(self) -> Iterator[Op]:
        """Operations, orphans, parameters, buffers and constants."""
        return map(self.op_at, self.labels)

    # ---- facts -----------------------------------------------------------------------------------

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
        """Some layer runs again on what it made before."""
        return bool(self.graph_data.recurrence.loops)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Layers that run again on what they made before, outer loops before inner ones."""
        return loops_of(self)

    @property
    def reused(self) -> Table[Layer]:
        """Layers that run several times but in no loop, and parameters that several layers compute with."""
        return Table(reused_in(self))

    @property
    def max_passes(self) -> int:
        """How often a layer runs at most."""
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

    @property
    def conditions(self) -> tuple[Op, ...]:
        """Operations whose value decided an `if`, `while` or the like."""
        slot_node = self.recorder.slot_node
        nodes: dict[int, None] = {}
        for departure in self.recorder.departures:
            if departure.control:
                nodes.update((slot_node[slot], None) for read in departure.reads for slot in slots_of(read))
        return tuple(map(self.op_at, nodes))

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every time a value of a tensor chose a branch: which test, which branch, which operations."""
        return tuple(decisions_of(self))

    @property
    def graph_hash(self) -> str:
        """Equal for equal architectures; the same as `graph.hash`."""
        return self.graph.hash

    @property
    def graph(self) -> TraceGraph:
        """The structure as data: ancestors, paths, selection, contraction, hash."""
        return TraceGraph(self, self._graph_cache)

    @sealed_property
    def _graph_cache(self) -> dict[str, Any]:
        """What graphs have worked out; a graph itself, kept here, would hold the trace in a circle."""
        return {}

    # ---- look-up ---------------------------------------------------------------------------------

    @sealed_property
    def _keys(self) -> Keys:
        return Keys(self)

    def keys_of(self, op: Op) -> tuple[str, ...]:
        return tuple(self._keys.of(self, op))

    def passes_of(self, op: Op) -> int:
        names = self.graph_data.names
        position = self._keys.position.get(op.node)
        return names.passes[names.layer[position]] if position is not None else 1

    def position_of(self, op: Op) -> int | None:
        """Its place in `trace.ops`; None for parameters, buffers, constants and orphans."""
        position: int | None = self._keys.position.get(op.node)
        return position

    def __getitem__(self, key: int | str) -> Any:
        """An operation by label, module address, parameter name or position; a layer if it has several passes."""
        if isinstance(key, int) and not isinstance(key, bool):
            return self._at_position(key)
        if isinstance(key, str):
            found = self._keys.find(self, key)
            if found is not None:
                return found
            raise LookupFailed(self._keys.explain(self, key))
        raise LookupFailed(f"{key!r} is no key: use a label, a module address, a parameter name or a position.")

    def _at_position(self, position: int) -> Op:
        kept = self.kept or self.ops
        if not -len(kept) <= position < len(kept):
            raise LookupFailed(
                f"There is no operation at position {position}: {self.name} has {len(kept)} of them, "
                f"0 to {len(kept) - 1} or -{len(kept)} to -1."
            )
        return kept[position]

    def __contains__(self, key: object) -> bool:
        if isinstance(key, Op):
            return key._trace is self
        return isinstance(key, str) and self._keys.find(self, key) is not None

    def __len__(self) -> int:
        return len(self.graph_data.ops)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    # ---- arguments -------------------------------------------------------------------------------

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
                return make(meta_of(tensor))
            return make(self.values.meta(slot)) if slot >= 0 else None

        return map_arguments(tuple(raw.args), replace), map_arguments(raw.kwargs or {}, replace)

    def seal(self) -> None:
        """The traced code has ended: from now on what is derived is kept."""
        self.sealed = True
        self._alive.clear()
        self.graph_data  # noqa: B018  built now: a trace is complete when it is handed out, but for its names

    def with_values_of(self, recorder: Recorder) -> Trace:
        """A trace of the same structure, which is shared, with other values."""
        other = Trace(recorder, self.name)
        other.seed, other.finished, other.sealed, other.timing = self.seed, self.finished, self.sealed, self.timing
        for name in ("graph_data", "labels", "_keys", "children"):
            other.__dict__[name] = getattr(self, name)
        return other

    def __reduce__(self) -> Any:
        # An exception that carries a trace must still travel between processes; tensors and code do not.
        return str, (repr(self),)

    def __deepcopy__(self, memo: Any) -> Trace:
        return self

    # ---- proofs, printing ------------------------------------------------------------------------

    def freeze(self) -> Trace:
        """Copy every kept value, so that later in-place changes (an optimizer step) cannot reach it."""
        self.values.freeze()
        return self

    def draw(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rolled: bool = False,
        depth: int | None = None,
        module: str | None = None,
        direction: str = "down",
        fold: bool = True,
    ) -> Any:
        """Draw the graph to an SVG, PNG, PDF or DOT file; without a path return the DOT source."""
        from endoscope.capture.draw import draw

        return draw(self, path, rolled=rolled, depth=depth, module=module, direction=direction, fold=fold)

    def rerun(self, edit: Mapping[Any, Any]) -> Trace:
        """The trace as it would be with an edit: only what lies downstream is computed; see `endoscope.rerun`."""
        import endoscope

        return endoscope.rerun(self, edit)

    def validate(self) -> Any:
        """Prove this trace by replay; see `endoscope.validate`."""
        import endoscope

        return endoscope.validate(self)

    def __repr__(self) -> str:
        return f"<Trace of {self.name}: {len(self)} operations{'' if self.complete else ', incomplete'}>"

    def __str__(self) -> str:
        from endoscope.capture.printing import trace_text

        with DisableTorchFunction():
            return trace_text(self)

    def _repr_html_(self) -> str:
        from endoscope.capture.printing import trace_html

        with DisableTorchFunction():
            return trace_html(self)

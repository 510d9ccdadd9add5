"""A trace with operations, layers and modules in the place of numbers: tables, facts and look-ups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from endoscope.analysis.branching.branches import Decision
from endoscope.capture.data.nodes import RandomState
from endoscope.capture.data.record import Record, Values
from endoscope.capture.views.decisions import decisions_of
from endoscope.capture.views.loops import Loop, loops_of, reused_in
from endoscope.capture.views.modules import Layer, ModuleInfo, found_by_key, module_infos
from endoscope.capture.views.op import Op, kept_nodes, op_at, op_at_position, ops_at
from endoscope.capture.views.structure import TraceGraph
from endoscope.capture.views.summary import Timing, Totals, totals_of
from endoscope.capture.views.tables import Table
from endoscope.capture.views.trace_data import TraceData, sealed_property
from endoscope.errors import LookupFailed
from endoscope.schema.ops import Kind


class TraceViews(TraceData):
    """What can be asked of a trace; see `docs/reference/trace.md`."""

    def __init__(self, record: Record, values: Values, name: str) -> None:
        super().__init__(record, values, name)
        self.seed: int | None = None
        self.finished = False  # False while running, after an exception, and where it was stopped
        self.stopped_after: str | None = None  # the module at which the run was ended on purpose
        self.timing = Timing()
        self.random: tuple[RandomState, ...] = ()  # every random generator as it was when the traced code began

    # ---- tables ----------------------------------------------------------------------------------

    @property
    def ops(self) -> Table[Op]:
        """Inputs, then all operations and outputs in the order of execution."""
        return ops_at(self, self.graph_data.ops)

    @property
    def kept(self) -> Table[Op]:
        """The operations whose value was kept; positions count over these."""
        return ops_at(self, kept_nodes(self))

    @property
    def inputs(self) -> Table[Op]:
        return ops_at(self, self.of_kind(Kind.INPUT))

    @property
    def outputs(self) -> Table[Op]:
        return ops_at(self, self.of_kind(Kind.OUTPUT))

    @property
    def parameters(self) -> Table[Op]:
        """All parameters of the target, used or not."""
        return ops_at(self, self.of_kind(Kind.PARAMETER))

    @property
    def buffers(self) -> Table[Op]:
        return ops_at(self, self.of_kind(Kind.BUFFER))

    @property
    def constants(self) -> Table[Op]:
        """Tensors that existed before the trace, or came from code that could not be seen."""
        return ops_at(self, self.of_kind(Kind.CONSTANT))

    @property
    def orphans(self) -> Table[Op]:
        """Operations that neither come from an input nor reach an output."""
        return ops_at(self, self.graph_data.orphans)

    @property
    def edited(self) -> Table[Op]:
        """Operations, parameters and inputs that were edited."""
        return ops_at(self, sorted(self.record.edited))

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

    def everything(self) -> Iterator[Op]:
        """Operations, orphans, parameters, buffers and constants."""
        return map(self.op_at, self.labels)

    # ---- facts -----------------------------------------------------------------------------------

    @sealed_property
    def totals(self) -> Totals:
        return totals_of(self)

    @property
    def complete(self) -> bool:
        """Everything that the code computed was seen."""
        return self.finished and not self.warnings

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
        return bool(self.conditions_by_node)

    @property
    def conditions(self) -> tuple[Op, ...]:
        """Operations whose value decided an `if`, `while` or the like."""
        return tuple(map(self.op_at, self.conditions_by_node))

    @property
    def decisions(self) -> tuple[Decision[Op], ...]:
        """Every time a value of a tensor chose a branch: which test, which branch, which operations."""
        return tuple(decisions_of(self))

    @property
    def graph(self) -> TraceGraph:
        """The structure as data: ancestors, paths, selection, contraction, hash."""
        return TraceGraph(self, self.caches)

    @property
    def graph_hash(self) -> str:
        """Equal for equal architectures; the same as `graph.hash`."""
        return self.graph.hash

    # ---- look-up ---------------------------------------------------------------------------------

    def op_at(self, node: int) -> Op:
        return op_at(self, node)

    def position_of(self, op: Op) -> int | None:
        """Its place in `trace.ops`; None for parameters, buffers, constants and orphans."""
        return self.keys.position.get(op.node)

    def __getitem__(self, key: int | str) -> Any:
        """An operation by label, module address, parameter name or position; a layer if it has several passes."""
        if isinstance(key, int) and not isinstance(key, bool):
            return op_at_position(self, key)
        if not isinstance(key, str):
            raise LookupFailed(f"{key!r} is no key: use a label, a module address, a parameter name or a position.")
        found = found_by_key(self, key)
        if found is None:
            raise LookupFailed(self.keys.explain(key, self.name))
        return found

    def __contains__(self, key: object) -> bool:
        if isinstance(key, Op):
            return key._trace is self
        return isinstance(key, str) and self.keys.find(key) is not None

    def __len__(self) -> int:
        return len(self.graph_data.ops)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __repr__(self) -> str:
        return f"<Trace of {self.name}: {len(self)} operations{'' if self.complete else ', incomplete'}>"

"""`trace.graph`: the questions of `analysis/structure/graph_questions.py`, answered with operations of a trace.

A graph refers to its trace, never the other way round: what was worked out is kept in the trace as plain data, so a
trace that is dropped is freed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from endoscope.analysis.structure.contract import Links, contract, contract_links
from endoscope.analysis.structure.graph_questions import Questions
from endoscope.capture.data.calls import OUTSIDE
from endoscope.capture.data.nodes import Position, slots_of
from endoscope.capture.views.modules import Layer, found_by_key
from endoscope.capture.views.op import Op, op_at_position, ops_at
from endoscope.capture.views.reads import named_reads
from endoscope.capture.views.settings import RESHAPING, settings_text
from endoscope.capture.views.tables import Table
from endoscope.capture.views.trace_data import TraceData
from endoscope.capture.views.unheard import unheard
from endoscope.errors import LookupFailed
from endoscope.schema.graph import GraphNode, Use
from endoscope.schema.ops import SourceLine


class TraceGraph(Questions[Op]):
    """All nodes of a trace, or those that a contraction chose."""

    def __init__(self, trace: TraceData, cache: dict[str, Any]) -> None:
        """`cache` is kept by the trace."""
        super().__init__(trace.name, trace.graph_data.parents, cache)
        self._trace = trace
        self._whole: TraceGraph | None = None  # what this one was contracted from
        self._members: Sequence[int] = range(len(self._parents))  # number here -> number in the trace
        self._place: dict[int, int] | None = None  # the reverse; None if the numbers are the same

    def contract(self, nodes: Any) -> TraceGraph:
        chosen = self._chosen(nodes)
        part = TraceGraph(self._trace, {})
        part._whole = self
        part._parents = contract(self._parents, chosen)
        part._cache["chosen"] = chosen
        part._members = [self._members[number] for number in chosen]
        part._place = {node: number for number, node in enumerate(part._members)}
        return part

    # ---- keys ------------------------------------------------------------------------------------

    def _lookup(self, key: Any) -> list[int] | None:
        ops = self._ops_behind(key)
        if ops is None:
            return None
        foreign = [op for op in ops if op._trace is not self._trace]
        if foreign:
            raise LookupFailed(
                f"{foreign[0].label} belongs to another trace, of {foreign[0]._trace.name}. Use a label instead: "
                f"{foreign[0].label!r}."
            )
        if self._place is None:
            return [op.node for op in ops]
        found = [self._place[op.node] for op in ops if op.node in self._place]
        if not found:
            labels = [op.label for op in self._give(range(min(5, len(self))))]
            told = ", ".join([*labels, "…"] if len(labels) < len(self) else labels)
            raise LookupFailed(
                f"{ops[0].label} is no node of this contracted graph, which has {len(self)}: {told}. "
                "Ask trace.graph, or contract to a set that has it."
            )
        return found

    def _ops_behind(self, key: Any) -> Sequence[Op] | None:
        if isinstance(key, Op):
            return [key]
        if isinstance(key, Layer):
            return key.ops
        if isinstance(key, int) and not isinstance(key, bool):
            return [op_at_position(self._trace, key)]
        found = found_by_key(self._trace, key) if isinstance(key, str) else None
        return None if found is None else found.ops if isinstance(found, Layer) else [found]

    def _give(self, numbers: Sequence[int]) -> Table[Op]:
        return ops_at(self._trace, [self._members[number] for number in numbers])

    def _calls(self, number: int) -> tuple[str, ...]:
        return self._facts.calls(self._trace.raw(self._members[number]).call)

    # ---- plain data ------------------------------------------------------------------------------

    @property
    def _facts(self) -> _Facts:
        if "facts" not in self._cache:
            self._cache["facts"] = _Facts(self._trace)
        found: _Facts = self._cache["facts"]
        return found

    def _make_records(self) -> list[GraphNode]:
        if self._whole is not None:
            records = self._whole._records
            return [records[number] for number in self._cache["chosen"]]
        with unheard():  # a running trace must not record that it is looked at
            return [self._record(op) for op in self.nodes]

    def _record(self, op: Op) -> GraphNode:
        raw, facts = self._trace.raw(op.node), self._facts
        type_ = raw.facts.type
        shapes = tuple([facts.shape(slot) for slot in raw.returned])
        change = None
        if type_ in RESHAPING and raw.reads and shapes:
            change = (facts.shape(slots_of(raw.reads[0])[-1]), shapes[0])
        return GraphNode(
            number=op.node,
            label=op.label,
            type=type_,
            kind=str(self._trace.graph_data.kinds[op.node]),
            keys=op.keys,
            shapes=shapes,
            calls=facts.calls(raw.call),
            source=facts.source(raw.position),
            settings=settings_text(type_, raw.args, raw.kwargs, change, facts.left),
        )

    def _make_links(self) -> Links:
        if self._whole is not None:
            return contract_links(self._whole._links, self._cache["chosen"])
        with unheard():
            return [self._links_of(node, above) for node, above in enumerate(self._parents)]

    def _links_of(self, node: int, above: Sequence[int]) -> list[tuple[int, tuple[Use, ...]]]:
        """What one node reads, by parent: through which argument, and which of the parent's outputs."""
        record = self._trace.record
        uses: dict[int, dict[Use, None]] = {parent: {} for parent in above}
        for read, place in named_reads(record, node):
            for slot in slots_of(read):
                parent = record.slot_node[slot]
                uses[parent][place, slot - record.nodes[parent].slot] = None
        return [(parent, tuple(own)) for parent, own in uses.items()]


class _Facts:
    """Facts that many nodes share, each worked out once."""

    def __init__(self, trace: TraceData) -> None:
        self._record = record = trace.record
        self._values = trace.values
        self._calls: dict[int, tuple[str, ...]] = {OUTSIDE: ()}
        self._sources: dict[Position, SourceLine | None] = {}
        #: Numbers that left tensors for Python; whole ones are too common to be recognised again.
        self.left = frozenset(d.value for d in record.departures if isinstance(d.value, float) and d.value % 1)

    def calls(self, call: int) -> tuple[str, ...]:
        """Calls of modules around a call, itself included, outermost first."""
        if call not in self._calls:
            around = self._record.calls.modules_around(call)
            self._calls[call] = tuple([f"{address}:{pass_}" for address, pass_ in around])
        return self._calls[call]

    def shape(self, slot: int) -> tuple[int, ...]:
        """Asks for nothing else: after a look at `grad_fn`, torch cannot let go of a long chain without recursion."""
        return self._values.shape(slot)

    def source(self, position: Position) -> SourceLine | None:
        if position not in self._sources:
            self._sources[position] = position.line
        return self._sources[position]

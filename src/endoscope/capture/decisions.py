"""Decisions of the traced code: which `if`, `while`, ... a value of a tensor steered, and what ran because of it.

departures, operations, calls ─► analysis/branches.py (plain data) ─► the same with operations instead of numbers
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from endoscope.analysis import branches as analysis
from endoscope.analysis.timeline import Asked, CallSite, Ran
from endoscope.capture.op import Op, op_at
from endoscope.capture.records import slots_of
from endoscope.capture.trace_data import TraceData
from endoscope.schema.ops import Kind


@dataclass(frozen=True, slots=True)
class Decision:
    """One evaluation of a test by a value from a tensor."""

    test: Any  # kind, text and lines of the construct; or why it could not be found
    value: Any  # what Python got; None if that is not known
    branch: str  # then, elif 1, else, body, ...; "nothing" if none ran, "unknown" if nobody can say
    settled: bool  # this value alone chose the branch
    nth: int  # the n-th time this was asked, from 1
    steering: tuple[Op, ...]  # operations whose value was asked
    test_ops: tuple[Op, ...]  # operations that served only this test
    starts: tuple[Op, ...]  # those of them where the test leaves the main path
    branch_ops: tuple[Op, ...]  # operations of the branch that ran

    def __str__(self) -> str:
        return f"{self.test}: {self.value} -> {self.branch}"


def decisions_of(trace: TraceData) -> list[Decision]:
    def ops(nodes: Iterable[int]) -> tuple[Op, ...]:
        return tuple([op_at(trace, node) for node in nodes])

    return [
        Decision(
            found.test, found.value, found.branch, found.settled, found.nth,
            ops(found.steering), ops(found.test_nodes), ops(found.starts), ops(found.branch_nodes),
        )
        for found in decisions_by_node(trace)
    ]  # fmt: skip


def decisions_by_node(trace: TraceData) -> list[analysis.Decision]:
    recorder, graph, last = trace.recorder, trace.graph_data, len(trace.recorder.nodes)
    asked = [
        Asked(
            left.node,
            tuple(recorder.slot_node[slot] for read in left.reads for slot in slots_of(read)),
            left.value,
            *left.position,
            left.name,
            left.call,
            left.callers,
        )
        for left in recorder.departures
    ]
    made = (Kind.COMPUTED, Kind.GENERATED)
    ran = [Ran(n, *raw.position) for n, raw in enumerate(recorder.nodes) if graph.kinds[n] in made]
    calls = [
        CallSite(call.first_node, last if call.last_node is None else call.last_node, *call.position)
        for call in recorder.calls.entries
    ]
    return analysis.branches(asked, ran, graph.parents, graph.to_output, calls)

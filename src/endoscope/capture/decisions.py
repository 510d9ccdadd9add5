"""Decisions of the traced code: which `if`, `while`, ... a value of a tensor steered, and what ran because of it.

departures, operations, calls ─► analysis/branches.py (plain data) ─► the same with operations instead of numbers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from endoscope.analysis import branches as analysis
from endoscope.analysis.timeline import Asked, CallSite, Heard
from endoscope.capture.records import slots_of
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.op import Op
    from endoscope.capture.result import Trace


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


def decisions_of(trace: Trace) -> list[Decision]:
    return [_with_ops(trace, decision) for decision in decisions_by_node(trace)]


def decisions_by_node(trace: Trace) -> list[analysis.Decision]:
    recorder, graph = trace.recorder, trace.graph_data
    asked = [
        Asked(
            left.node,
            tuple(recorder.slot_node[slot] for read in left.reads for slot in slots_of(read)),
            left.value,
            left.code,
            left.instruction,
            left.name,
            left.call,
            left.callers,
        )
        for left in recorder.departures
    ]
    made = (Kind.COMPUTED, Kind.GENERATED)
    heard = [Heard(n, raw[10], raw[11]) for n, raw in enumerate(recorder.nodes) if graph.kinds[n] in made]
    last = len(recorder.nodes)
    calls = [
        CallSite(call.first_node, call.last_node if call.last_node >= 0 else last, *call.position)
        for call in recorder.calls.entries
    ]
    return analysis.branches(asked, heard, graph.parents, graph.to_output, calls)


def _with_ops(trace: Trace, decision: analysis.Decision) -> Decision:
    def ops(nodes: tuple[int, ...]) -> tuple[Op, ...]:
        return tuple(map(trace.op_at, nodes))

    return Decision(
        decision.test,
        decision.value,
        decision.branch,
        decision.settled,
        decision.nth,
        ops(decision.steering),
        ops(decision.test_nodes),
        ops(decision.starts),
        ops(decision.branch_nodes),
    )

"""Which `if`, `while`, … of the traced code a value of a tensor steered, and what ran because of it.

departures, operations, calls ─► analysis/branching/branches.py, by number ─► the same with operations
"""

from __future__ import annotations

from collections.abc import Iterable

from endoscope.analysis.branching.branches import Decision, branches
from endoscope.analysis.branching.timeline import Asked, CallSite, Ran
from endoscope.capture.record.records import slots_of
from endoscope.capture.views.op import Op, op_at
from endoscope.capture.views.trace_data import TraceData
from endoscope.schema.ops import Kind


def decisions_of(trace: TraceData) -> list[Decision[Op]]:
    return [_with_ops(trace, found) for found in decisions_by_node(trace)]


def _with_ops(trace: TraceData, found: Decision[int]) -> Decision[Op]:
    def ops(nodes: Iterable[int]) -> tuple[Op, ...]:
        return tuple([op_at(trace, node) for node in nodes])

    return Decision(
        found.test, found.value, found.branch, found.settled, found.nth, found.node,
        ops(found.steering), ops(found.test_ops), ops(found.starts), ops(found.branch_ops),
    )  # fmt: skip


def decisions_by_node(trace: TraceData) -> list[Decision[int]]:
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
    return branches(asked, ran, graph.parents, graph.to_output, calls)

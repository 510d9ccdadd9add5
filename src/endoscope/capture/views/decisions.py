"""Which `if`, `while`, … of the traced code a value of a tensor steered, and what ran because of it.

asked.py, by number ─► the same with operations
"""

from __future__ import annotations

from collections.abc import Iterable

from endoscope.analysis.branching.branches import Decision
from endoscope.capture.views.op import Op, op_at
from endoscope.capture.views.trace_data import TraceData


def decisions_of(trace: TraceData) -> list[Decision[Op]]:
    return [_with_ops(trace, found) for found in trace.decisions_by_node]


def _with_ops(trace: TraceData, found: Decision[int]) -> Decision[Op]:
    def ops(nodes: Iterable[int]) -> tuple[Op, ...]:
        return tuple([op_at(trace, node) for node in nodes])

    return Decision(
        found.test, found.value, found.branch, found.settled, found.nth, found.node,
        ops(found.steering), ops(found.test_ops), ops(found.starts), ops(found.branch_ops),
    )  # fmt: skip

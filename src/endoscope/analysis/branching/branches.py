"""Decisions: each time a tensor answered a test, with the branch that ran and the operations of both.

values that left torch ─► conditionals.locate_all ─► Test
operations with their places in the source ─► runs.py ─► which branch ran, and what in it
parents of every node ─► the operations that served only the test
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from endoscope.analysis.branching.conditionals import UNSETTLED, Test, Unlocated, locate_all
from endoscope.analysis.branching.runs import UNKNOWN, Runs
from endoscope.analysis.branching.timeline import Asked, CallSite, Ran

__all__ = ["UNKNOWN", "Asked", "CallSite", "Decision", "Ran", "branches"]


Item = TypeVar("Item")  # how a node is told: by its number, or as an operation


@dataclass(frozen=True, slots=True)
class Decision(Generic[Item]):
    """One evaluation of a test by a value from a tensor."""

    test: Test | Unlocated  # kind, text and lines of the construct; or why it could not be found
    value: Any  # what Python got, of the part that was asked; None if not known
    branch: str  # the branch that ran: then, elif 1, else, body, …; "nothing" if none, "unknown" if nobody can say
    settled: bool  # this value alone chose the branch; False if a later part of the test was asked, too
    nth: int  # the n-th time this was asked, from 1
    node: int  # how many nodes there were before; the branch begins here or later
    steering: tuple[Item, ...]  # operations whose value was asked
    test_ops: tuple[Item, ...]  # operations that served only this test, since it was last asked
    starts: tuple[Item, ...]  # those of them where the test leaves the main path: the paper's IF
    branch_ops: tuple[Item, ...]  # operations of the branch that ran

    def __str__(self) -> str:
        return f"{self.test}: {self.value} -> {self.branch}"


def branches(
    asked: Sequence[Asked],
    ran: Sequence[Ran],
    parents: Sequence[Sequence[int]],
    to_output: Sequence[int],
    calls: Sequence[CallSite] = (),
) -> list[Decision[int]]:
    """All decisions of a trace, in order of time.

    `ran` are the operations in order; `parents` and `to_output` (does the node reach an output) are by node.
    Values that leave torch without steering anything are left out.
    """
    tests = _locate_each(asked)
    runs = Runs(asked, ran, calls, tests)
    told = [runs.told(number) for number in reversed(range(len(asked)))]
    served = _Served([item.node for item in ran], parents, to_output)
    counts: dict[Any, int] = {}
    decisions = []
    for value, outcomes in zip(asked, reversed(told), strict=True):
        for test, run in outcomes:
            key = _key(value, test)
            counts[key] = counts.get(key, 0) + 1
            nodes, starts = served.by(key, value.steering)
            settled = isinstance(test, Test) and test.leads_to(value.value) != UNSETTLED and run.branch != UNKNOWN
            decisions.append(
                Decision(
                    test, value.value, run.branch, settled, counts[key], value.node, value.steering, nodes, starts,
                    run.nodes,
                )
            )  # fmt: skip
    return decisions


def _locate_each(asked: Sequence[Asked]) -> list[tuple[Test | Unlocated, ...]]:
    """The tests of each value; found once for each place in the code."""
    known: dict[Any, tuple[Test, ...] | Unlocated] = {}
    tests: list[tuple[Test | Unlocated, ...]] = []
    for value in asked:
        key = (id(value.code), value.instruction, value.leaving, tuple((id(c), i) for c, i in value.callers))
        if key not in known:
            known[key] = locate_all(value.code, value.instruction, leaving=value.leaving, callers=value.callers)
        found = known[key]
        if not isinstance(found, Unlocated):
            tests.append(found)
        else:
            tests.append((found,) if value.steers else ())
    return tests


def _key(value: Asked, test: Test | Unlocated) -> Any:
    if isinstance(test, Test):
        return test.file, test.function, test.construct, test.asked_span
    return id(value.code), value.instruction


# ---- which operations serve a test --------------------------------------------------------------------------------


class _Served:
    """Ancestors of a steering node that do not reach an output, each counted once per test."""

    def __init__(self, ops: Sequence[int], parents: Sequence[Sequence[int]], to_output: Sequence[int]) -> None:
        self.parents = parents
        self.to_output = to_output
        self.is_op = bytearray(len(parents))
        for node in ops:
            self.is_op[node] = 1
        self._counted: dict[Any, set[int]] = {}

    def by(self, key: Any, steering: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        counted = self._counted.setdefault(key, set())
        nodes: set[int] = set()
        waiting = list(steering)
        while waiting:
            node = waiting.pop()
            if self.is_op[node] and not self.to_output[node] and node not in counted:
                counted.add(node)
                nodes.add(node)
                waiting.extend(self.parents[node])
        return tuple(sorted(nodes)), tuple(sorted(node for node in nodes if self._starts(node, nodes)))

    def _starts(self, node: int, nodes: set[int]) -> bool:
        above = self.parents[node]
        return any(self.to_output[p] for p in above) or not any(p in nodes for p in above)

"""Which branch ran, and which operations belong to a test and to its branch.

    values that left torch ─► conditionals.locate ─► Test
    operations with source positions ─► timeline ─► which branch ran, and until when
    parents of every node ─► the operations that only served the test

An operation belongs to a branch if its line lies in the branch, or if it was heard in a function called from there.
Calls of modules are known; other functions are judged by time: what is heard between two lines of the branch
belongs to it, what comes after its last line only if a call is left in the branch that can have caused it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from endoscope.analysis.conditionals import NOTHING, UNSETTLED, Branch, Test, Unlocated, locate_all
from endoscope.analysis.syntax import Span, home_of
from endoscope.analysis.timeline import Asked, CallSite, Event, Heard, Home, Timeline

__all__ = ["UNKNOWN", "Asked", "CallSite", "Decision", "Heard", "branches"]

#: Instead of the name of a branch: nothing that was heard tells which one ran.
UNKNOWN = "unknown"
_END = 1 << 62


@dataclass(frozen=True, slots=True)
class Decision:
    """One evaluation of a test by a value from a tensor."""

    test: Test | Unlocated
    value: Any  # of the part that was asked; None if not known
    branch: str  # the branch that ran: then, elif 1, else, body, …; "nothing" if none, "unknown" if nobody can say
    settled: bool  # this value alone chose the branch; False if a later part of the test was asked, too
    nth: int  # the n-th time this was asked, from 1
    node: int  # nodes heard before; the branch begins here or later
    steering: tuple[int, ...]  # nodes whose value was asked
    test_nodes: tuple[int, ...]  # operations that served only this test, since it was last asked
    starts: tuple[int, ...]  # those of them where the test leaves the main path: the paper's IF
    branch_nodes: tuple[int, ...]  # operations of the branch that ran

    def __str__(self) -> str:
        return f"{self.test}: {self.value} -> {self.branch}"


def branches(
    asked: Sequence[Asked],
    heard: Sequence[Heard],
    parents: Sequence[Sequence[int]],
    to_output: Sequence[int],
    calls: Sequence[CallSite] = (),
) -> list[Decision]:
    """All decisions of a trace, in order of time.

    `heard` are the operations in order; `parents` and `to_output` (does the node reach an output) are by node.
    Values that leave torch without steering anything are left out.
    """
    tests = _locate_each(asked)
    runs = _Runs(asked, heard, calls, tests)
    told = [runs.told(number) for number in reversed(range(len(asked)))]
    served = _Served([item.node for item in heard], parents, to_output)
    counts: dict[Any, int] = {}
    decisions = []
    for value, outcomes in zip(asked, reversed(told), strict=True):
        for test, run in outcomes:
            key = _key(value, test)
            counts[key] = counts.get(key, 0) + 1
            nodes, starts = served.by(key, value.steering)
            settled = (
                isinstance(test, Test) and test.leads_to(value.value) != UNSETTLED and run.branch != UNKNOWN
            )
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
            known[key] = locate_all(
                value.code, value.instruction, leaving=value.leaving, callers=value.callers
            )
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

    def __init__(
        self, ops: Sequence[int], parents: Sequence[Sequence[int]], to_output: Sequence[int]
    ) -> None:
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


# ---- which branch runs, and what in it ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    branch: str
    nodes: tuple[int, ...] = ()


@dataclass(slots=True)
class _Stay:
    """How long the function that holds a test stays on the stack, as far as that is known."""

    home: Home
    returned_to: list[Home] = field(default_factory=list)  # whoever is heard of these, it has returned
    last: int = _END  # it has returned before this node


class _Runs:
    def __init__(
        self,
        asked: Sequence[Asked],
        heard: Sequence[Heard],
        calls: Sequence[CallSite],
        tests: Sequence[Sequence[Test | Unlocated]],
    ) -> None:
        self.asked, self.heard, self.calls, self.tests = asked, heard, calls, tests
        self.nodes = [item.node for item in heard]
        homes = {(t.file, t.function) for each in tests for t in each if isinstance(t, Test)}
        around = {id(code): home_of(code) for value in asked for code, _ in value.callers}
        self.time = Timeline(asked, heard, calls, homes | set(around.values()))
        self._caller_homes = {key: home for key, home in around.items() if self.time.knows(home)}
        self._again = self._asked_again()
        self._known: dict[tuple[int, int], _Run] = {}

    def _asked_again(self) -> dict[tuple[int, Span], int]:
        """Number of a value and one of its constructs -> the node at which that is asked the next time."""
        following: dict[tuple[str, Span], int] = {}
        found = {}
        for number in reversed(range(len(self.asked))):
            for test in self.tests[number]:
                if isinstance(test, Test):
                    key = (test.file, test.construct)
                    found[number, test.construct] = following.get(key, _END)
                    following[key] = self.asked[number].node
        return found

    def told(self, number: int) -> list[tuple[Test | Unlocated, _Run]]:
        """What one value chose. Ask for the last value first: a part of a test is told by the parts asked after it.

        Of tests that may have looked at it later on, those count that are known to have done so, or else the first.
        """
        outcomes = [
            (test, self.of(number, test) if isinstance(test, Test) else _Run(UNKNOWN))
            for test in self.tests[number]
        ]
        sure = [
            (t, run) for t, run in outcomes if run.branch != UNKNOWN or not isinstance(t, Test) or t.certain
        ]
        return sure or outcomes[:1]

    def of(self, number: int, test: Test) -> _Run:
        known = self._known.get((number, id(test)))
        if known is None:
            known = self._known[number, id(test)] = self._run(number, test)
        return known

    def _run(self, number: int, test: Test) -> _Run:
        value = self.asked[number].value
        name = test.leads_to(value)
        if name == UNSETTLED:
            run = self._evidence(number, test)
            name = test.leads_to(value, exhausted=True) if run.branch == UNKNOWN else UNSETTLED
            if name == UNSETTLED:
                return run
        if name == NOTHING:
            return _Run(name if test.certain else UNKNOWN)
        return self._chosen(number, test, name)

    def _chosen(self, number: int, test: Test, name: str) -> _Run:
        """The branch is known; what was heard of it?"""
        branch = test.branch(name)
        when = self.time.when_asked[number]
        stay = self._stay(number, test)
        if test.by_name:
            first = next((e for e in self._events(number, test, stay) if _inside(branch, e.span)), None)
            if first is None:
                return _Run(name if test.certain else UNKNOWN)
            return _Run(name, self._window(test, branch, first.when - 1, first.first, stay))
        return _Run(name, self._window(test, branch, when, self.asked[number].node, stay))

    def _evidence(self, number: int, test: Test) -> _Run:
        """The value does not tell: see what is heard next in the same function."""
        stay = self._stay(number, test)
        for event in self._events(number, test, stay):
            other = self._same_construct(event, test)
            if other is not None:
                goes_on = other.asked_span > test.asked_span or (
                    test.repeats and other.asked_span == test.asked_span
                )
                return self.of(event.asked, other) if goes_on else _Run(UNKNOWN)
            for branch in test.branches:
                if _inside(branch, event.span):
                    return _Run(branch.name, self._window(test, branch, event.when - 1, event.first, stay))
            if not test.by_name and not test.construct.covers(event.span):
                break
        return _Run(UNKNOWN)

    def _same_construct(self, event: Event, test: Test) -> Test | None:
        if event.asked < 0:
            return None
        same = (t for t in self.tests[event.asked] if isinstance(t, Test) and t.construct == test.construct)
        return next((t for t in same if t.file == test.file), None)

    def _events(self, number: int, test: Test, stay: _Stay) -> Iterator[Event]:
        """What is heard in the test's function after the value left, until the same place asks again."""
        value = self.asked[number]
        end = self._end(self.time.when_asked[number], stay)
        for event in self.time.after(stay.home, self.time.when_asked[number]):
            again = event.asked >= 0 and self.asked[event.asked].instruction == value.instruction
            again = again and self.asked[event.asked].code is value.code and not test.repeats
            if event.first >= end or again:
                break
            if test.function_span.covers(event.span):
                yield event

    def _stay(self, number: int, test: Test) -> _Stay:
        value, home = self.asked[number], (test.file, test.function)
        homes = self._caller_homes
        around = [homes[id(code)] for code, _ in value.callers if id(code) in homes]
        own = value.code is not None and home_of(value.code) == home
        last = self.calls[value.call].last if own and 0 <= value.call < len(self.calls) else _END
        if (
            test.by_name or not own
        ):  # the test itself is not heard: at the latest it is over when it is asked again
            last = min(last, self._again.get((number, test.construct), _END))
        if not own:
            around = around[around.index(home) + 1 :] if home in around else []
        return _Stay(home, [other for other in around if other != home], last)

    def _end(self, when: int, stay: _Stay) -> int:
        """The first node that is heard after the function has returned."""
        heard = (next(self.time.after(home, when), None) for home in dict.fromkeys(stay.returned_to))
        return min([stay.last, *(event.first for event in heard if event is not None)])

    def _window(
        self, test: Test, branch: Branch | None, when: int, node: int, stay: _Stay
    ) -> tuple[int, ...]:
        """Nodes of one run of a branch that begins after `when`."""
        if branch is None or not branch.spans:
            return ()
        begin = last = node
        end = self._end(when, stay)
        inside: list[Span] = []
        for event in self.time.after(stay.home, when):
            if event.first >= end:
                break
            if event.first < last or not test.function_span.covers(event.span):
                continue  # within a call that was made from the branch, or another function of the same name
            if not _inside(branch, event.span):
                end = event.first
                break
            last = max(last, event.last)
            inside.append(event.span)
        low, middle = bisect_left(self.nodes, begin), bisect_left(self.nodes, last)
        high = bisect_left(self.nodes, end) if end < _END else len(self.nodes)
        tail = self._tail(test, branch, inside, range(middle, high))
        return tuple(self.nodes[low:middle] + tail)

    def _tail(self, test: Test, branch: Branch, inside: list[Span], positions: range) -> list[int]:
        """What is heard after the last line of the branch, as far as a call written there can have caused it."""
        here = [call for call in test.calls if _inside(branch, call.span)]
        ends = {span[2:] for span in inside}
        furthest = max(ends, default=(0, 0))
        if not any(call.span[2:] not in ends and call.span[2:] > furthest for call in here):
            return []
        elsewhere = {call.name for call in test.calls} - {call.name for call in here}
        nodes = []
        for position in positions:
            item = self.heard[position]
            if item.code is None or item.code.co_name in elsewhere:
                break
            nodes.append(item.node)
        return nodes


def _inside(branch: Branch | None, span: Span) -> bool:
    return branch is not None and any(part.covers(span) for part in branch.spans)

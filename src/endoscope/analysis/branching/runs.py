"""Which branch of a test ran, and which operations belong to that run.

An operation belongs to a branch if its line lies in the branch, or if it was recorded in a function called from there.
Calls of modules are known with their lines. Other functions are judged by time: what is recorded between two lines of
the branch belongs to it; what comes after its last line does so only if a call is left in the branch that can have
caused it, up to a function that is called elsewhere, or until the function that holds the test has returned.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

from endoscope.analysis.branching.conditionals import NOTHING, UNSETTLED, Branch, Test, Unlocated
from endoscope.analysis.branching.syntax import Span, home_of
from endoscope.analysis.branching.timeline import Asked, CallSite, Event, Home, Ran, Timeline

#: Instead of the name of a branch: nothing that was recorded tells which one ran.
UNKNOWN = "unknown"
_END = 1 << 62
_CALLERS_READ = 3  # how many callers are asked for the names of the functions that they call


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a branch."""

    branch: str  # its name, NOTHING or UNKNOWN
    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stay:
    """How long the function that holds a test stays on the stack, as far as that is known."""

    home: Home
    call: int  # the module call that was running when the value left
    until: int  # when something is recorded of a function that called it
    last: int  # from this node on it has returned
    callers: tuple[CodeType, ...]  # the nearest functions that called it

    def is_over(self, event: Event) -> bool:
        if event.when >= self.until or event.first > self.last:
            return True
        # Between two nodes only values leave; those that leave inside the same module call are still within.
        return event.first == self.last and not (event.asked >= 0 and event.call == self.call)


class Runs:
    """Asked for one value after the other, the last one first: a part of a test is told by the parts asked after it."""

    def __init__(
        self,
        asked: Sequence[Asked],
        ran: Sequence[Ran],
        calls: Sequence[CallSite],
        tests: Sequence[Sequence[Test | Unlocated]],
    ) -> None:
        self.asked, self.ran, self.calls, self.tests = asked, ran, calls, tests
        self.nodes = [item.node for item in ran]
        homes = {(t.file, t.function) for each in tests for t in each if isinstance(t, Test)}
        around = {id(code): home_of(code) for value in asked for code, _ in value.callers}
        spans = [_place(value, found) for value, found in zip(asked, tests, strict=True)]
        self.time = Timeline(asked, ran, calls, homes | set(around.values()), spans)
        self._caller_homes = {key: home for key, home in around.items() if self.time.knows(home)}
        self._again = self._asked_again()
        self._known: dict[tuple[int, int], Run] = {}
        self._calls: dict[tuple[int, str], tuple[set[str], tuple[int, ...], set[str]]] = {}

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

    def told(self, number: int) -> list[tuple[Test | Unlocated, Run]]:
        """What one value chose. Of tests that may have looked at it later, those that did, or else the first."""
        outcomes = [
            (test, self.of(number, test) if isinstance(test, Test) else Run(UNKNOWN)) for test in self.tests[number]
        ]
        sure = [(t, run) for t, run in outcomes if run.branch != UNKNOWN or not isinstance(t, Test) or t.certain]
        return sure or outcomes[:1]

    def of(self, number: int, test: Test) -> Run:
        known = self._known.get((number, id(test)))
        if known is None:
            known = self._known[number, id(test)] = self._run(number, test)
        return known

    def _run(self, number: int, test: Test) -> Run:
        value = self.asked[number].value
        name = test.leads_to(value)
        if name == UNSETTLED:
            run = self._evidence(number, test)
            name = test.leads_to(value, exhausted=True) if run.branch == UNKNOWN else UNSETTLED
            if name == UNSETTLED:
                return run
        if name == NOTHING:
            return Run(name if test.certain else UNKNOWN)
        return self._chosen(number, test, name)

    def _chosen(self, number: int, test: Test, name: str) -> Run:
        """The branch is known; what was recorded of it?"""
        branch = test.branch(name)
        stay = self._stay(number, test)
        if not test.by_name:
            return Run(name, self._window(test, branch, self.time.when_asked[number], self.asked[number].node, stay))
        first = next((e for e in self._events(number, test, stay) if _inside(branch, e.span)), None)
        if first is None:
            return Run(name if test.certain else UNKNOWN)
        return Run(name, self._window(test, branch, first.when - 1, first.first, stay))

    def _evidence(self, number: int, test: Test) -> Run:
        """The value does not tell: see what is recorded next in the same function."""
        stay = self._stay(number, test)
        for event in self._events(number, test, stay):
            other = self._same_construct(event, test)
            if other is not None:
                same = test.repeats and other.asked_span == test.asked_span
                return self.of(event.asked, other) if same or other.asked_span > test.asked_span else Run(UNKNOWN)
            for branch in test.branches:
                if _inside(branch, event.span):
                    return Run(branch.name, self._window(test, branch, event.when - 1, event.first, stay))
            if not test.by_name and not test.construct.covers(event.span):
                break
        return Run(UNKNOWN)

    def _same_construct(self, event: Event, test: Test) -> Test | None:
        if event.asked < 0:
            return None
        same = (t for t in self.tests[event.asked] if isinstance(t, Test) and t.construct == test.construct)
        return next((t for t in same if t.file == test.file), None)

    # ---- what is recorded, and how long ----------------------------------------------------------------------------

    def _events(self, number: int, test: Test, stay: _Stay) -> Iterator[Event]:
        """What is recorded in the test's function after the value left, until the same place asks again."""
        value = self.asked[number]
        for event in self.time.after(stay.home, self.time.when_asked[number]):
            other = self.asked[event.asked] if event.asked >= 0 and not test.repeats else None
            again = other is not None and other.code is value.code and other.instruction == value.instruction
            if again or stay.is_over(event):
                break
            if test.function_span.covers(event.span):
                yield event

    def _stay(self, number: int, test: Test) -> _Stay:
        value, home, homes = self.asked[number], (test.file, test.function), self._caller_homes
        around = [homes[id(code)] for code, _ in value.callers if id(code) in homes]
        own = value.code is not None and home_of(value.code) == home
        last = self.calls[value.call].last if own and 0 <= value.call < len(self.calls) else _END
        if test.by_name or not own:
            # Nothing is recorded when such a test is evaluated; its branch ends at the latest when it is asked again.
            last = min(last, self._again[number, test.construct])
        codes = [code for code, _ in value.callers]
        if not own:
            around = around[around.index(home) + 1 :] if home in around else []
            position = next((i for i, code in enumerate(codes) if home_of(code) == home), len(codes))
            codes = codes[position + 1 :]
        nearest = tuple(codes[:_CALLERS_READ])
        when = self.time.when_asked[number]
        coming = [next(self.time.after(other, when), None) for other in dict.fromkeys(around) if other != home]
        returns = min((event for event in coming if event is not None), default=None)
        if returns is None:
            return _Stay(home, value.call, _END, last, nearest)
        return _Stay(home, value.call, returns.when, min(last, returns.first), nearest)

    def _window(self, test: Test, branch: Branch | None, when: int, node: int, stay: _Stay) -> tuple[int, ...]:
        """Nodes of one run of a branch that begins after `when`."""
        if branch is None or not branch.spans:
            return ()
        last, end = node, stay.last
        inside: list[Span] = []
        for event in self.time.after(stay.home, when):
            if stay.is_over(event):
                break
            if event.first < last or not test.function_span.covers(event.span):
                continue  # within a call that was made from the branch, or another function of the same name
            if not _inside(branch, event.span):
                end = event.first
                break
            last = max(last, event.last)
            inside.append(event.span)
        first, middle, after = (bisect_left(self.nodes, each) for each in (node, last, end))
        nodes = self.nodes[first:middle]
        names, last_call, elsewhere = self._calls_of(test, branch)
        if last_call > max((span[2:] for span in inside), default=(0, 0)):
            nodes += self._tail(middle, after, elsewhere.union(*(code.co_names for code in stay.callers)) - names)
        return tuple(nodes)

    def _calls_of(self, test: Test, branch: Branch) -> tuple[set[str], tuple[int, ...], set[str]]:
        """Names of what a branch calls, where its last call ends, names of what the function calls elsewhere."""
        known = self._calls.get((id(test), branch.name))
        if known is None:
            here = [call for call in test.calls if _inside(branch, call.span)]
            names = {call.name for call in here}
            last = max((call.span[2:] for call in here), default=(0, 0))
            known = self._calls[id(test), branch.name] = (names, last, {c.name for c in test.calls} - names)
        return known

    def _tail(self, begin: int, end: int, elsewhere: set[str]) -> Iterator[int]:
        """What is recorded after the last line of a branch and comes from no function that is called elsewhere."""
        for item in itertools.islice(self.ran, begin, end):
            if item.code is None or item.code.co_name in elsewhere:
                break
            yield item.node


def _inside(branch: Branch | None, span: Span) -> bool:
    return branch is not None and any(part.covers(span) for part in branch.spans)


def _place(value: Asked, tests: Sequence[Test | Unlocated]) -> Span | None:
    """Where a value was asked, if its test stands in the same function."""
    first = tests[0] if tests else None
    if not isinstance(first, Test) or first.by_name or value.code is None:
        return None
    return first.asked_span if home_of(value.code) == (first.file, first.function) else None

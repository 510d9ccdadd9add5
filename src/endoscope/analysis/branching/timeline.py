"""What was recorded in the functions that hold tests, in order of time and with its place in the source.

operations, calls of modules, values that left ─► one order ─► per function: events with spans
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import CodeType
from typing import Any, NamedTuple

from endoscope.analysis.branching.conditionals import Position
from endoscope.analysis.branching.syntax import Span, as_span, home_of

Home = tuple[str, str]  # file and qualified name of a function

#: Ways out of torch that only ever give a bool.
CONTROL = frozenset("__bool__ is_nonzero equal allclose __contains__".split())


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that left torch for Python."""

    node: int  # how many nodes had been recorded by then
    steering: tuple[int, ...]  # nodes whose value it was
    value: Any  # what Python got; None if that is not known
    code: CodeType | None
    instruction: int
    leaving: str = "__bool__"  # the function through which it left
    call: int = -1  # the innermost module call that was running, an index into the calls
    callers: tuple[Position, ...] = ()  # frames of the user around, innermost first

    @property
    def steers(self) -> bool:
        """It can do nothing but steer control flow."""
        return self.leaving in CONTROL or isinstance(self.value, bool)


class Ran(NamedTuple):
    """An operation."""

    node: int
    code: CodeType | None
    instruction: int


class CallSite(NamedTuple):
    """A call of a module: the nodes that were recorded inside, and the line that called it."""

    first: int
    last: int  # exclusive
    code: CodeType | None = None
    instruction: int = -1


class Event(NamedTuple):
    """Something that was recorded in a function."""

    when: int  # position in the order of time
    span: Span
    first: int  # nodes that it stands for
    last: int  # exclusive
    asked: int  # number of the value that left, -1 for operations and calls
    call: int  # the module call that was running when the value left


class Timeline:
    """Events of the functions in `homes`; `when_asked` says when each value left.

    `spans` are the places of the values that left, where they are known better than from the instruction.
    """

    def __init__(
        self,
        asked: Sequence[Asked],
        ran: Sequence[Ran],
        calls: Sequence[CallSite],
        homes: set[Home],
        spans: Sequence[Span | None],
    ) -> None:
        self._spans = spans
        self._events: dict[Home, list[Event]] = {home: [] for home in homes}
        self._codes: dict[int, tuple[CodeType, list[Event] | None, list[Span | None]]] = {}
        self.when_asked: list[int] = []
        self._now = 0
        self._merge(asked, ran, calls)

    def knows(self, home: Home) -> bool:
        """Whether anything was recorded in the function."""
        return bool(self._events.get(home))

    def after(self, home: Home, when: int) -> Iterator[Event]:
        events = self._events.get(home, [])
        for position in range(bisect_right(events, when, key=attrgetter("when")), len(events)):
            yield events[position]

    def _merge(self, asked: Sequence[Asked], ran: Sequence[Ran], calls: Sequence[CallSite]) -> None:
        """Nodes, calls and departures are each in order of time already."""
        next_asked = next_call = 0
        for item in (*ran, None):
            node = item.node if item is not None else 1 << 62
            while next_asked < len(asked) and asked[next_asked].node <= node:
                value = asked[next_asked]
                while next_call < len(calls) and _begins_before(calls[next_call], next_call, value):
                    self._add_call(calls[next_call])
                    next_call += 1
                self.when_asked.append(self._now)
                self._add(value.code, value.instruction, value.node, value.node, next_asked, value.call)
                next_asked += 1
            while next_call < len(calls) and calls[next_call].first <= node:
                self._add_call(calls[next_call])
                next_call += 1
            if item is not None:
                self._add(item.code, item.instruction, item.node, item.node + 1)

    def _add_call(self, call: CallSite) -> None:
        self._add(call.code, call.instruction, call.first, call.last)

    def _add(
        self, code: CodeType | None, instruction: int, first: int, last: int, asked: int = -1, call: int = -1
    ) -> None:
        now, self._now = self._now, self._now + 1
        if code is None:
            return
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = self._learn(code)
        _, events, spans = known
        if events is not None and 0 <= instruction // 2 < len(spans):
            span = (self._spans[asked] if asked >= 0 else None) or spans[instruction // 2]
            if span is not None:
                events.append(Event(now, span, first, last, asked, call))

    def _learn(self, code: CodeType) -> tuple[CodeType, list[Event] | None, list[Span | None]]:
        events = self._events.get(home_of(code))
        return code, events, [as_span(p) for p in code.co_positions()] if events is not None else []


def _begins_before(call: CallSite, number: int, value: Asked) -> bool:
    """Between the same two nodes, a call comes first if the value left inside it or inside a later one."""
    return call.first < value.node or (call.first == value.node and number <= value.call)

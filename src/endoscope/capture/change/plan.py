"""Where edits belong in a run that has not happened yet.

Labels are known only after a run, so selectors are resolved on a reference: the same run without edits. What
is carried over is not a count of operations, which another path through the model would shift, but the place:

    statement    type, line of code, module            which operation of the source
    occasion     n-th call of the module, n-th time in that call

A statement whose every occasion was selected is edited on further occasions, too (a longer sequence, one more
turn of a loop). At a statement that the reference never reached, patterns that can be decided on the spot decide.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from endoscope.analysis.selecting.patterns import Selector, parse
from endoscope.capture.change.choosing import Change, chosen
from endoscope.capture.change.edit import Edit
from endoscope.capture.data.calls import OUTSIDE, Calls
from endoscope.capture.data.nodes import NO_POSITION, Position
from endoscope.capture.record.keeping import SomeOp
from endoscope.capture.views.result import Trace
from endoscope.schema.ops import Kind

_ONE_PASS = re.compile(r":\d+$")


class Statement(NamedTuple):
    """One operation of the source code, in one module."""

    type: str
    position: Position
    module: Hashable


Numbered = tuple[int, Edit]  # number of the change, and the edit


class Site(NamedTuple):
    """One occasion, or one source, that is edited."""

    label: str
    edits: Sequence[Numbered]


class Occasions:
    """Counts statements as they are executed; the same in the reference and in the edited run."""

    def __init__(self, calls: Calls, start: int = 0) -> None:
        """`start`: how many calls there were before."""
        self._calls = calls
        self._start = start
        self._times: dict[tuple[int, Statement], int] = {}

    def statement(self, type_: str, position: Position, call: int) -> Statement:
        entries = self._calls.entries
        module = entries[call].key if call != OUTSIDE else None
        if self._start < len(entries) and entries[self._start].position == position:
            position = NO_POSITION  # torch's own modules: the nearest line is the one that called the model
        return Statement(type_, position, module)

    def upcoming(self, statement: Statement, call: int) -> tuple[int, int]:
        """Which call of its module, from 1, and which time in that call, from 0."""
        return self._pass(call), self._times.get((call, statement), 0)

    def count(self, statement: Statement, call: int) -> None:
        self._times[call, statement] = self._times.get((call, statement), 0) + 1

    def _pass(self, call: int) -> int:
        """Calls before the start do not count."""
        if call < self._start:
            return 0
        entries = self._calls.entries
        before = [earlier for earlier in entries[: self._start] if earlier.key == entries[call].key]
        return entries[call].pass_ - len(before)


@dataclass
class Plan:
    """Everything an edited run needs to know; made once, used for any number of runs."""

    changes: list[Change]
    sites: dict[Statement, dict[tuple[int, int], Site]] = field(default_factory=dict)
    always: dict[Statement, list[Numbered]] = field(default_factory=dict)  # on occasions beyond the reference
    known: set[Statement] = field(default_factory=set)  # what the reference executed
    sources: dict[tuple[Kind, str], Site] = field(default_factory=dict)
    patterns: list[tuple[Selector, Numbered]] = field(default_factory=list)

    @classmethod
    def of(cls, reference: Trace, changes: list[Change]) -> Plan:
        plan = cls(changes)
        nodes = chosen(reference, changes)
        for node, edits in nodes.items():
            source = reference.recorder.sources.get(node)
            if source is not None:
                plan.sources[source.kind, source.name] = Site(reference.op_at(node).label, edits)
        plan._place(reference, nodes)
        for number, change in enumerate(changes):
            if isinstance(change.key, str):
                plan.patterns.append((parse(change.key), (number, change.edit)))
        return plan

    def _place(self, reference: Trace, nodes: dict[int, list[Numbered]]) -> None:
        recorder = reference.recorder
        occasions = Occasions(recorder.calls)
        common: dict[Statement, list[Numbered]] = {}
        for node, raw in enumerate(recorder.nodes):
            if node in recorder.sources:
                continue
            statement = occasions.statement(raw.facts.type, raw.position, raw.call)
            when = occasions.upcoming(statement, raw.call)
            occasions.count(statement, raw.call)
            edits = nodes.get(node, [])
            if edits:
                self.sites.setdefault(statement, {})[when] = Site(reference.op_at(node).label, edits)
            lasting = [edit for edit in edits if _is_general(self.changes[edit[0]].key)]
            common[statement] = [e for e in lasting if e in common[statement]] if statement in common else lasting
        self.known = set(common)
        self.always = {statement: edits for statement, edits in common.items() if edits}

    def at(self, statement: Statement, when: tuple[int, int], now: SomeOp) -> Site | None:
        """What to do at this occasion; `now` is the operation as far as it is known."""
        site = self.sites.get(statement, {}).get(when)
        if site is not None:
            return site
        if statement in self.known:
            edits: Sequence[Numbered] = self.always.get(statement, ())
        else:
            edits = [edit for selector, edit in self.patterns if selector.early(now) is True]
        return Site(f"{statement.type} (not in the run without edits)", edits) if edits else None

    def may_concern(self, type_: str, some: SomeOp) -> bool:
        """Whether an operation of a type can be edited at all; `some` is any operation of it."""
        if any(statement.type == type_ for statement in self.sites):
            return True
        return any(selector.early(some) is not False for selector, _ in self.patterns if _can_be_decided(selector))


def _is_general(key: Any) -> bool:
    """Not one pass, one position, one operation."""
    return isinstance(key, str) and not any(_ONE_PASS.search(atom.body) for atom in parse(key).atoms())


def _can_be_decided(selector: Selector) -> bool:
    """A pattern of types, places and kinds; names are known only afterwards."""
    return not selector.related and all(atom.field != "" for atom in selector.atoms())

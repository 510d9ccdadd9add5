"""Which operations are passes of one layer, by the three conditions of the TorchLens paper.

    OpFacts ─► 1. the same function on the same parameters                   sharing.py
            ─► 3. statements that run back to back without parameters        adjacent.py, repeats.py
            ─► 2. what repeats beside the passes of 1., grown outwards       neighbours.py
            ─► 3. the same sequence, written out twice                       adjacent.py
            ─► keys: one for each layer that runs more than once
            ─► which of them form loops in time, which are only used again   loops.py, totals.py, when somebody asks

What makes this reliable is that the place in the source is known: two operations are *the same statement* if the same
instruction ran the same function in the same module. A loop in time runs the same statements again on what they
made before. Code that spells a loop out, line by line, is recognised as well, but has to repeat itself exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from endoscope.analysis.recurrence.adjacent import find_back_to_back, find_written_out
from endoscope.analysis.recurrence.facts import EDGE, FREE, NONE, WALL, Gap, OpFacts
from endoscope.analysis.recurrence.loops import Loop, tell_loops
from endoscope.analysis.recurrence.neighbours import grow
from endoscope.analysis.recurrence.repeats import Fold
from endoscope.analysis.recurrence.sharing import share_parameters

__all__ = ["Loop", "OpFacts", "Recurrence", "find_recurrence"]


@dataclass(frozen=True)
class Recurrence:
    """What repeats in a run. Loops are found when they are asked for: naming a trace does not need them."""

    keys: list[int | None]  # operation -> layer: equal for passes of one layer, None for a layer of one pass
    facts: OpFacts = field(repr=False)
    folds: list[Fold] = field(repr=False)  # loops without parameters
    learned: int = 0  # layers from 0 up to this one use the same parameters again

    @cached_property
    def _told(self) -> tuple[tuple[Loop, ...], frozenset[int]]:
        return tell_loops(self.facts, self.keys, self.folds, self.learned)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Loops in time, outer before inner."""
        return self._told[0]

    @property
    def reused(self) -> frozenset[int]:
        """Layers that run several times but never on what they made before, such as those of siamese branches."""
        return self._told[1]


def find_recurrence(facts: OpFacts) -> Recurrence:
    """Takes time proportional to the number of operations, about a microsecond for each."""
    states = share_parameters(facts)
    learned = 1 + max(FREE, max(states, default=FREE))
    folds: list[Fold] = []
    if 1 + max(facts.statements, default=NONE) < len(states) - states.count(EDGE):  # some statement runs again
        facts = _tell_buffers(facts)
        _soften_walls(states, facts.statements)
        folds = find_back_to_back(facts, states, _gaps(states))
    if learned:
        grow(facts, states, _gaps(states))
    folds += find_written_out(facts, states)
    return Recurrence(_keys(states, folds), facts, folds, learned)


def _tell_buffers(facts: OpFacts) -> OpFacts:
    """A statement that reads one buffer after another is a statement for each of them."""
    if not facts.buffers:
        return facts
    statements = list(facts.statements)
    known: dict[tuple[int, ...], int] = {}
    fresh = 1 + max(statements)
    for op, node in enumerate(facts.nodes):
        if not facts.buffers.isdisjoint(facts.parents[node]) and statements[op] >= 0:
            reads = (statements[op], *[parent for parent in facts.parents[node] if parent in facts.buffers])
            statements[op] = fresh + known.setdefault(reads, len(known))
    return replace(facts, statements=statements)


def _soften_walls(states: list[int], statements: Sequence[int]) -> None:
    """A statement that also works without parameters is no layer with parameters: it got a learned first state."""
    if WALL not in states:
        return
    walls = [op for op, state in enumerate(states) if state == WALL]
    suspects = {statements[op] for op in walls}
    plain = {statements[op] for op, state in enumerate(states) if state == FREE and statements[op] in suspects}
    for op in walls:
        if statements[op] in plain:
            states[op] = FREE


def _gaps(states: list[int]) -> list[Gap]:
    """Stretches between operations with parameters."""
    ends = [op for op, state in enumerate(states) if state >= 0 or state == WALL]
    return [(start + 1, end) for start, end in pairwise([-1, *ends, len(states)]) if end > start + 1]


def _keys(states: list[int], folds: list[Fold]) -> list[int | None]:
    """Layers of all operations; a loop that belongs to no layer yet makes one of each of its parts."""
    fresh = 1 + max(FREE, max(states, default=FREE))
    keys: list[int | None] = [state if state >= 0 else None for state in states]
    for one in reversed(folds):  # outer loops first: their parts stand for those of inner loops
        for op in one.body:
            if keys[op] is None:
                keys[op] = fresh
                fresh += 1
        for op, twin in one.twins.items():
            keys[op] = keys[twin]
    return keys

"""Which operations are passes of one layer, by the three conditions of the TorchLens paper.

    OpFacts ─► 1. the same function on the same parameters                  sharing.py
            ─► 3. statements that run back to back without parameters       repeats.py, stretch by stretch
            ─► 2. what repeats beside the passes of 1., grown outwards      neighbours.py
            ─► 3. the same sequence written out twice
            ─► which of these are loops in time, which are only used again

What makes this reliable is that the place in the source is known: two operations are *the same statement* if the same
instruction ran the same function in the same module. A loop in time runs the same statements again on what they
made before. Code that spells a loop out, line by line, is recognised as well, but has to repeat itself exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from endoscope.analysis.flops import COPIES, VIEWS
from endoscope.analysis.neighbours import Gap, grow
from endoscope.analysis.opfacts import BODY, EDGE, FREE, NONE, TWIN, WALL, OpFacts
from endoscope.analysis.repeats import Fold, Links, find_runs, fold
from endoscope.analysis.sharing import share_parameters

_MOVES = frozenset(VIEWS) | frozenset(COPIES)


@dataclass(frozen=True, slots=True)
class Loop:
    """Operations that run again on what they made before; numbers are positions in the lists of `OpFacts`."""

    body: tuple[int, ...]  # the first operation of each of its layers, in order
    passes: int  # of the layer that runs most often, each time the loop is entered
    parent: int | None  # the loop around it, as its position in `Recurrence.loops`
    kind: Literal["parameters", "adjacent"]  # what gave it away: parameters used again, or back-to-back repeats


@dataclass(frozen=True)
class Recurrence:
    """What repeats in a run."""

    keys: list[int | None]  # operation -> layer: equal for passes of one layer, None for a layer of one pass
    tell: Callable[[], tuple[tuple[Loop, ...], frozenset[int]]]

    @cached_property
    def _told(self) -> tuple[tuple[Loop, ...], frozenset[int]]:
        return self.tell()

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Outer loops before inner ones."""
        return self._told[0]

    @property
    def reused(self) -> frozenset[int]:
        """Layers that run several times but in no loop, such as those of siamese branches."""
        return self._told[1]


def find_recurrence(facts: OpFacts) -> Recurrence:
    states = share_parameters(facts)
    parametric = 1 + max(states, default=FREE)
    folds: list[Fold] = []
    if 1 + max(facts.statements, default=NONE) < len(states) - states.count(EDGE):  # some statement runs again
        facts = _tell_buffers(facts)
        _soften_walls(states, facts.statements)
        folds = _back_to_back(facts, states, _gaps(states))
    if parametric > 0:
        grow(facts, states, _gaps(states))
    folds += _written_out(facts, states)
    keys = _keys(states, folds)
    return Recurrence(keys, lambda: _tell_loops(facts, states, keys, folds, parametric))


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
    """A statement that mostly works without parameters is no layer with parameters: it got a learned first state."""
    walls = [op for op, state in enumerate(states) if state == WALL]
    if walls:
        runs = Counter(statements)
        runs.subtract([statements[op] for op, state in enumerate(states) if state >= WALL and state != FREE])
        for op in walls:
            if runs[statements[op]] > 0:
                states[op] = FREE


def _gaps(states: list[int]) -> list[Gap]:
    """Stretches between operations with parameters."""
    ends = [op for op, state in enumerate(states) if state >= 0 or state == WALL]
    return [(start + 1, end) for start, end in pairwise([-1, *ends, len(states)]) if end > start + 1]


# ---- condition 3 ------------------------------------------------------------------------------------------------


def _back_to_back(facts: OpFacts, states: list[int], gaps: Sequence[Gap]) -> list[Fold]:
    """Loops of the source that use no parameters."""
    folds: list[Fold] = []
    links = _read_each_other(facts, states)
    for start, end in gaps:
        ran = facts.statements[start:end]
        if len(set(ran)) < len(ran):
            ops = [op for op in range(start, end) if states[op] == FREE]
            folds += fold(ops, [facts.statements[op] for op in ops], end, links)
    for one in folds:
        for op in one.body:
            states[op] = BODY
    for one in folds:
        for op in one.twins:
            states[op] = TWIN
    return folds


def _written_out(facts: OpFacts, states: list[int]) -> list[Fold]:
    """Sequences that the source spells out more than once: `x.cos().relu().cos().relu()`.

    Here nothing but their likeness speaks for a loop. So each operation has to work on the result of the one
    before, with the same plain arguments in the same modules, and one operation twice or the same change of layout
    twice is not enough.
    """
    folds: list[Fold] = []
    if states.count(FREE) < 4:
        return folds
    for chain in _chains(facts, states):
        types = [facts.types[op] for op in chain]
        if len(set(types)) == len(types) or all(period < 2 for _, period, _ in find_runs(types)):
            continue
        likeness = [(facts.signature(op), facts.modules(op)) for op in chain]
        for start, period, stop in find_runs(likeness):
            body = chain[start : start + period]
            if len(set(types[start : start + period]) - _MOVES) < 2 or states[body[0]] != FREE:
                continue
            stop -= (stop - start) % period
            twins = {chain[n]: chain[start + (n - start) % period] for n in range(start + period, stop)}
            folds.append(Fold(body, (stop - start) // period, twins))
            for op in chain[start:stop]:
                states[op] = TWIN if op in twins else BODY
    return folds


def _chains(facts: OpFacts, states: list[int]) -> list[list[int]]:
    """Four or more operations without a layer, each on the result of the one before."""
    chains: list[list[int]] = []
    chain: list[int] = []
    for op, (node, state) in enumerate(zip(facts.nodes, states, strict=True)):
        if state == FREE and chain and facts.nodes[chain[-1]] in facts.parents[node]:
            chain.append(op)
            continue
        if len(chain) >= 4:
            chains.append(chain)
        chain = [op] if state == FREE else []
    if len(chain) >= 4:
        chains.append(chain)
    return chains


# ---- what depends on what ---------------------------------------------------------------------------------------


def _read_each_other(facts: OpFacts, states: list[int]) -> Links:
    """Does a pass read what the pass before made, in the same modules?"""
    sources = {facts.nodes[op] for op, state in enumerate(states) if state == EDGE}
    sources |= facts.parameters | facts.buffers | facts.constants
    nodes, parents, modules = facts.nodes, facts.parents, facts.modules

    def linked(before: int, start: int, end: int) -> bool:
        low, high = nodes[before], nodes[start]
        for node in nodes[start:end]:
            for parent in parents[node]:
                if low <= parent < high and parent not in sources:
                    return modules(before) == modules(start)
        return False

    return lambda starts: [linked(*three) for three in zip(starts, starts[1:], starts[2:], strict=False)]


def _depend_on_each_other(facts: OpFacts, members: Set[int]) -> Links:
    """Does a pass depend on the pass before, directly or through operations that belong to no layer?"""
    nodes, parents = facts.nodes, facts.parents

    def directly(before: int, start: int, end: int) -> bool:
        low, high = nodes[before], nodes[start]
        return any(
            low <= parent < high and parent in members
            for node in nodes[start:end]
            if node in members
            for parent in parents[node]
        )

    def links(starts: Sequence[int]) -> list[bool]:
        if all(directly(*three) for three in zip(starts, starts[1:], starts[2:], strict=False)):
            return [True] * (len(starts) - 2)
        found = [False] * (len(starts) - 2)
        carried: dict[int, int] = {}  # node -> the latest pass that it depends on
        for number, (start, end) in enumerate(zip(starts, starts[1:], strict=False)):
            for node in nodes[start:end]:
                latest = max([carried[parent] for parent in parents[node] if parent in carried], default=-1)
                if node in members:
                    if number and latest == number - 1:
                        found[number - 1] = True
                    latest = number
                if latest >= 0:
                    carried[node] = latest
        return found

    return links


# ---- the result -------------------------------------------------------------------------------------------------


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


def _tell_loops(
    facts: OpFacts, states: list[int], keys: list[int | None], folds: list[Fold], own: int
) -> tuple[tuple[Loop, ...], frozenset[int]]:
    """Loops through parameters are looked for here, among all that runs again; layers below `own` have them."""
    once = [op for op, state in enumerate(states) if state != TWIN]  # each part of an inner loop once
    passes = Counter([keys[op] for op in once])
    again = [op for op in once if keys[op] is not None and passes[keys[op]] > 1]
    members = {facts.nodes[op] for op in again}
    layers = [key for key in map(keys.__getitem__, again) if key is not None]
    folds = folds + fold(again, layers, len(keys), _depend_on_each_other(facts, members))
    bodies: dict[tuple[int | None, ...], Fold] = {}
    for one in folds:
        body = tuple([keys[op] for op in one.body])
        if body not in bodies or bodies[body].passes < one.passes:
            bodies[body] = one
    looped = {key for body in bodies for key in body}
    reused = frozenset([key for key in set(layers) if key not in looped])
    return _nested(bodies, own), reused


def _nested(bodies: dict[tuple[int | None, ...], Fold], own: int) -> tuple[Loop, ...]:
    """Loops in the order of their first operation; `bodies` come from the inside out."""
    around: dict[tuple[int | None, ...], tuple[int | None, ...]] = {}
    largest: dict[int | None, tuple[int | None, ...]] = {}  # layer -> largest loop so far that contains it
    for body in bodies:
        for inner in {largest[key] for key in body if key in largest}:
            if set(inner) <= set(body):
                around.setdefault(inner, body)
        largest |= dict.fromkeys(body, body)
    parts = {body: one.first_passes() for body, one in bodies.items()}
    order = sorted(bodies, key=lambda body: (parts[body][0], -len(body)))
    number = {body: n for n, body in enumerate(order)}
    return tuple(
        Loop(
            body=tuple(parts[body]),
            passes=bodies[body].passes,
            parent=number[around[body]] if body in around else None,
            kind="parameters" if any(key is not None and key < own for key in body) else "adjacent",
        )
        for body in order
    )

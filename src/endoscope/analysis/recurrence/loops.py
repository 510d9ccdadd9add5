"""Loops in time: layers that run again on what they made before. The others are only used again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from endoscope.analysis.recurrence.facts import OpFacts
from endoscope.analysis.recurrence.repeats import Fold, Links, fold
from endoscope.analysis.recurrence.totals import without_totals

_MOST_TOLD = 2048  # layers outside of regular loops that are looked at one by one
_MOST_COMPARED = 200  # loops that are compared with each other

Body = tuple[int, ...]  # layers
Keys = Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Loop:
    """Operations that run again on what they made before; numbers are positions in the lists of `OpFacts`."""

    body: tuple[int, ...]  # the first operation of each of its layers, in order
    passes: int  # of the layer that runs most often, each time the loop is entered
    parent: int | None  # the loop around it, as its position in `Recurrence.loops`
    kind: Literal["parameters", "adjacent"]  # what gave it away: parameters used again, or back-to-back repeats


def tell_loops(
    facts: OpFacts, keys: Keys, folds: Sequence[Fold], learned: int
) -> tuple[tuple[Loop, ...], frozenset[int]]:
    """The loops, outer before inner, and the layers that run several times outside of any.

    `folds` are the loops without parameters, inner ones first. Layers below `learned` use parameters again; others
    are layers for the sake of these, and make no loop without them.
    """
    facts, totals = without_totals(facts, keys)
    twins = {op for one in folds for op in one.twins}
    once = [(op, key) for op, key in enumerate(keys) if key is not None and op not in twins]
    passes = Counter([key for _, key in once])
    again = [(op, key) for op, key in once if passes[key] > 1]
    regular = _bodies(keys, _fold_layers(facts, again, len(keys)))
    left = set(passes).difference([key for key, times in passes.items() if times == 1], *regular)
    themselves = {(key,): passes[key] for key in _depending_on_themselves(facts, again, left)}
    through = {body: n for body, n in _merge_interleaved(regular | themselves, again).items() if min(body) < learned}
    in_time = [one for one in folds if _is_in_time(facts, one, totals)]
    adjacent = _bodies(keys, in_time)
    bodies = adjacent | through
    loops = _nest(bodies, _first_passes(keys), adjacent.keys())
    several = {key for _, key in again}.union(*_bodies(keys, folds))
    return loops, frozenset(several.difference(*bodies))


def _is_in_time(facts: OpFacts, one: Fold, totals: Set[int]) -> bool:
    """Do its passes depend on each other, even without the edges between totals?"""
    ops = {*one.body, *one.twins}
    if totals.isdisjoint(ops):
        return True
    starts = sorted([one.body[0], *[op for op, twin in one.twins.items() if twin == one.body[0]]])
    links = _depending_on_each_other(facts, {facts.nodes[op] for op in ops})
    linked = links([*starts, max(ops) + 1])
    return 2 * sum(linked) >= len(linked)


def _fold_layers(facts: OpFacts, again: Sequence[tuple[int, int]], end: int) -> list[Fold]:
    members = {facts.nodes[op] for op, _ in again}
    links = _depending_on_each_other(facts, members)
    return fold([op for op, _ in again], [key for _, key in again], end, links)


def _bodies(keys: Keys, folds: Iterable[Fold]) -> dict[Body, int]:
    """Every loop by its layers, with its passes; a loop that is entered several times is one."""
    bodies: dict[Body, int] = {}
    for one in folds:
        body = tuple(sorted({key for key in map(keys.__getitem__, one.body) if key is not None}))
        bodies[body] = max(one.passes, bodies.get(body, 0))
    return bodies


def _first_passes(keys: Keys) -> dict[int, int]:
    first: dict[int, int] = {}
    for op, key in enumerate(keys):
        if key is not None:
            first.setdefault(key, op)
    return first


def _nest(bodies: Mapping[Body, int], first: Mapping[int, int], adjacent: Set[Body]) -> tuple[Loop, ...]:
    """Loops in the order of their first operation; `bodies` come from the inside out."""
    around: dict[Body, Body] = {}
    largest: dict[int, Body] = {}  # layer -> largest loop so far that contains it
    for body in bodies:
        for inner in {largest[key] for key in body if key in largest}:
            if set(inner) <= set(body):
                around[inner] = body
        largest |= dict.fromkeys(body, body)
    parts = {body: sorted(first[key] for key in body) for body in bodies}
    order = sorted(bodies, key=lambda body: (parts[body][0], -len(body)))
    number = {body: n for n, body in enumerate(order)}
    return tuple(
        Loop(
            tuple(parts[body]),
            bodies[body],
            number[around[body]] if body in around else None,
            "adjacent" if body in adjacent else "parameters",
        )
        for body in order
    )


def _depending_on_each_other(facts: OpFacts, members: Set[int]) -> Links:
    """Does a pass depend on the pass before, directly or through operations that run only once?"""
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
        for number, (start, end) in enumerate(pairwise(starts)):
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


# ---- what follows no pattern ----------------------------------------------------------------------------------------


def _depending_on_themselves(facts: OpFacts, again: Sequence[tuple[int, int]], left: Set[int]) -> list[int]:
    """Those of the layers left over that run on something they made before."""
    told = [(op, key) for op, key in again if key in left]
    bits = {key: 1 << n for n, key in enumerate(list(dict.fromkeys(key for _, key in told))[:_MOST_TOLD])}
    own = {facts.nodes[op]: bits[key] for op, key in told if key in bits}
    above: dict[int, int] = {}  # node -> bits of the layers it depends on, its own included
    looped = 0
    for node in facts.nodes[told[0][0] : told[-1][0] + 1] if told else ():
        mask = 0
        for parent in facts.parents[node]:
            mask |= above.get(parent, 0)
        bit = own.get(node, 0)
        looped |= mask & bit
        above[node] = mask | bit
    return [key for key, bit in bits.items() if looped & bit]


def _merge_interleaved(bodies: Mapping[Body, int], again: Sequence[tuple[int, int]]) -> dict[Body, int]:
    """Loops that run in between each other although none contains the other are one: parts of it are skipped."""
    if not 1 < len(bodies) <= _MOST_COMPARED:
        return dict(bodies)
    ran: dict[int, list[int]] = {}
    for op, key in again:
        ran.setdefault(key, []).append(op)
    groups: list[tuple[Body, int, list[int]]] = []  # layers, passes, operations
    sets = {body: set(body) for body in bodies}
    outer = {body: passes for body, passes in bodies.items() if not any(sets[body] < other for other in sets.values())}
    for body, passes in outer.items():
        ops = sorted([op for key in body for op in ran[key]])
        for other in [group for group in groups if _interleaved(body, ops, group[0], group[2])]:
            groups.remove(other)
            body = tuple(sorted({*other[0], *body}))
            ops = sorted({*ops, *other[2]})
            passes = max(len(ran[key]) for key in body)
        groups.append((body, passes, ops))
    merged = {body: passes for body, passes, _ in groups if body not in bodies}
    swallowed = {body for body in bodies for big in merged if set(body) <= set(big)}
    return {body: passes for body, passes in bodies.items() if body not in swallowed} | merged


def _interleaved(body: Body, ops: Sequence[int], other: Body, others: Sequence[int]) -> bool:
    if set(body) <= set(other) or set(other) <= set(body):
        return False
    return _between(ops, others) and _between(others, ops)


def _between(ops: Sequence[int], others: Sequence[int]) -> bool:
    """Some of the operations run after the first and before the last of the others."""
    return bisect_right(ops, others[0]) < bisect_left(ops, others[-1])

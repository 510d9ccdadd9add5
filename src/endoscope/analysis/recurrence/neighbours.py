"""Condition 2: what repeats beside the passes of a layer with parameters is a layer as well, grown outwards.

    fc ─► add ─► mul ─► fc ─► add ─► mul ─► fc ...         between two uses of fc lies the gap "add mul"

A statement that runs again in a gap behind (or else before) the same layer is a pass of one layer, whatever else the
gap contains: a first step may differ, a branch may be skipped. What is left is compared along the edges of the
graph, where code that was written out twice has to match exactly.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from endoscope.analysis.recurrence.facts import EDGE, FREE, TWIN, WALL, Gap, OpFacts
from endoscope.analysis.structure.reach import children_of

_FARTHEST = 256  # operations that are looked at to find out whether one depends on another
_MOST_TRIES = 8  # how often one operation is compared, each time with new neighbours


def grow(facts: OpFacts, states: list[int], gaps: Sequence[Gap]) -> None:
    """Put the layers of neighbours into `states`."""
    known = _grow_behind(facts.statements, states, gaps)
    _grow_before(facts, states, gaps, known)
    functions = Counter(facts.types)
    free = [op for op, state in enumerate(states) if state == FREE and functions[facts.types[op]] > 1]
    if free:
        _Edges(facts, states).grow(free)


def _grow_behind(statements: Sequence[int], states: list[int], gaps: Sequence[Gap]) -> dict[Hashable, int]:
    """Layers of what repeats behind a layer; returns them by the layer that comes next, and name."""
    alike: dict[tuple[int, tuple[int, ...]], list[Gap]] = {}  # layer, statements behind it -> where
    for gap in gaps:
        layer = states[gap[0] - 1] if gap[0] else WALL
        if layer >= 0:
            alike.setdefault((layer, tuple(_run(statements, _parts(states, gap)))), []).append(gap)
    passes = Counter[Hashable]()
    for (layer, ran), places in alike.items():
        for name in _names(ran):
            passes[layer, name] += len(places)
    fresh = 1 + max(states)
    layers: dict[Hashable, int] = {}
    known: dict[Hashable, int] = {}
    for (layer, ran), places in alike.items():
        end = _state(states, places[0][1])
        names = _names(ran)
        for name in names:
            if passes[layer, name] > 1 and (layer, name) not in layers:
                layers[layer, name] = given = known.setdefault((end, name), fresh) if end >= 0 else fresh
                fresh += given == fresh
        _give(states, places, [layers.get((layer, name), FREE) for name in names])
    return known


def _grow_before(facts: OpFacts, states: list[int], gaps: Sequence[Gap], known: Mapping[Hashable, int]) -> None:
    """What is left, such as the beginning of the first pass: the layer that follows and depends on it decides."""
    found: dict[Hashable, list[int]] = {}
    for gap in gaps:
        layer = _state(states, gap[1])
        if layer < 0 or min(states[gap[0] : gap[1]]) >= 0:
            continue
        ops = _parts(states, gap)
        names = dict(zip(ops, _names(_run(facts.statements, ops)), strict=True))
        needed = set(facts.parents[facts.nodes[gap[1]]])
        for op in range(gap[1] - 1, gap[0] - 1, -1):
            if facts.nodes[op] in needed:
                needed.update(facts.parents[facts.nodes[op]])
                if states[op] < 0 and op in names:
                    found.setdefault((layer, names[op]), []).append(op)
    fresh = 1 + max(states)
    for key, alone in found.items():
        if key in known or len(alone) > 1:
            layer = known.get(key, fresh)
            fresh += layer == fresh
            for op in alone:
                states[op] = layer


def _state(states: list[int], op: int) -> int:
    return states[op] if op < len(states) else WALL


def _parts(states: list[int], gap: Gap) -> Sequence[int]:
    """The operations of a gap, those of a loop once."""
    inside = states[gap[0] : gap[1]]
    if TWIN in inside or EDGE in inside:
        return [op for op, state in enumerate(inside, gap[0]) if state != TWIN and state != EDGE]
    return range(*gap)


def _run(statements: Sequence[int], ops: Sequence[int]) -> Sequence[int]:
    return statements[ops.start : ops.stop] if isinstance(ops, range) else [statements[op] for op in ops]


def _give(states: list[int], places: Iterable[Gap], layers: list[int]) -> None:
    for gap in places:
        ops = _parts(states, gap)
        if isinstance(ops, range) and FREE not in layers:
            states[gap[0] : gap[1]] = layers
        else:
            for op, layer in zip(ops, layers, strict=True):
                states[op] = layer if layer >= 0 else states[op]


def _names(ran: Sequence[int]) -> Sequence[Hashable]:
    """The statements of a gap; where one runs again, which time that is."""
    if len(set(ran)) == len(ran):
        return ran
    times = Counter[int]()
    told: list[Hashable] = []
    for statement in ran:
        times[statement] += 1
        told.append(statement if times[statement] == 1 else (statement, times[statement]))
    return told


class _Edges:
    """Growth along the edges of the graph, from the passes of a layer to operations that belong to none yet.

    Such an operation becomes a pass if another pass of the layer has the like on the same side: the same function
    with the same plain arguments in the same module.
    """

    def __init__(self, facts: OpFacts, states: list[int]) -> None:
        self.facts, self.states = facts, states
        self.op_of = {node: op for op, node in enumerate(facts.nodes)}
        self.fresh = 1 + max(states)
        self.met: dict[Hashable, tuple[int, int]] = {}  # layer, side, likeness -> pass, its neighbour
        self.searched: set[tuple[int, bool, str]] = set()  # layer, side, function
        self.taken: set[tuple[int, bool, int]] = set()  # pass, side, layer of a neighbour there
        self.likeness = functools.cache(lambda op: (facts.likeness(op), facts.modules(op)[-1:]))

    @functools.cached_property
    def children(self) -> list[list[int]]:
        return children_of(self.facts.parents)

    @functools.cached_property
    def passes(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for op, state in enumerate(self.states):
            if state >= 0:
                found.setdefault(state, []).append(op)
        return found

    def grow(self, free: Iterable[int]) -> None:
        waiting, tries = list(free), Counter[int]()
        while waiting:
            op = waiting.pop()
            tries[op] += 1
            if self.states[op] == FREE and tries[op] <= _MOST_TRIES:
                for new in self._join(op):
                    waiting += [near for below in (True, False) for near in self._beside(new, below)]

    def _beside(self, op: int, below: bool) -> list[int]:
        node = self.facts.nodes[op]
        near = self.children[node] if below else self.facts.parents[node]
        return [self.op_of[other] for other in near if other in self.op_of]

    def _join(self, op: int) -> list[int]:
        """Find its like beside another pass; returns the operations that have got a layer."""
        states = self.states
        for below in (True, False):
            for one in self._beside(op, not below):  # what stands below a pass has it as a parent
                if states[one] < 0:
                    continue
                self._search(states[one], below, self.facts.types[op])
                pass_, like = self.met.setdefault((states[one], below, self.likeness(op)), (one, op))
                if pass_ == one or like == op or not self._apart((op, one), (like, pass_), below):
                    continue
                if states[like] == FREE:
                    return self._give(self.fresh, {op: (one, below), like: (pass_, below)})
                if states[like] >= 0 and (one, below, states[like]) not in self.taken:
                    return self._give(states[like], {op: (one, below)})
        return []

    def _give(self, layer: int, places: Mapping[int, tuple[int, bool]]) -> list[int]:
        for op, (pass_, below) in places.items():
            self.states[op] = layer
            self.passes.setdefault(layer, []).append(op)
            self.taken.add((pass_, below, layer))
        self.fresh = max(self.fresh, layer + 1)
        return list(places)

    def _search(self, layer: int, below: bool, function: str) -> None:
        """Note what stands beside the passes of a layer and has a layer already."""
        if (layer, below, function) in self.searched:
            return
        self.searched.add((layer, below, function))
        for one in self.passes[layer]:
            for near in self._beside(one, below):
                if self.states[near] >= 0 and self.facts.types[near] == function:
                    self.taken.add((one, below, self.states[near]))
                    self.met.setdefault((layer, below, self.likeness(near)), (one, near))

    def _apart(self, first: tuple[int, int], second: tuple[int, int], below: bool) -> bool:
        """They belong to different passes, and not one after the other to the same, as in `a + b + c`."""
        (early, early_pass), (late, late_pass) = sorted((first, second))
        if (early < late_pass) if below else (early_pass < late):
            return True
        nodes, parents = self.facts.nodes, self.facts.parents
        waiting, seen = [nodes[late]], set[int]()
        while waiting and len(seen) < _FARTHEST:
            node = waiting.pop()
            if node == nodes[early]:
                return False
            if node > nodes[early] and node not in seen:
                seen.add(node)
                waiting += parents[node]
        return not waiting

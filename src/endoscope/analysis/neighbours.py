"""Condition 2: what repeats beside the passes of a layer with parameters is a layer as well, grown outwards.

    fc ─► add ─► mul ─► fc ─► add ─► mul ─► fc ...         between two uses of fc lies the gap "add mul"

A statement that runs again in a gap behind (or else before) the same layer is a pass of one layer, whatever else the
gap contains: a first step may differ, a branch may be skipped. What is left is compared along the edges of the
graph, where code that was written out twice has to match exactly.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from endoscope.analysis.opfacts import BODY, FREE, WALL, OpFacts

ABOVE, BELOW = "above", "below"


def grow(facts: OpFacts, states: list[int], symbols: Sequence[int]) -> None:
    """Put the layers of neighbours into `states`."""
    parametric = max(states) + 1
    _grow_in_gaps(states, symbols)
    free = [op for op, state in enumerate(states) if state == FREE]
    if free:
        _Edges(facts, states, parametric, free).grow(free)


def _grow_in_gaps(states: list[int], symbols: Sequence[int]) -> None:
    behind: dict[tuple[int, Hashable], list[int]] = {}  # layer, name -> end of the first gap, operations
    before: dict[tuple[int, Hashable], list[int]] = {}  # layer, name -> operations
    for layer, ops, end in _gaps(states):
        for op, name in zip(ops, _names(ops, symbols), strict=True):
            if layer < 0:
                before.setdefault((end, name), []).append(op)
            elif (layer, name) in behind:
                behind[layer, name].append(op)
            else:
                behind[layer, name] = [end, op]
    fresh = max(states) + 1
    known: dict[tuple[int, Hashable], int] = {}  # end of a gap, name -> layer
    for (_, name), (end, *ops) in behind.items():
        if len(ops) == 1:
            before.setdefault((end, name), []).append(ops[0])
            continue
        layer = known.setdefault((end, name), fresh) if end >= 0 else fresh
        fresh += layer == fresh
        for op in ops:
            states[op] = layer
    for (end, name), ops in before.items():
        if end >= 0 and ((end, name) in known or len(ops) > 1):
            layer = known.setdefault((end, name), fresh)
            fresh += layer == fresh
            for op in ops:
                states[op] = layer


def _gaps(states: list[int]) -> list[tuple[int, list[int], int]]:
    """Stretches without parameters, with the layers before and behind them (or WALL)."""
    gaps: list[tuple[int, list[int], int]] = []
    layer, ops = WALL, []
    for op, state in enumerate(states):
        if state == FREE or state == BODY:
            ops.append(op)
        elif state >= WALL:
            if ops:
                gaps.append((layer, ops, state))
                ops = []
            layer = state
    if ops:
        gaps.append((layer, ops, WALL))
    return gaps


def _names(ops: list[int], symbols: Sequence[int]) -> Sequence[Hashable]:
    """The statement of each operation; when it runs again in the same gap, which time that is."""
    names = [symbols[op] for op in ops]
    if len(set(names)) == len(names):
        return names
    times: dict[int, int] = {}
    told: list[Hashable] = []
    for name in names:
        times[name] = nth = times.get(name, 0) + 1
        told.append(name if nth == 1 else (name, nth))
    return told


class _Edges:
    """Growth along the edges of the graph, from the passes of a layer to operations that belong to none yet.

    Such an operation becomes a pass if another pass of the layer has the like on the same side: the same function
    with the same plain arguments in the same module.
    """

    def __init__(self, facts: OpFacts, states: list[int], parametric: int, free: Iterable[int]) -> None:
        self.facts, self.states, self.parametric = facts, states, parametric
        self.op_of = {node: op for op, node in enumerate(facts.nodes)}
        self.children = self._children(free)
        self.fresh = max(states) + 1
        self.met: dict[Hashable, tuple[int, int]] = {}  # layer, side, likeness -> pass, neighbour
        self.likeness: dict[int, Hashable] = {}

    def _children(self, free: Iterable[int]) -> dict[int, list[int]]:
        nodes, parents = self.facts.nodes, self.facts.parents
        children: dict[int, list[int]] = {nodes[op]: [] for op in free}
        for op, node in enumerate(nodes):
            for parent in parents[node]:
                if parent in children:
                    children[parent].append(op)
        return children

    def grow(self, free: Iterable[int]) -> None:
        waiting = list(free)
        while waiting:
            op = waiting.pop()
            if self.states[op] == FREE and self._join(op):
                waiting += [near for _, near in self._neighbours(op) if self.states[near] == FREE]

    def _neighbours(self, op: int) -> list[tuple[str, int]]:
        """Operations beside it, and on which side of them it stands."""
        node = self.facts.nodes[op]
        parents = [self.op_of[parent] for parent in self.facts.parents[node] if parent in self.op_of]
        return [(BELOW, p) for p in parents] + [(ABOVE, c) for c in self.children.get(node, ())]

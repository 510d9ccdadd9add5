"""Running totals: `total = total + part` runs on what it made before, and is yet no loop in time.

Nothing but the total passes from one part to the next, and in whatever order the parts are taken, it is the same. Masks
that are put together with `&`, sums over experts and rows that are written into a table are all of this kind. So the
edge from one total to the next is left out where loops in time are told: in `x = x + f(x)` there is still the path
through `f`. A random walk, `x = x + torch.randn(4)`, is a loop in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import cached_property

from endoscope.analysis.flops import COPIES, VIEWS
from endoscope.analysis.recurrence.facts import OpFacts

_SUMS = frozenset(
    """add addbmm addcdiv addcmul addmm addmv addr baddbmm bitwise_and bitwise_or cat concat concatenate fmax fmin
    logaddexp logical_and logical_or maximum minimum mul multiply sub subtract""".split()
)
_WRITES = frozenset(
    """index_add index_copy index_put index_reduce masked_scatter scatter scatter_add scatter_reduce select_scatter
    setitem slice_scatter""".split()
)


_DRAWS = frozenset("rand randn randint randperm normal uniform bernoulli exponential random".split())
_MOVES = frozenset(VIEWS) | frozenset(COPIES)
_LONGEST_WAY = 8  # operations that only move a total before more is added to it


def without_totals(facts: OpFacts, keys: Sequence[int | None]) -> tuple[OpFacts, frozenset[int]]:
    """The same facts without the edges between totals, and the operations that make totals in this path."""
    last: dict[int, int] = {}  # layer -> node of its last pass
    cut: dict[int, tuple[int, ...]] = {}  # node -> the parents left to it
    totals: list[int] = []
    paths = _Paths(facts)
    places = {node: op for op, node in enumerate(facts.nodes)}
    drawn = _Drawn(facts)
    for op, (node, key) in enumerate(zip(facts.nodes, keys, strict=True)):
        if key is None or not (facts.types[op] in _SUMS or facts.types[op] in _WRITES):
            continue
        before = last.get(key, -1)
        last[key] = node
        path = paths.back(node, before) if before >= 0 else []
        if not path:
            continue
        others = {read for read in facts.reads(op) if read[0] not in path}  # parts of one tensor are different parts
        earlier = set(facts.reads(places[before]))
        if facts.types[op] in _WRITES or (others and others.isdisjoint(earlier) and not drawn.between(others, before)):
            first = path[-2] if len(path) > 1 else node
            cut[first] = tuple([parent for parent in facts.parents[first] if parent != before])
            totals.append(op)
    if not cut:
        return facts, frozenset()
    parents = list(facts.parents)
    for node, left in cut.items():
        parents[node] = left
    return replace(facts, parents=parents), frozenset(totals)


class _Drawn:
    """What is drawn at random while the code runs: a sum of that is a random walk, each state made from the last."""

    def __init__(self, facts: OpFacts) -> None:
        self._parents = facts.parents
        pairs = zip(facts.nodes, facts.types, strict=True)
        self._made = {node for node, type_ in pairs if type_ in _DRAWS and not facts.parents[node]}

    def between(self, reads: Set[tuple[int, int]], before: int) -> bool:
        """Whether one of these was drawn after the node `before`, or made from what was."""
        waiting = [node for node, _ in reads]
        while waiting:
            node = waiting.pop()
            if node > before:
                if node in self._made:
                    return True
                waiting += self._parents[node]
        return False


class _Paths:
    """From a total back to the one before, through operations that move it and serve nothing else."""

    def __init__(self, facts: OpFacts) -> None:
        self.facts = facts

    @cached_property
    def _moves(self) -> dict[int, int]:
        """Those that have one reader -> what they move."""
        facts = self.facts
        readers = Counter([parent for node in facts.nodes for parent in facts.parents[node]])
        moves = [n for n, type_ in zip(facts.nodes, facts.types, strict=True) if type_ in _MOVES and readers[n] == 1]
        return {node: facts.parents[node][0] for node in moves if len(facts.parents[node]) == 1}

    def back(self, node: int, before: int) -> list[int]:
        """The nodes on the path, `before` last; empty if there is none."""
        parents = self.facts.parents[node]
        if before in parents:
            return [before]
        for parent in parents:
            path = [parent]
            while path[-1] > before and len(path) <= _LONGEST_WAY and path[-1] in self._moves:
                path.append(self._moves[path[-1]])
            if path[-1] == before:
                return path
        return []

"""Paths through a graph: how many there are, and the first few, shortest first.

There can be more paths than atoms in the universe (two for each residual block, multiplied), so they are made one by
one. Only nodes that lie on some path are ever entered: every beginning can be completed, and the next path costs no
more than its own length times the number of branches on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from endoscope.analysis.structure.reach import Parents, ascend, descend


def shortest_paths(
    parents: Parents, children: Sequence[Sequence[int]], starts: Sequence[int], ends: Sequence[int]
) -> Iterator[list[int]]:
    """Every path from a start down to an end, as node numbers; among equally long ones the order is fixed."""
    rest = _steps_down(parents, children, starts, ends)
    last = set(ends)
    # Among equally long paths the one that has come farthest goes first: else all of them would grow side by side.
    waiting: list[tuple[int, int, int, int, Any]] = []
    count = 0
    for node in sorted(set(starts)):
        if rest[node] is not None:
            waiting.append((rest[node] or 0, 0, count, node, None))
            count += 1
    heapq.heapify(waiting)
    while waiting:
        _, minus_depth, _, node, before = heapq.heappop(waiting)
        if node < 0:  # an end, when its turn has come
            yield _unrolled(before)
            continue
        here = (node, before)
        if node in last:
            heapq.heappush(waiting, (-minus_depth, minus_depth - 1, count, -1, here))
            count += 1
        for child in children[node]:
            below = rest[child]
            if below is not None:
                heapq.heappush(waiting, (1 - minus_depth + below, minus_depth - 1, count, child, here))
                count += 1


def _steps_down(
    parents: Parents, children: Sequence[Sequence[int]], starts: Sequence[int], ends: Sequence[int]
) -> list[int | None]:
    """Fewest steps down to an end, for nodes on a path; None for all others."""
    below, above = descend(parents, starts), ascend(parents, ends)
    steps: list[int | None] = [None] * len(parents)
    last = set(ends)
    for node in range(len(parents) - 1, -1, -1):
        if below[node] and above[node]:
            found = [s + 1 for child in children[node] if (s := steps[child]) is not None]
            steps[node] = 0 if node in last else min(found)
    return steps


def _unrolled(link: Any) -> list[int]:
    path = []
    while link is not None:
        node, link = link
        path.append(node)
    return path[::-1]


def count_paths(parents: Parents, starts: Sequence[int], ends: Sequence[int]) -> int:
    """How many there are: exact, however many."""
    above = ascend(parents, ends)
    counts = [0] * len(parents)
    first = set(starts)
    for node, own in enumerate(parents):
        if above[node]:
            counts[node] = sum([counts[parent] for parent in own]) + (node in first)
    return sum(counts[node] for node in set(ends))

"""Reachability and distances over a graph given as parent lists in topological order.

Operations are numbered in execution order, so every parent stands before its child and one sweep is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Parents = Sequence[Sequence[int]]


def descend(parents: Parents, start: Iterable[int]) -> bytearray:
    """1 for every node that is in `start` or has an ancestor there."""
    marked = bytearray(len(parents))
    for node in start:
        marked[node] = 1
    for node, above in enumerate(parents):
        if not marked[node]:
            for parent in above:
                if marked[parent]:
                    marked[node] = 1
                    break
    return marked


def ascend(parents: Parents, start: Iterable[int]) -> bytearray:
    """1 for every node that is in `start` or has a descendant there."""
    marked = bytearray(len(parents))
    for node in start:
        marked[node] = 1
    for node in range(len(parents) - 1, -1, -1):
        if marked[node]:
            for parent in parents[node]:
                marked[parent] = 1
    return marked


def children_of(parents: Parents) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    return children


def distances(parents: Parents, start: Iterable[int]) -> tuple[list[int | None], list[int | None]]:
    """Fewest and most steps from `start` down to each node; None where no path leads."""
    nearest: list[int | None] = [None] * len(parents)
    farthest: list[int | None] = [None] * len(parents)
    for node in start:
        nearest[node] = farthest[node] = 0
    for node, above in enumerate(parents):
        for parent in above:
            low, high = nearest[parent], farthest[parent]
            if low is None or high is None:
                continue
            known_low, known_high = nearest[node], farthest[node]
            nearest[node] = low + 1 if known_low is None else min(known_low, low + 1)
            farthest[node] = high + 1 if known_high is None else max(known_high, high + 1)
    return nearest, farthest


def reverse(parents: Parents) -> list[list[int]]:
    """The graph upside down, again in topological order: node i becomes `len - 1 - i`."""
    last = len(parents) - 1
    return [[last - child for child in below] for below in reversed(children_of(parents))]

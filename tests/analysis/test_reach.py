"""Reachability and distances, each against walking every path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.structure.reach import ascend, children_of, descend, distances, reverse

Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, list[int]]:
    """Up to nine nodes whose parents stand before them, and a few to start from."""
    size = draw(st.integers(1, 9))
    parents: Graph = [
        draw(st.lists(st.integers(0, node - 1), max_size=3, unique=True)) if node else [] for node in range(size)
    ]
    return parents, draw(st.lists(st.integers(0, size - 1), max_size=3, unique=True))


def paths(parents: Sequence[Sequence[int]], start: int, end: int) -> Iterator[int]:
    """Length of every path from start down to end."""
    if start == end:
        yield 0
    for parent in parents[end]:
        for length in paths(parents, start, parent):
            yield length + 1


@given(graphs())
def test_below(case: tuple[Graph, list[int]]) -> None:
    parents, start = case
    expected = [any(True for s in start for _ in paths(parents, s, node)) for node in range(len(parents))]
    assert list(map(bool, descend(parents, start))) == expected


@given(graphs())
def test_above(case: tuple[Graph, list[int]]) -> None:
    parents, start = case
    expected = [any(True for s in start for _ in paths(parents, node, s)) for node in range(len(parents))]
    assert list(map(bool, ascend(parents, start))) == expected


@given(graphs())
def test_children_are_the_other_side_of_parents(case: tuple[Graph, list[int]]) -> None:
    parents, _ = case
    edges = {(p, c) for c, above in enumerate(parents) for p in above}
    assert {(p, c) for p, below in enumerate(children_of(parents)) for c in below} == edges


@given(graphs())
def test_shortest_and_longest_paths(case: tuple[Graph, list[int]]) -> None:
    parents, start = case
    nearest, farthest = distances(parents, start)
    for node in range(len(parents)):
        lengths = [length for s in start for length in paths(parents, s, node)]
        assert nearest[node] == (min(lengths) if lengths else None)
        assert farthest[node] == (max(lengths) if lengths else None)


@given(graphs())
def test_reversed_twice_is_the_same(case: tuple[Graph, list[int]]) -> None:
    parents, _ = case
    upside_down = reverse(parents)
    assert all(parent < node for node, above in enumerate(upside_down) for parent in above)
    assert [sorted(above) for above in reverse(upside_down)] == [sorted(above) for above in parents]


def test_a_diamond() -> None:
    parents = [[], [0], [0], [1, 2], []]
    assert list(descend(parents, [0])) == [1, 1, 1, 1, 0]
    assert list(ascend(parents, [3])) == [1, 1, 1, 1, 0]
    assert distances(parents, [0]) == ([0, 1, 1, 2, None], [0, 1, 1, 2, None])

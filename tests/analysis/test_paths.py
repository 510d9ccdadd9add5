"""Paths, against walking all of them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.structure.paths import count_paths, shortest_paths
from endoscope.analysis.structure.reach import children_of
from tests.analysis.random_graphs import Parents, all_paths, parent_lists


@st.composite
def questions(draw: st.DrawFn) -> tuple[Parents, list[int], list[int]]:
    parents = draw(parent_lists())
    some = st.lists(st.integers(0, len(parents) - 1), min_size=1, max_size=3, unique=True)
    return parents, draw(some), draw(some)


@given(questions())
def test_every_path_once_and_the_shortest_first(case: tuple[Parents, list[int], list[int]]) -> None:
    parents, starts, ends = case
    slow = [path for start in starts for end in ends for path in all_paths(parents, start, end)]
    found = list(shortest_paths(parents, children_of(parents), starts, ends))
    assert sorted(found) == sorted(slow)
    assert [len(path) for path in found] == sorted(len(path) for path in slow)


@given(questions())
def test_their_number(case: tuple[Parents, list[int], list[int]]) -> None:
    parents, starts, ends = case
    slow = sum(1 for start in starts for end in ends for _ in all_paths(parents, start, end))
    assert count_paths(parents, starts, ends) == slow


def test_more_paths_than_anybody_can_list() -> None:
    """A thousand diamonds, all paths equally long: the first ones come at once, and all are counted."""
    parents: Parents = [[]]
    for _ in range(1000):
        top = len(parents) - 1
        parents += [[top], [top], [len(parents), len(parents) + 1]]
    end = len(parents) - 1
    assert count_paths(parents, [0], [end]) == 2**1000
    first = list(itertools.islice(shortest_paths(parents, children_of(parents), [0], [end]), 5))
    assert {len(path) for path in first} == {2001}
    assert len({tuple(path) for path in first}) == 5


def test_residual_blocks_are_skipped_first() -> None:
    parents: Parents = [[]]
    for _ in range(500):  # x + f(x)
        top = len(parents) - 1
        parents += [[top], [top, len(parents)]]
    end = len(parents) - 1
    lengths = [len(p) for p in itertools.islice(shortest_paths(parents, children_of(parents), [0], [end]), 502)]
    assert lengths == [501, *[502] * 500, 503]


def test_a_chain_of_50000() -> None:
    parents: Parents = [[i - 1] if i else [] for i in range(50_000)]
    assert [len(p) for p in shortest_paths(parents, children_of(parents), [0], [49_999])] == [50_000]

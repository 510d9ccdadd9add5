"""Contraction, against looking at every path."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.structure import contract as module
from endoscope.analysis.structure.contract import contract, contract_links, join, members
from endoscope.schema.graph import Use
from tests.analysis.random_graphs import Links, Parents, all_paths, choices, link_lists, parent_lists


def slow(parents: Parents, chosen: list[int]) -> list[list[int]]:
    """An edge wherever some path leads through no other chosen node."""
    return [
        [
            a
            for a, source in enumerate(chosen)
            if a != b and any(_is_free(p, chosen) for p in all_paths(parents, source, n))
        ]
        for b, n in enumerate(chosen)
    ]


def _is_free(path: list[int], chosen: list[int]) -> bool:
    return not set(path[1:-1]) & set(chosen)


def slow_links(links: Links, chosen: list[int]) -> list[dict[int, set[Use]]]:
    """First output and last argument of every free path."""
    parents = [[parent for parent, _ in above] for above in links]
    uses = {(parent, node): own for node, above in enumerate(links) for parent, own in above}
    found: list[dict[int, set[Use]]] = []
    for node in chosen:
        entry: dict[int, set[Use]] = {}
        for a, source in enumerate(chosen):
            for path in all_paths(parents, source, node):
                if len(path) > 1 and _is_free(path, chosen):
                    entry.setdefault(a, set()).update(_ends(path, uses))
        found.append(entry)
    return found


def _ends(path: list[int], uses: dict[tuple[int, int], tuple[Use, ...]]) -> set[Use]:
    first, last = uses[path[0], path[1]], uses[path[-2], path[-1]]
    if len(path) == 2:
        return set(first)
    return {(argument, output) for argument, _ in last for _, output in first}


@given(st.data())
def test_an_edge_is_a_path_through_nothing_else_that_was_chosen(data: st.DataObject) -> None:
    parents = data.draw(parent_lists())
    chosen = data.draw(choices(len(parents)))
    assert [list(above) for above in contract(parents, chosen)] == slow(parents, chosen)


@given(st.data())
def test_arguments_and_outputs_are_those_of_the_ends_of_the_paths(data: st.DataObject) -> None:
    links = data.draw(link_lists())
    chosen = data.draw(choices(len(links)))
    found = contract_links(links, chosen)
    assert [{parent: set(uses) for parent, uses in above} for above in found] == slow_links(links, chosen)
    assert all([p for p, _ in above] == sorted({p for p, _ in above}) for above in found)


@given(st.data(), st.integers(0, 3))
def test_small_and_large_fronts_are_the_same(data: st.DataObject, small: int) -> None:
    parents = data.draw(parent_lists())
    chosen = data.draw(choices(len(parents)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL", small)
        assert [list(above) for above in contract(parents, chosen)] == slow(parents, chosen)


@given(st.lists(st.frozensets(st.integers(0, 200), max_size=60), max_size=5))
def test_a_union_of_fronts(sets: list[frozenset[int]]) -> None:
    joined = join(sets)
    assert list(members(joined)) == sorted(frozenset().union(*sets))
    assert list(members(join([joined, *sets]))) == list(members(joined))


def test_choosing_everything_changes_nothing() -> None:
    parents: Parents = [[], [0], [0, 1], [2], [1, 3]]
    assert contract(parents, list(range(5))) == [(), (0,), (0, 1), (2,), (1, 3)]
    assert contract(parents, []) == []


COUNT = 50_000
HALF = COUNT // 2


def chain(node: int) -> list[int]:
    return [node - 1] if node else []


def residual(node: int) -> list[int]:
    """Blocks of one odd node each; even nodes are the stream."""
    return [node - 1] if node % 2 else [node - 1, node - 2] if node else []


def running_sum(node: int) -> list[int]:
    """Even nodes add the odd one before them to all before that."""
    return [] if node % 2 or not node else [node - 1, node - 2]


def comb(node: int) -> list[int]:
    """A chain, and one reader for each of its links."""
    return chain(node) if node < HALF else [node - HALF]


@pytest.mark.parametrize(
    ("parents_of", "chosen", "edges"),
    [
        (chain, range(0, COUNT, 2), HALF - 1),
        (residual, range(0, COUNT, 2), HALF - 1),
        (running_sum, [*range(1, COUNT - 2, 2), COUNT - 2], HALF - 1),
        (comb, [0, *range(HALF, COUNT)], HALF),
    ],
)
def test_long_graphs_are_no_problem(parents_of: Callable[[int], list[int]], chosen: list[int], edges: int) -> None:
    parents = [parents_of(node) for node in range(COUNT)]
    started = time.process_time()
    found = contract(parents, list(chosen))
    assert time.process_time() - started < 5
    assert sum(map(len, found)) == edges


def test_a_dense_graph_is_no_problem() -> None:
    parents = [list(range(i)) for i in range(600)]
    started = time.process_time()
    found = contract(parents, list(range(0, 600, 3)))
    assert time.process_time() - started < 5
    assert found == [tuple(range(i)) for i in range(200)]

"""Crossings are counted, and sorting never makes more of them."""

from __future__ import annotations

from itertools import combinations

import pytest

from endoscope.layout.level import Edge, Level
from endoscope.layout.net import Net
from endoscope.layout.order import crossings, sort_rows
from tests.layout.drawn import random_scene


def flat(seed: int) -> Net:
    scene = random_scene(seed)
    count = len(scene.parent)
    middle = ((50.0,),) * count
    edges = tuple(Edge(one, other) for one, other in scene.edges)
    return Net(Level((100.0,) * count, (36.0,) * count, middle, middle, edges, (), (), (), (-1,) * count))


def counted_slowly(net: Net, place: list[int]) -> int:
    return sum(
        (place[one.above] - place[other.above]) * (place[one.below] - place[other.below]) < 0
        for one, other in combinations(net.segments, 2)
        if net.rank[one.above] == net.rank[other.above]
    )


@pytest.mark.parametrize("seed", range(10))
def test_sorting_removes_crossings(seed: int) -> None:
    net = flat(seed)
    place = [0] * len(net.rank)
    for row in net.rows:
        for number, vertex in enumerate(row):
            place[vertex] = number
    before = counted_slowly(net, place)
    assert crossings(net, place) == before
    after = sort_rows(net)
    assert crossings(net, after) == counted_slowly(net, after) <= before

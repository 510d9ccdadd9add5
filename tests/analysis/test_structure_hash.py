"""The structural hash: what changes it, and what does not."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.structure.graph import Graph
from endoscope.schema.graph import GraphNode
from tests.analysis.random_graphs import Parents, graph_of, parent_lists


def node(type_: str, kind: str = "computed", settings: str = "", shape: tuple[int, ...] = ()) -> GraphNode:
    return GraphNode(0, type_, type_, kind, (), (shape,), settings=settings)


NODES = [
    node("input", "input", shape=(2, 4)),
    node("input", "input", shape=(2, 4)),
    node("parameter", "parameter", shape=(4, 4)),
    node("linear", shape=(2, 4)),
    node("linear", shape=(2, 4)),
    node("sub", settings="(., ., alpha=2)", shape=(2, 4)),
    node("relu"),  # nobody reads it
    node("output", "output", shape=(2, 4)),
]
EDGES = [
    (0, 3, (("0", 0),)),
    (2, 3, (("1", 0),)),
    (1, 4, (("0", 0),)),
    (2, 4, (("1", 0),)),
    (3, 5, (("0", 0),)),
    (4, 5, (("1", 0),)),
    (3, 6, (("0", 0),)),
    (5, 7, (("0", 0),)),
]
REFERENCE = Graph(NODES, EDGES, "Net").hash


def changed(position: int, /, **fields: object) -> str:
    nodes = [replace(n, **fields) if i == position else n for i, n in enumerate(NODES)]  # type: ignore[arg-type]
    return Graph(nodes, EDGES, "Net").hash


def rewired(number: int, edge: tuple[int, int, tuple[tuple[str, int], ...]] | None) -> str:
    edges = [e for i, e in enumerate(EDGES) if i != number]
    return Graph(NODES, [*edges, edge] if edge else edges, "Net").hash


def test_the_text_is_fixed() -> None:
    """Whoever changes what is hashed must change the version in it, and this value."""
    assert REFERENCE == "ce6b5af7dc145c84f0bc5fd00098679e"


def test_what_changes_it() -> None:
    different = [
        changed(5, type="add"),
        changed(5, settings="(., .)"),
        changed(2, shapes=((4, 5),)),
        changed(6, type="sigmoid"),
        rewired(5, (4, 5, (("2", 0),))),  # another argument
        rewired(5, (4, 5, (("other", 0),))),
        rewired(5, (4, 5, (("1", 1),))),  # another output
        rewired(5, (3, 5, (("1", 0),))),  # another parent
        rewired(2, (0, 4, (("0", 0),))),  # the other input
        rewired(6, None),
        rewired(6, (4, 6, (("0", 0),))),
    ]
    assert len({REFERENCE, *different}) == len(different) + 1


def test_what_does_not_change_it() -> None:
    same = [
        changed(3, label="fc", keys=("encoder",), number=77, calls=("encoder:1",), shapes=((9, 4),)),
        changed(0, shapes=((9, 4),)),
        Graph(NODES, EDGES[::-1], "Other").hash,
        Graph([*NODES, node("parameter", "parameter", shape=(9,)), node("constant", "constant")], EDGES, "Net").hash,
    ]
    assert set(same) == {REFERENCE}


def test_which_branch_ran_first_does_not_matter() -> None:
    order = [0, 1, 2, 4, 3, 5, 6, 7]  # old position at each new position
    place = {old: new for new, old in enumerate(order)}
    edges = [(place[a], place[b], uses) for a, b, uses in EDGES]
    assert Graph([NODES[i] for i in order], edges, "Net").hash == REFERENCE


def test_a_shared_weight_is_not_two_equal_weights() -> None:
    nodes = [*NODES[:3], NODES[2], *NODES[3:]]
    shift = [(a + (a > 2), b + 1, uses) for a, b, uses in EDGES]
    two = [(3 if (a, b) == (2, 5) else a, b, uses) for a, b, uses in shift]
    shared, apart = Graph(nodes, shift, "Net").hash, Graph(nodes, two, "Net").hash
    assert shared == REFERENCE != apart


def test_a_value_used_twice_is_not_two_equal_values() -> None:
    first, last = node("input", "input"), [node("add"), node("output", "output")]
    once = [(0, 1, (("0", 0),)), (1, 2, (("0", 0), ("1", 0))), (2, 3, (("0", 0),))]
    twice = [(0, 1, (("0", 0),)), (0, 2, (("0", 0),)), (1, 3, (("0", 0),)), (2, 3, (("1", 0),)), (3, 4, (("0", 0),))]
    one = Graph([first, node("sin"), *last], once, "Net")
    two = Graph([first, node("sin"), node("sin"), *last], twice, "Net")
    assert one.hash != two.hash


def test_arguments_are_ordered_as_numbers() -> None:
    def graph(uses: list[str]) -> str:
        nodes = [node(f"input{i}") for i in range(12)] + [node("cat"), node("output", "output")]
        edges = [(i, 12, ((uses[i], 0),)) for i in range(12)]
        return Graph(nodes, [*edges, (12, 13, (("0", 0),))], "Net").hash

    inside = [f"0[{i}]" for i in range(12)]
    assert graph(inside) != graph([*inside[:2], "0[3]", "0[2]", *inside[4:]])


@given(parent_lists(8), st.randoms(use_true_random=False))
def test_any_order_of_execution_gives_the_same(parents: Parents, chance: random.Random) -> None:
    """Another order that keeps parents before children, with the same outputs at the end."""
    graph = graph_of([*parents, list(range(len(parents)))])  # the last node reads all: it is the one root
    left, order = set(range(len(graph))), []
    while left:
        ready = sorted(n for n in left if not left & set(graph._parents[n]))
        order.append(chance.choice(ready))
        left.discard(order[-1])
    inputs = [n for n in range(len(graph)) if graph.nodes[n].kind == "input"]
    if [n for n in order if n in inputs] != inputs:  # which input is which does matter
        return
    place = {old: new for new, old in enumerate(order)}
    edges = [(place[a], place[b], uses) for b, own in enumerate(graph._links) for a, uses in own]
    assert Graph([graph.nodes[i] for i in order], edges, "other").hash == graph.hash


@given(parent_lists(7), st.data())
def test_any_edge_counts(parents: Parents, data: st.DataObject) -> None:
    whole: Parents = [*parents, list(range(len(parents)))]
    edges = [(a, b) for b, above in enumerate(whole) for a in above]
    gone = data.draw(st.sampled_from(edges))
    without = [[a for a in above if (a, b) != gone] for b, above in enumerate(whole)]
    nodes, other = graph_of(whole), graph_of(without)
    if other.nodes == nodes.nodes:  # else a node became an input: another graph anyway
        assert other.hash != nodes.hash


def test_a_chain_of_50000_does_not_recurse() -> None:
    assert len(graph_of([[i - 1] if i else [] for i in range(50_000)]).hash) == 32

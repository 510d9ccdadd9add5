"""Random small graphs, and slow ways to ask them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from endoscope.analysis.structure.graph import Graph
from endoscope.schema.graph import GraphNode, Use

Parents = list[list[int]]
Links = list[list[tuple[int, tuple[Use, ...]]]]

TYPES = ("relu", "conv2d", "add")


@st.composite
def parent_lists(draw: st.DrawFn, most: int = 9) -> Parents:
    """Nodes whose parents stand before them."""
    size = draw(st.integers(1, most))
    return [draw(st.lists(st.integers(0, node - 1), max_size=3, unique=True)) if node else [] for node in range(size)]


@st.composite
def link_lists(draw: st.DrawFn, most: int = 8) -> Links:
    """The same with arguments and outputs."""
    uses = st.lists(st.tuples(st.sampled_from(["0", "1", "x"]), st.integers(0, 1)), min_size=1, max_size=2, unique=True)
    return [[(parent, tuple(draw(uses))) for parent in above] for above in draw(parent_lists(most))]


def choices(size: int, least: int = 0) -> st.SearchStrategy[list[int]]:
    """Some of the nodes, ascending."""
    return st.sets(st.integers(0, size - 1), min_size=least).map(sorted)


def all_paths(parents: Sequence[Sequence[int]], start: int, end: int) -> Iterator[list[int]]:
    """Every path from start down to end, by walking all of them."""
    if start == end:
        yield [end]
    for parent in parents[end]:
        for path in all_paths(parents, start, parent):
            yield [*path, end]


def graph_of(parents: Parents, types: Sequence[str] = TYPES) -> Graph:
    """Nodes n0, n1, ... of changing types; the argument is the number of the parent."""
    nodes = [
        GraphNode(i, f"n{i}", types[i % len(types)], "computed" if above else "input", (f"n{i}", f"short{i}"))
        for i, above in enumerate(parents)
    ]
    edges = [
        (parent, node, ((str(place), 0),)) for node, above in enumerate(parents) for place, parent in enumerate(above)
    ]
    return Graph(nodes, edges, "random")


def numbers(nodes: Sequence[GraphNode]) -> list[int]:
    return [node.number for node in nodes]

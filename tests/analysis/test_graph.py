"""The graph as plain data: every question against walking all paths."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.structure.graph import Graph
from endoscope.errors import BadArgument, LookupFailed, NothingMatches
from endoscope.schema.graph import GraphNode
from endoscope.schema.ops import SourceLine
from tests.analysis.random_graphs import Parents, all_paths, choices, graph_of, numbers, parent_lists


def leads(parents: Parents, start: int, end: int) -> bool:
    return start != end and any(True for _ in all_paths(parents, start, end))


@given(parent_lists(), st.data())
def test_neighbours(parents: Parents, data: st.DataObject) -> None:
    graph, node = graph_of(parents), data.draw(st.integers(0, len(parents) - 1))
    every = range(len(parents))
    assert numbers(graph.parents(node)) == sorted(parents[node])
    assert numbers(graph.children(node)) == [n for n in every if node in parents[n]]
    assert numbers(graph.siblings(node)) == [n for n in every if n != node and set(parents[n]) & set(parents[node])]
    assert numbers(graph.ancestors(node)) == [n for n in every if leads(parents, n, node)]
    assert numbers(graph.descendants(node)) == [n for n in every if leads(parents, node, n)]


@given(parent_lists(), st.data())
def test_several_nodes_are_asked_together(parents: Parents, data: st.DataObject) -> None:
    graph = graph_of(parents)
    some = data.draw(choices(len(parents), 1))
    for question in (graph.parents, graph.children, graph.siblings, graph.ancestors, graph.descendants):
        alone = {number for node in some for number in numbers(question(node))}
        assert numbers(question([f"n{node}" for node in some])) == sorted(alone)


@given(parent_lists(), st.data())
def test_distances_and_paths(parents: Parents, data: st.DataObject) -> None:
    graph = graph_of(parents)
    start, end = (data.draw(st.integers(0, len(parents) - 1)) for _ in range(2))
    slow = sorted(all_paths(parents, start, end), key=len)
    assert graph.distance(start, end) == (len(slow[0]) - 1 if slow else None)
    assert graph.distance(start, end, longest=True) == (len(slow[-1]) - 1 if slow else None)
    assert graph.path_count(start, end) == len(slow)
    assert sorted(map(numbers, graph.paths(start, end))) == sorted(slow)
    assert len(graph.paths(start, end, limit=2)) == min(2, len(slow))


@given(parent_lists(), st.data())
def test_contraction_agrees_with_itself_in_two_steps(parents: Parents, data: st.DataObject) -> None:
    """Leaving out some nodes and then others is leaving out all of them."""
    graph = graph_of(parents)
    some = data.draw(choices(len(parents)))
    fewer = data.draw(st.lists(st.sampled_from(some), unique=True)) if some else []
    direct, stepwise = graph.contract(sorted(fewer)), graph.contract(some).contract([f"n{n}" for n in fewer])
    assert direct.nodes == stepwise.nodes
    assert {(e.source.number, e.target.number) for e in direct.edges} == {
        (e.source.number, e.target.number) for e in stepwise.edges
    }


@given(parent_lists(), st.data())
def test_ancestors_survive_a_contraction(parents: Parents, data: st.DataObject) -> None:
    graph, some = graph_of(parents), data.draw(choices(len(parents), 1))
    part = graph.contract(some)
    for node in some:
        assert numbers(part.ancestors(f"n{node}")) == [n for n in numbers(graph.ancestors(node)) if n in some]


@given(parent_lists(), st.data())
def test_json_and_back(parents: Parents, data: st.DataObject) -> None:
    graph = graph_of(parents).contract(data.draw(choices(len(parents))))
    copy = Graph.from_dict(json.loads(json.dumps(graph.to_dict())))
    assert copy.nodes == graph.nodes
    assert copy.edges == graph.edges
    assert copy.hash == graph.hash
    assert copy.to_dict() == graph.to_dict()


# ---- a graph that one can read -------------------------------------------------------------------

LINE = SourceLine("net.py", 3, "forward")
NODES = [
    GraphNode(10, "input_1", "input", "input", ("input_1",), ((2, 4),)),
    GraphNode(11, "a.weight", "parameter", "parameter", ("a.weight",), ((4, 4),), ("a:1",)),
    GraphNode(12, "linear_1:1", "linear", "computed", ("linear_1", "a"), ((2, 4),), ("a:1", "a.fc:1"), LINE, "(2)"),
    GraphNode(13, "chunk_1", "chunk", "computed", ("chunk_1",), ((2, 2), (2, 2)), ("b:1",)),
    GraphNode(14, "linear_1:2", "linear", "computed", ("linear_1", "a"), ((2, 4),), ("a:2", "a.fc:2")),
    GraphNode(15, "output_1", "output", "output", ("output_1",), ((2, 4),)),
]
EDGES = [
    (0, 2, (("0", 0),)),
    (1, 2, (("1", 0),)),
    (2, 3, (("0", 0),)),
    (3, 4, (("1", 0), ("0", 1))),
    (1, 4, (("bias", 0),)),
    (4, 5, (("0", 0),)),
]


@pytest.fixture
def graph() -> Graph:
    return Graph(NODES, EDGES, "Net")


def labels(nodes: object) -> list[str]:
    return [node.label for node in nodes]  # type: ignore[attr-defined]


def test_keys(graph: Graph) -> None:
    assert (
        labels(graph.parents("chunk_1"))
        == labels(graph.parents(3))
        == labels(graph.parents(NODES[3]))
        == ["linear_1:1"]
    )
    assert labels(graph.parents("linear_1")) == ["input_1", "a.weight", "chunk_1"]
    assert labels(graph.children("type:linear & in:a")) == ["chunk_1", "output_1"]
    assert labels(graph.parents(["chunk_1", -1])) == ["linear_1:1", "linear_1:2"]
    assert "chunk_1" in graph and NODES[3] in graph and 5 in graph
    assert "chunk_2" not in graph and 6 not in graph and 2.5 not in graph and "type:chunk" not in graph


def test_the_whole(graph: Graph) -> None:
    assert len(graph) == 6
    assert list(graph) == NODES == list(graph.nodes)
    assert repr(graph) == "<Graph of Net: 6 nodes, 6 edges>"
    assert [str(edge) for edge in graph.edges][3:] == [
        "chunk_1 -> linear_1:2 (1, 0)",
        "a.weight -> linear_1:2 (bias)",
        "linear_1:2 -> output_1 (0)",
    ]
    assert graph.edges[3].outputs == (0, 1)


def test_operations_of_a_module(graph: Graph) -> None:
    assert labels(graph.ops_of("a")) == labels(graph.ops_of("a.fc")) == ["linear_1:1", "linear_1:2"]
    assert labels(graph.ops_of("a:2")) == ["linear_1:2"]
    assert labels(graph.ops_of("")) == ["linear_1:1", "chunk_1", "linear_1:2"]
    with pytest.raises(LookupFailed, match=r"No module of Net that ran is called 'c'. Nearest: 'a"):
        graph.ops_of("c")


def test_a_contraction_keeps_what_is_known(graph: Graph) -> None:
    part = graph.contract(["kind:input", "type:linear"])
    assert part.nodes == (NODES[0], NODES[2], NODES[4])
    assert [(e.source.label, e.target.label, e.uses) for e in part.edges] == [
        ("input_1", "linear_1:1", (("0", 0),)),
        ("linear_1:1", "linear_1:2", (("1", 0), ("0", 0))),
    ]
    assert labels(part.select("child_of(kind:input)")) == ["linear_1:1"]
    with pytest.raises(LookupFailed, match="No node of Net is called 'chunk_1'"):
        part.parents("chunk_1")


def test_relations(graph: Graph) -> None:
    assert labels(graph.select("type:linear & descendant_of(type:chunk)")) == ["linear_1:2"]
    assert labels(graph.select("parent_of(type:linear) & !kind:parameter")) == ["input_1", "chunk_1"]
    assert labels(graph.select("sibling_of(linear_1) & type:linear")) == ["linear_1:1", "linear_1:2"]


def test_what_does_not_exist(graph: Graph) -> None:
    with pytest.raises(LookupFailed, match=r"No node of Net is called 'chnk_1'. Nearest: 'chunk_1'"):
        graph.ancestors("chnk_1")
    with pytest.raises(LookupFailed, match=r"There is no node 2\.5"):
        graph.ancestors(2.5)
    with pytest.raises(NothingMatches, match=r"'type:chnk' matches no operation of Net. Nearest: type:chunk"):
        graph.ancestors("type:chnk")
    with pytest.raises(NothingMatches, match=r"Nothing in it matches 'type:liner'. Nearest: type:linear"):
        graph.select("type:chunk & child_of(type:liner)")
    with pytest.raises(NothingMatches, match="Each part of it matches something"):
        graph.contract("type:chunk & type:linear")
    assert graph.select("type:chunk & type:linear") == ()  # a question may have the answer "none"


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, None])
def test_a_limit_that_is_none(graph: Graph, limit: object) -> None:
    with pytest.raises(BadArgument, match="whole number from 1 on"):
        graph.paths(0, 5, limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("edge", [(3, 3), (4, 2), (0, 6), (-1, 2)])
def test_an_edge_that_leads_nowhere(edge: tuple[int, int]) -> None:
    with pytest.raises(BadArgument, match=f"The edge {edge[0]} -> {edge[1]} does not fit 6 nodes"):
        Graph(NODES, [(*edge, (("0", 0),))], "Net")


def test_networkx(graph: Graph) -> None:
    networkx = pytest.importorskip("networkx")
    found = graph.to_networkx()
    assert networkx.ancestors(found, "chunk_1") == set(labels(graph.ancestors("chunk_1")))
    assert found.edges["chunk_1", "linear_1:2"]["uses"] == (("1", 0), ("0", 1))
    assert found.nodes["chunk_1"]["shapes"] == ((2, 2), (2, 2))


def test_it_needs_no_torch() -> None:
    code = "import sys, endoscope.analysis.structure.graph; sys.exit('torch' in sys.modules)"
    source = str(Path(__file__).parents[2] / "src")
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}).returncode == 0


@pytest.mark.parametrize("step", [1, 2], ids=["chain", "residual"])
def test_50000_nodes(step: int) -> None:
    parents: Parents = [[max(i - k, 0) for k in range(1, step + 1) if i >= k] for i in range(50_000)]
    started = time.process_time()
    graph = graph_of(parents)
    assert len(graph.ancestors(-1)) == len(graph.descendants(0)) == 49_999
    assert graph.distance(0, -1, longest=True) == 49_999
    assert len(graph.paths(0, -1, limit=10)) == (1 if step == 1 else 10)
    assert len(graph.select("type:relu & descendant_of(n30000)")) == 6_667 - (30_000 % 3 == 0)
    assert len(graph.hash) == 32
    skipping = 500 * 499 // 2  # the other graph leads around every node that was chosen
    assert len(graph.contract(range(0, 50_000, 100)).edges) == (499 if step == 1 else skipping)
    assert time.process_time() - started < 20

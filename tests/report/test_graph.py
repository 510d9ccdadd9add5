"""The graph in a report: small enough to read, findings always visible, everything a drawing needs."""

from __future__ import annotations

from typing import Any

import pytest

from endoscope.layout.folding import fold
from endoscope.layout.recorded import Recorded, RecordedTree
from endoscope.report.drawing import Mark, draw
from endoscope.report.network import MOST_BOXES, MOST_WITH_FINDINGS, folded_for, places


def node(name: str, kind: str = "computed") -> dict[str, Any]:
    module = name.rpartition(".")[0] if "." in name else ""
    return {
        "node": name, "role": "", "pass": 1, "kind": kind, "module": module, "modules": [], "type": "linear",
        "shape": [4, 8],
    }  # fmt: skip


def stack(blocks: int, inner: int = 5) -> RecordedTree:
    """Blocks of a few layers in a row, with a connection around each."""
    nodes, edges = [node("input", "input")], []
    before = 0
    for block in range(blocks):
        start = before
        for layer in range(inner):
            nodes.append(node(f"blocks.{block}.{layer}"))
            edges.append([before, len(nodes) - 1, []])
            before = len(nodes) - 1
        edges.append([start, before, []])
    nodes.append(node("blocks.3.0.weight", "parameter"))
    edges.append([len(nodes) - 1, 3 * inner + 1, []])
    return RecordedTree(Recorded.merged([{"nodes": nodes, "edges": edges}]), {"blocks.0": "Block"})


def boxes(network: RecordedTree, flagged: list[str]) -> int:
    return sum(not box.open and not box.is_chip for box in folded_for(network, flagged).boxes)


@pytest.mark.parametrize("blocks", [20, 200, 600])
def test_a_large_graph_stays_readable(blocks: int) -> None:
    network = stack(blocks)
    folded = folded_for(network, [])
    assert boxes(network, []) <= MOST_BOXES
    assert f">×{blocks - 4}</text>" in draw(network, folded, {}, "graph")


def test_nodes_with_findings_are_not_hidden() -> None:
    network = stack(200)
    flagged = ["blocks.77.2", "blocks.3.0.weight"]
    folded = folded_for(network, flagged)
    for name in flagged:
        assert folded.boxes[folded.box_of[places(network)[name]]].part == places(network)[name]
    assert boxes(network, flagged) <= MOST_WITH_FINDINGS


def test_findings_everywhere_do_not_make_it_large() -> None:
    network = stack(300)
    assert boxes(network, list(places(network))) <= MOST_WITH_FINDINGS


def test_marks_are_numbers_with_links() -> None:
    network = stack(5)
    folded = folded_for(network, ["blocks.0.2"])
    box = folded.box_of[places(network)["blocks.0.2"]]
    drawn = draw(network, folded, {box: [Mark(7, "error", "dead <units>", "finding-1-7")]}, "graph")
    assert 'href="#finding-1-7"' in drawn and ">7</text>" in drawn and "dead &lt;units&gt;" in drawn


def test_what_comes_round_again_is_dashed() -> None:
    graph = {"nodes": [node("a"), node("b")], "edges": [[0, 1, []], [1, 0, []]]}
    network = RecordedTree(Recorded.merged([graph]))
    assert draw(network, fold(network.tree, set()), {}, "graph").count('class="edge back"') == 1


def test_nothing_to_draw() -> None:
    network = RecordedTree(Recorded.merged([]))
    assert "<svg" in draw(network, folded_for(network, []), {}, "empty")

"""Folding and placing the graph: small enough to read, nothing on top of anything, findings always visible."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from endoscope.report.drawing import Mark, draw
from endoscope.report.folding import MOST_WITH_FINDINGS, Folded, fold
from endoscope.report.layers import GAP, arrange, in_order
from endoscope.report.network import Network, Part


def stack(blocks: int, inner: int = 5) -> Network:
    """Blocks of a few layers in a row, with a connection around each."""
    parts: dict[str, Part] = {}
    edges: dict[str, dict[str, None]] = {}
    before = "input"
    parts[before] = Part(before, "input", "input", (), (8,), 0)
    for block in range(blocks):
        address = f"blocks.{block}"
        start = before
        for layer in range(inner):
            name = f"{address}.{layer}"
            parts[name] = Part(name, "computed", "linear", ("blocks", address), (8,), len(parts))
            edges.setdefault(before, {})[name] = None
            before = name
        edges.setdefault(start, {})[before] = None
    types = {f"blocks.{block}": "Block" for block in range(blocks)}
    return Network(parts, edges, {"blocks.3.0.weight": "blocks.3.0"}, types)


def test_a_small_graph_is_drawn_as_it_is() -> None:
    folded = fold(stack(3), [])
    assert {box.kind for box in folded.boxes.values()} == {"input", "computed"} and len(folded.boxes) == 16


@pytest.mark.parametrize("blocks", [20, 200, 600])
def test_a_large_graph_stays_readable(blocks: int) -> None:
    network = stack(blocks)
    folded = fold(network, [])
    assert len(folded.boxes) <= 40
    assert set(folded.box_of) == set(network.parts)
    assert f"×{blocks - 1}" in " ".join(box.note for box in folded.boxes.values())


def test_nodes_with_findings_are_not_hidden() -> None:
    network = stack(200)
    flagged = ["blocks.77.2", "blocks.3.0.weight"]
    folded = fold(network, flagged)
    assert folded.box_of["blocks.77.2"] == "node blocks.77.2"
    assert folded.box_of[network.place_of("blocks.3.0.weight")] == "node blocks.3.0"
    assert len(folded.boxes) <= MOST_WITH_FINDINGS


def test_findings_everywhere_do_not_make_it_large() -> None:
    network = stack(300)
    assert len(fold(network, list(network.parts)).boxes) <= MOST_WITH_FINDINGS


def random_graph(seed: int) -> tuple[list[str], list[tuple[str, str]], dict[str, float]]:
    rng = np.random.default_rng(seed)
    keys = [f"n{n}" for n in range(25)]
    edges = {(keys[min(i, j)], keys[max(i, j)]) for i, j in rng.integers(0, 25, (40, 2)).tolist() if i != j}
    return keys, sorted(edges), {key: float(rng.integers(60, 200)) for key in keys}


@pytest.mark.parametrize("seed", range(8))
def test_nothing_overlaps_and_edges_lead_down(seed: int) -> None:
    keys, edges, widths = random_graph(seed)
    placed = arrange(keys, edges, widths)
    assert not placed.back
    assert all(placed.layer[source] < placed.layer[target] for source, target in edges)
    for layer in range(placed.count):
        row = sorted((key for key in keys if placed.layer[key] == layer), key=lambda key: placed.x[key])
        for one, other in pairwise(row):
            assert placed.x[other] - placed.x[one] >= (widths[one] + widths[other]) / 2 + GAP - 1e-6
    assert all(placed.x[key] >= widths[key] / 2 - 1e-6 for key in keys)
    assert all(placed.x[key] + widths[key] / 2 <= placed.width + 1e-6 for key in keys)


def test_a_stack_with_connections_around_it_stands_straight() -> None:
    folded = fold(stack(4, inner=3), [])
    order = in_order({key: box.position for key, box in folded.boxes.items()}, folded.edges)
    placed = arrange(order, folded.edges, dict.fromkeys(order, 100.0))
    trunk = [placed.x["node input"], *(placed.x[f"node blocks.{block}.2"] for block in range(4))]
    assert max(trunk) - min(trunk) < 1


def test_circles_lead_back_once() -> None:
    position = {"a": 0, "b": 1, "c": 2}
    edges = [("a", "b"), ("b", "c"), ("c", "a")]
    order = in_order(position, edges)
    assert order == ["a", "b", "c"]
    assert arrange(order, edges, dict.fromkeys(order, 50.0)).back == [("c", "a")]


def test_marks_are_numbers_with_links() -> None:
    folded = fold(stack(1), [])
    key = folded.box_of["blocks.0.2"]
    drawn = draw(folded, {key: [Mark(7, "error", "dead <units>", "finding-1-7")]}, "graph")
    assert 'href="#finding-1-7"' in drawn and ">7</text>" in drawn and "dead &lt;units&gt;" in drawn


def test_nothing_to_draw() -> None:
    assert "<svg" in draw(Folded({}, [], {}), {}, "empty")

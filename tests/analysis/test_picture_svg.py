"""From a picture to SVG: places, shapes, colours, texts; whole drawings against golden files."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from endoscope.analysis import picture_code as code
from endoscope.analysis.dot import DIRECTIONS
from endoscope.analysis.picture import NOWHERE, Box, Edge, Look, Node, Picture, Weight
from endoscope.analysis.picture_layout import Places, lay_out
from endoscope.analysis.picture_svg import svg_text

GOLDEN = Path(__file__).parents[1] / "golden" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
WEIGHT = Weight("fc.weight", "5x5", 25, 100)


def picture(*nodes: Node, edges: tuple[Edge, ...] = (), boxes: tuple[Box, ...] = ()) -> Picture:
    return Picture("Net", ("3 tensors total (300 B)",), nodes, edges, {box.key: box for box in boxes})


def node(key: int, label: str, **facts: object) -> Node:
    return replace(Node(key, label, label.partition(":")[0], shape="5x5", bytes=100), **facts)


def everything() -> Picture:
    """Each mark of the visual code once."""
    boxes = (
        Box(1, -1, "enc", "Encoder"),
        Box(2, 1, "enc.block", "Block", times=12, last="enc.block11"),
        Box(3, -1, "Twice", "function", function=True),
        Box(4, -1, "cell", "Cell", passes=3, rolled=True),
    )
    nodes = (
        node(0, "input_1_0", look=Look.INPUT, note="batch['ids']"),
        node(1, "running", look=Look.BUFFER, box=1),
        node(2, "linear_1_1", weights=(WEIGHT,), whole="enc.fc", box=1),
        node(3, "sum_1_2", box=1),
        node(4, "gt_1_3", decides=True, box=1),
        node(5, "mul_1_4", box=2),
        node(6, "add_1_5", box=2),
        node(7, "randn_1_6", dashed=True),
        node(8, "sin_1_7", box=3),
        node(9, "cos_1_8", box=3),
        node(10, "linear_2_9", passes=3, rolled=True, weights=(WEIGHT,), box=4),
        node(11, "tanh_1_10", passes=3, rolled=True, box=4),
        node(12, "dec", look=Look.MODULE, type="Decoder", operations=12, inner_bytes=2048, weights=(WEIGHT,)),
        node(13, "outside", look=Look.CONSTANT),
        node(14, "output_1_11", look=Look.OUTPUT, times=2, last="output_2_12"),
    )
    edges = (
        Edge(0, 2), Edge(1, 2), Edge(2, 3, mark="IF"), Edge(3, 4), Edge(4, 5, mark="THEN", control=True), Edge(2, 5),
        Edge(5, 6, argument="arg 1"), Edge(2, 6, argument="arg 0", output="[2]"), Edge(6, 5, again=True, enters=(2, 3)),
        Edge(6, 8), Edge(7, 8), Edge(8, 9), Edge(9, 10, enters=(1,)), Edge(10, 11), Edge(11, 10, enters=(2, 3)),
        Edge(11, 12, leaves=(3,)), Edge(13, 12), Edge(12, 14), Edge(11, 11, leaves=(1, 2)),
    )  # fmt: skip
    return picture(*nodes, edges=edges, boxes=boxes)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_golden_pictures(direction: str) -> None:
    drawn = svg_text(everything(), direction)
    file = GOLDEN / f"{direction}.svg"
    if os.environ.get("ENDOSCOPE_NEW_GOLDEN"):
        file.write_text(drawn, encoding="utf-8")
    # If the change is meant: look at the picture, and write it anew with ENDOSCOPE_NEW_GOLDEN=1.
    assert drawn == file.read_text(encoding="utf-8")


# ---- places ----------------------------------------------------------------------------------------------------------


def apart(places: Places) -> bool:
    plain = [item for item in places.items if item.box == NOWHERE]
    return all(
        a.x + a.width <= b.x + 0.01 or b.x + b.width <= a.x + 0.01 or a.y + a.height <= b.y + 0.01
        or b.y + b.height <= a.y + 0.01
        for a, b in combinations(plain, 2)
    )  # fmt: skip


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_nothing_lies_on_anything_else(direction: str) -> None:
    places = lay_out(everything(), direction)
    assert apart(places)
    assert all(-0.01 <= item.x <= item.x + item.width <= places.width + 0.01 for item in places.items)
    assert all(-0.01 <= item.y <= item.y + item.height <= places.height + 0.01 for item in places.items)


@pytest.mark.parametrize(
    ("direction", "axis", "sign"), [("down", 1, 1), ("up", 1, -1), ("right", 0, 1), ("left", 0, -1)]
)
def test_arrows_point_into_the_direction(direction: str, axis: int, sign: int) -> None:
    edges = (Edge(0, 1), Edge(1, 2, argument="arg 1"), Edge(0, 2))
    places = lay_out(picture(node(0, "a"), node(1, "b"), node(2, "c"), edges=edges), direction)
    for route in places.routes:
        assert (route.points[-1][axis] - route.points[0][axis]) * sign > 0


def test_a_text_beside_an_edge_has_room_of_its_own() -> None:
    edges = (Edge(0, 2, argument="arg 0"), Edge(1, 2, argument="arg 1"))
    places = lay_out(picture(node(0, "a"), node(1, "b"), node(2, "c"), edges=edges), "down")
    assert apart(places)
    for route in places.routes:
        assert route.label is not None
        middle = route.label.x + route.label.width / 2
        assert any(abs(x - middle) < 0.01 for x, _ in route.points)


def test_a_buffer_stands_beside_its_only_reader() -> None:
    nodes = node(0, "x", look=Look.INPUT), node(1, "table", look=Look.BUFFER), node(2, "add")
    places = lay_out(picture(*nodes, edges=(Edge(0, 2), Edge(1, 2))), "down")
    x, table, add = (
        next(i for i in places.items if i.node is not None and i.node.label == n) for n in ("x", "table", "add")
    )
    assert table.x + table.width < add.x and table.y > x.y + x.height


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def drawn(found: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(svg_text(found))


def test_shapes_and_colours() -> None:
    whole = drawn(picture(node(0, "relu", whole="act"), node(1, "sin", dashed=True), node(2, "enc", look=Look.MODULE)))
    relu, sin, module = whole.findall(f".//{SVG}g[{SVG}title]")
    assert relu.find(f"{SVG}rect") is not None and relu.find(f"{SVG}ellipse") is None
    oval = sin.find(f"{SVG}ellipse")
    assert oval is not None and "stroke-dasharray" in oval.attrib
    assert len(module.findall(f"{SVG}rect")) == 2


def test_decisions_and_links_to_the_next_repeat_are_dashed() -> None:
    edges = (Edge(0, 1, mark="THEN", control=True), Edge(1, 0, again=True), Edge(0, 1, argument="mask"))
    paths = drawn(picture(node(0, "gt"), node(1, "mul"), edges=edges)).findall(f".//{SVG}path[@class='edge']")
    assert [path.get("stroke") for path in paths] == [code.CONTROL, code.FOLD, code.LINE]
    assert ["stroke-dasharray" in path.attrib for path in paths] == [True, True, False]


def test_the_corner_tells_name_and_totals() -> None:
    texts = ["".join(text.itertext()) for text in drawn(picture(node(0, "a"))).findall(f"{SVG}text")]
    assert texts == ["Net", "3 tensors total (300 B)"]


@pytest.mark.parametrize("text", ['a"b', "a<b>&c", "a\\b", "a\nb\x00", "", "ünï × 漢字", "\ud800", "x" * 300])
def test_any_text_is_drawn(text: str) -> None:
    odd = node(0, text, note=text, whole=text, weights=(Weight(text, text, 1, 1),))
    box = Box(1, -1, text or "a", text)
    edge = Edge(0, 1, argument=text, output=text, mark=text)
    source = svg_text(picture(odd, node(1, "plain", box=1), edges=(edge,), boxes=(box,)))
    assert ElementTree.fromstring(source.encode()).tag == f"{SVG}svg"


def test_nothing_is_a_picture_too() -> None:
    assert "<svg" in svg_text(picture())

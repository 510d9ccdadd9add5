"""From a picture to DOT text: shapes, colours, what is written where."""

import subprocess
from dataclasses import replace

import pytest

from endoscope.analysis import picture_code as code
from endoscope.analysis.dot import DIRECTIONS, dot_text
from endoscope.analysis.picture import Box, Edge, Look, Node, Picture, Weight
from tests.analysis.dot_reading import Drawn, read
from tests.graphviz import needs_dot

WEIGHT = Weight("fc.weight", "5x5", 25, 100)


def picture(*nodes: Node, edges: tuple[Edge, ...] = (), boxes: tuple[Box, ...] = ()) -> Picture:
    return Picture("Net", ("3 tensors total (300 B)",), nodes, edges, {box.key: box for box in boxes})


def node(key: int, label: str, **facts: object) -> Node:
    return replace(Node(key, label, label.partition(":")[0], shape="5x5", bytes=100), **facts)


def drawn(*nodes: Node, edges: tuple[Edge, ...] = (), boxes: tuple[Box, ...] = ()) -> Drawn:
    return read(dot_text(picture(*nodes, edges=edges, boxes=boxes)))


def test_the_corner_tells_name_and_totals() -> None:
    assert drawn(node(0, "sin_1_1")).title == ["Net", "3 tensors total (300 B)"]


@pytest.mark.parametrize(
    ("facts", "color"),
    [
        ({"look": Look.INPUT}, code.GREEN),
        ({"look": Look.OUTPUT}, code.RED),
        ({"look": Look.BUFFER}, code.LIGHT_GREY),
        ({"look": Look.ENTRANCE}, code.PALE_GREEN),
        ({"look": Look.EXIT}, code.PALE_RED),
        ({"weights": (WEIGHT,)}, code.GREY),
        ({"decides": True}, code.YELLOW),
        ({"decides": True, "weights": (WEIGHT,)}, code.YELLOW),
    ],
)
def test_colours(facts: dict[str, object], color: str) -> None:
    (only,) = drawn(node(0, "x", **facts)).nodes.values()
    assert only.attributes["fillcolor"] == color


def test_a_free_operation_is_an_oval_and_a_whole_module_a_box() -> None:
    nodes = drawn(node(0, "relu_1_1"), node(1, "relu_2_2", whole="act")).nodes
    assert "shape" not in nodes["relu_1_1"].attributes
    assert nodes["relu_2_2"].attributes["shape"] == "box"
    assert "shape=oval" in dot_text(picture())


def test_a_node_tells_label_shape_size_parameters_and_address() -> None:
    full = node(0, "linear_1_1", weights=(WEIGHT, Weight("fc.bias", "5", 5, 20)), whole="fc", note="why")
    assert drawn(full).nodes["linear_1_1"].lines == [
        "linear_1_1", "5x5 (100 B)", "params: 5x5, 5", "@fc", "why",
    ]  # fmt: skip


def test_a_closed_module_tells_its_totals() -> None:
    closed = node(
        0, "enc", look=Look.MODULE, type="Encoder", operations=1234, inner_bytes=2048, weights=(WEIGHT,), whole="enc"
    )
    found = drawn(closed).nodes["enc"]
    assert found.lines == ["@enc (Encoder)", "5x5 (100 B)", "1,234 operations (2.0 KB)", "25 params (100 B)"]
    assert found.attributes["peripheries"] == "2"


def test_what_no_input_leads_to_is_dashed() -> None:
    nodes = drawn(node(0, "rand_1_1", dashed=True), node(1, "sin_1_2")).nodes
    assert nodes["rand_1_1"].attributes["style"] == "filled,dashed"
    assert "style" not in nodes["sin_1_2"].attributes


def test_rolled_nodes_tell_their_passes() -> None:
    assert drawn(node(0, "linear_1_1", passes=3, rolled=True)).nodes["linear_1_1"].lines[0] == "linear_1_1 (x3)"
    assert drawn(node(0, "linear_1_1:1", passes=3)).nodes["linear_1_1:1"].lines[0] == "linear_1_1:1"


def test_folded_nodes_tell_how_many_and_the_last() -> None:
    lines = drawn(node(0, "output_1_5", look=Look.OUTPUT, times=12, last="output_12_16")).nodes["output_1_5"].lines
    assert lines[:2] == ["×12", "output_1_5 … output_12_16"]


def test_boxes_are_nested_and_tell_address_and_class() -> None:
    boxes = (Box(1, -1, "enc", "Encoder"), Box(2, 1, "enc.block", "Block", pass_=2, passes=3))
    found = drawn(node(0, "sin_1_1", box=2), node(1, "cos_1_2", box=1), boxes=boxes)
    assert found.boxes == {"@enc (Encoder)": [], "@enc.block:2 (Block)": ["@enc (Encoder)"]}
    assert found.nodes["sin_1_1"].boxes == ["@enc (Encoder)", "@enc.block:2 (Block)"]
    assert found.nodes["cos_1_2"].boxes == ["@enc (Encoder)"]


@pytest.mark.parametrize(
    ("box", "label"),
    [
        (Box(1, -1, "h.0", "Block", times=12, last="h.11"), "×12 @h.0 … @h.11 (Block)"),
        (Box(1, -1, "cell", "Cell", passes=3, rolled=True), "@cell (Cell) (x3)"),
        (Box(1, -1, "", "", times=5), "×5"),
        (Box(1, -1, "MyFunction", "function", function=True), "MyFunction (function)"),
    ],
)
def test_labels_of_boxes(box: Box, label: str) -> None:
    assert list(drawn(node(0, "x", box=1), boxes=(box,)).boxes) == [label]


def test_long_addresses_are_told_from_the_box_around() -> None:
    boxes = (Box(1, -1, "encoder.layer.0", "Layer"), Box(2, 1, "encoder.layer.0.output", "Output"))
    inner = node(0, "linear_1_1", box=2, whole="encoder.layer.0.output.dense")
    found = drawn(inner, boxes=boxes)
    assert list(found.boxes) == ["@encoder.layer.0 (Layer)", "@…output (Output)"]
    assert found.nodes["linear_1_1"].lines[-1] == "@…dense"


def test_edges_tell_arguments_outputs_and_passes() -> None:
    edge = Edge(0, 1, argument="arg 1", output="[2]", leaves=(2, 3), enters=(1,))
    assert drawn(node(0, "a"), node(1, "b"), edges=(edge,)).edge("a", "b").lines == ["[2] arg 1", "Out 2-3", "In 1"]


def test_decisions_are_marked_on_edges() -> None:
    edges = (Edge(0, 1, mark="IF"), Edge(1, 2, mark="THEN", control=True), Edge(0, 2))
    found = drawn(node(0, "x"), node(1, "gt", decides=True), node(2, "mul"), edges=edges)
    assert found.edge("x", "gt").lines == ["IF"]
    assert found.edge("gt", "mul").lines == ["THEN"]
    assert found.edge("gt", "mul").attributes["style"] == "dashed"
    assert found.edge("x", "mul").lines == [] and found.edge("x", "mul").attributes == {}


def test_a_link_to_the_next_repeat_does_not_pull_the_picture() -> None:
    edge = Edge(1, 0, again=True, enters=(2, 3))
    found = drawn(node(0, "a"), node(1, "b"), edges=(edge,)).edge("b", "a")
    assert found.attributes["constraint"] == "false" and found.lines == ["In 2-3"]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_directions(direction: str) -> None:
    assert f"rankdir={DIRECTIONS[direction]}" in dot_text(picture(), direction)


def test_equal_labels_stay_two_nodes() -> None:
    found = drawn(node(0, "to x"), node(1, "to x"), edges=(Edge(0, 1),))
    assert set(found.nodes) == {"to x", "to x (2)"}
    assert found.pairs() == {("to x", "to x (2)")}


@needs_dot
@pytest.mark.parametrize("text", ['a"b', "a<b>&c", "a\\b", "a\nb\x00", "{|}", "", "ünï ×", "\ud800", "x" * 300])
def test_any_text_is_drawn(text: str) -> None:
    odd = node(0, text, note=text, whole=text, weights=(Weight(text, text, 1, 1),))
    box = Box(1, -1, text or "a", text)
    source = dot_text(
        picture(odd, node(1, "plain", box=1), edges=(Edge(0, 1, argument=text, output=text, mark=text),), boxes=(box,))
    )
    done = subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""


def test_large_pictures_ask_for_a_quick_layout() -> None:
    many = tuple(node(n, f"sin_{n}") for n in range(20))
    assert "nslimit" in dot_text(picture(*many), large=10)
    assert "nslimit" not in dot_text(picture(*many), large=20)

"""Steps from a full picture to a simpler one: zoom, absorb, roll, close."""

import itertools
from dataclasses import replace

import pytest

from endoscope.analysis.picture import (
    NOWHERE,
    Box,
    Edge,
    Look,
    Node,
    Picture,
    Weight,
    common_box,
    range_text,
    size_text,
)
from endoscope.analysis.picture_close import close
from endoscope.analysis.picture_roll import roll
from endoscope.analysis.picture_zoom import absorb, inside, zoom

W = Weight("fc.weight", "5x5", 25, 100)


def node(key: int, label: str, box: int = NOWHERE, **facts: object) -> Node:
    layer, _, pass_ = label.partition(":")
    plain = Node(key, label, layer, type=layer.split("_")[0], pass_=int(pass_ or 1), shape="5x5", bytes=100, box=box)
    return replace(plain, **facts)


def picture(nodes: list[Node], edges: list[Edge], boxes: list[Box]) -> Picture:
    return Picture("Net", (), tuple(nodes), tuple(edges), {box.key: box for box in boxes})


def chain(*keys: int) -> list[Edge]:
    return [Edge(a, b) for a, b in itertools.pairwise(keys)]


def looped() -> Picture:
    """for 3: x = fc(x); x = x * 2, one call of `fc` per pass."""
    nodes = [node(0, "input_1_0", look=Look.INPUT)]
    boxes = []
    for step in range(3):
        boxes.append(Box(step, NOWHERE, "fc", "Linear", pass_=step + 1, passes=3))
        nodes.append(node(2 * step + 1, f"linear_1_1:{step + 1}", box=step, passes=3, weights=(W,)))
        nodes.append(node(2 * step + 2, f"mul_1_2:{step + 1}", passes=3))
    nodes.append(node(7, "output_1_3", look=Look.OUTPUT))
    return picture(nodes, chain(*range(8)), boxes)


def labels(part: Picture) -> list[str]:
    return [n.label for n in part.nodes]


def pairs(part: Picture) -> set[tuple[str, str]]:
    names = {n.key: n.label for n in part.nodes}
    return {(names[e.source], names[e.target]) for e in part.edges}


# ---- absorb ----------------------------------------------------------------------------------------------------------


def test_a_module_that_is_one_operation_becomes_its_address() -> None:
    found = absorb(looped())
    assert [n.whole for n in found.nodes] == ["", "fc:1", "", "fc:2", "", "fc:3", "", ""]
    assert not found.boxes


def test_modules_around_one_operation_vanish_too() -> None:
    nested = picture([node(1, "relu_1_1", box=2)], [], [Box(1, NOWHERE, "a", "A"), Box(2, 1, "a.b", "B")])
    (only,) = absorb(nested).nodes
    assert (only.whole, only.box) == ("a.b", NOWHERE)


def test_a_module_with_an_inner_module_keeps_its_box() -> None:
    boxes = [Box(1, NOWHERE, "a", "A"), Box(2, 1, "a.b", "B")]
    found = absorb(picture([node(1, "relu_1_1", box=2), node(2, "sin_1_2", box=1)], chain(1, 2), boxes))
    assert [(n.whole, n.box) for n in found.nodes] == [("a.b", 1), ("", 1)]
    assert list(found.boxes) == [1]


def test_running_statistics_are_told_in_the_node_that_owns_them() -> None:
    mean = node(5, "bn.running_mean", box=1, look=Look.BUFFER, shape="8")
    nodes = [node(0, "input_1_0", look=Look.INPUT), mean, node(1, "batch_norm_1_1", box=1)]
    edges = [Edge(0, 1, argument="arg 0"), Edge(5, 1, argument="arg 1")]
    found = absorb(picture(nodes, edges, [Box(1, NOWHERE, "bn", "BatchNorm1d")]))
    assert labels(found) == ["input_1_0", "batch_norm_1_1"]
    assert [b.shape for b in found.nodes[1].buffers] == ["8"]
    assert found.edges == (Edge(0, 1),)


def test_other_buffers_stay_nodes() -> None:
    nodes = [node(5, "scale", look=Look.BUFFER), node(1, "mul_1_1")]
    assert labels(absorb(picture(nodes, [Edge(5, 1)], []))) == ["scale", "mul_1_1"]


# ---- roll ------------------------------------------------------------------------------------------------------------


def test_passes_of_a_layer_become_one_node() -> None:
    found = roll(absorb(looped()))
    assert labels(found) == ["input_1_0", "linear_1_1", "mul_1_2", "output_1_3"]
    linear = found.nodes[1]
    assert (linear.passes, linear.rolled, linear.whole, linear.weights) == (3, True, "fc", (W,))


def test_rolled_edges_tell_passes_only_where_they_vary() -> None:
    found = roll(absorb(looped()))
    assert set(found.edges) == {
        Edge(0, 1, enters=(1,)),
        Edge(1, 2),
        Edge(2, 1, leaves=(1, 2), enters=(2, 3)),
        Edge(2, 7, leaves=(3,)),
    }


def test_a_layer_that_feeds_itself_keeps_its_loop() -> None:
    nodes = [node(0, "input_1_0", look=Look.INPUT), *(node(n, f"relu_1_1:{n}", passes=3) for n in (1, 2, 3))]
    found = roll(picture(nodes, chain(0, 1, 2, 3), []))
    assert set(found.edges) == {Edge(0, 1, enters=(1,)), Edge(1, 1, leaves=(1, 2), enters=(2, 3))}


def test_calls_of_a_module_become_one_box() -> None:
    boxes = [Box(k, NOWHERE, "cell", "Cell", pass_=k, passes=2) for k in (1, 2)]
    nodes = [node(10 * k + i, f"{name}:{k}", box=k, passes=2) for k in (1, 2) for i, name in enumerate(("a_1", "b_1"))]
    found = roll(picture(nodes, chain(10, 11, 20, 21), boxes))
    (box,) = found.boxes.values()
    assert (box.name, box.passes, box.rolled) == ("cell", 2, True)
    assert {n.box for n in found.nodes} == {box.key}


def test_a_layer_in_several_modules_stands_outside_of_them() -> None:
    boxes = [Box(1, NOWHERE, "a", "A"), Box(2, NOWHERE, "b", "B")]
    nodes = [node(1, "relu_1:1", box=1), node(2, "relu_1:2", box=2), node(3, "sin", box=1), node(4, "cos", box=2)]
    found = roll(picture(nodes, chain(1, 2), boxes))
    assert found.nodes[0].box == NOWHERE


def test_a_shared_activation_keeps_the_pass_of_its_module() -> None:
    nodes = [node(1, "relu_1_1", whole="act:1"), node(2, "relu_2_3", whole="act:2")]
    assert [n.whole for n in roll(picture(nodes, [], [])).nodes] == ["act:1", "act:2"]


def test_shapes_that_change_are_both_told() -> None:
    nodes = [node(1, "narrow_1:1", shape="8"), node(2, "narrow_1:2", shape="6"), node(3, "narrow_1:3", shape="4")]
    assert roll(picture(nodes, [], [])).nodes[0].shape == "8 … 4"


def test_members_of_a_list_become_one_edge() -> None:
    nodes = [*(node(n, f"linear_1:{n + 1}") for n in range(3)), node(9, "stack_1")]
    edges = [Edge(n, 9, argument=f"arg 0[{n}]") for n in range(3)]
    assert roll(picture(nodes, edges, [])).edges == (Edge(0, 9, argument="arg 0[…]"),)


# ---- close -----------------------------------------------------------------------------------------------------------


def two_levels() -> Picture:
    boxes = [Box(1, NOWHERE, "enc", "Encoder"), Box(2, 1, "enc.block", "Block")]
    nodes = [
        node(0, "input_1_0", look=Look.INPUT),
        node(1, "sin_1_1", box=1),
        node(2, "linear_1_2", box=2, weights=(W,)),
        node(3, "cos_1_3", box=2, weights=(W,)),
        node(4, "div_1_4"),
    ]
    return picture(nodes, [*chain(0, 1, 2, 3), Edge(3, 4, "arg 0"), Edge(0, 4, "arg 1"), Edge(0, 2, "arg 1")], boxes)


def test_depth_one_closes_what_the_model_calls() -> None:
    found = close(two_levels(), 1)
    assert labels(found) == ["input_1_0", "enc", "div_1_4"]
    enc = found.nodes[1]
    assert (enc.look, enc.type, enc.operations, enc.inner_bytes, enc.weights) == (Look.MODULE, "Encoder", 3, 300, (W,))
    assert not found.boxes
    assert set(found.edges) == {Edge(0, enc.key), Edge(enc.key, 4, "arg 0"), Edge(0, 4, "arg 1")}


def test_depth_two_leaves_the_outer_module_open() -> None:
    found = close(two_levels(), 2)
    assert labels(found) == ["input_1_0", "sin_1_1", "enc.block", "div_1_4"]
    assert list(found.boxes) == [1]


def test_a_depth_that_is_not_reached_changes_nothing() -> None:
    assert close(two_levels(), 3) == two_levels()


def test_closing_a_rolled_module_keeps_its_passes() -> None:
    boxes = [Box(k, NOWHERE, "cell", "Cell", pass_=k, passes=2) for k in (1, 2)]
    nodes = [node(10 * k + i, f"{name}:{k}", box=k, passes=2) for k in (1, 2) for i, name in enumerate(("a_1", "b_1"))]
    end = node(30, "output", look=Look.OUTPUT)
    found = close(roll(picture([*nodes, end], chain(10, 11, 20, 21, 30), boxes)), 1)
    cell = found.nodes[0]
    assert (cell.label, cell.passes, cell.operations) == ("cell", 2, 4)
    assert set(found.edges) == {Edge(cell.key, 30, leaves=(2,))}


# ---- zoom ------------------------------------------------------------------------------------------------------------


def test_zoom_shows_one_module_and_what_goes_in_and_out() -> None:
    found = zoom(two_levels(), "enc.block")
    assert labels(found) == ["input_1_0", "from sin_1_1", "linear_1_2", "cos_1_3", "to div_1_4"]
    assert [n.look for n in found.nodes][1::3] == [Look.ENTRANCE, Look.EXIT]
    assert pairs(found) == {
        ("input_1_0", "linear_1_2"),
        ("from sin_1_1", "linear_1_2"),
        ("linear_1_2", "cos_1_3"),
        ("cos_1_3", "to div_1_4"),
    }
    assert not found.boxes


def test_zoom_keeps_the_boxes_inside() -> None:
    found = zoom(two_levels(), "enc")
    assert list(found.boxes) == [2] and found.boxes[2].parent == NOWHERE
    assert labels(close(found, 1)) == ["input_1_0", "sin_1_1", "enc.block", "to div_1_4"]


def test_zoom_into_one_operation() -> None:
    found = absorb(zoom(looped(), "fc:2"))
    assert [(n.label, n.whole) for n in found.nodes] == [
        ("from mul_1_2:1", ""), ("linear_1_1:2", "fc:2"), ("to mul_1_2:2", ""),
    ]  # fmt: skip


def test_zoom_into_all_calls_and_roll_them() -> None:
    found = roll(absorb(zoom(looped(), "fc")))
    assert labels(found) == ["input_1_0", "from mul_1_2", "linear_1_1", "to mul_1_2"]


def test_a_list_of_modules_is_what_it_holds() -> None:
    boxes = [Box(1, NOWHERE, "h.0", "Block"), Box(2, NOWHERE, "h.1", "Block"), Box(3, 2, "h.1.fc", "Linear")]
    boxes.append(Box(4, NOWHERE, "head", "Linear"))
    assert inside(picture([], [], boxes), "h") == {1, 2, 3}
    assert inside(picture([], [], boxes), "nothing") == set()


def test_many_receivers_are_one_exit() -> None:
    nodes = [node(1, "sin_1", box=1), *(node(n, f"mul_{n}") for n in range(2, 7))]
    found = zoom(picture(nodes, [Edge(1, n) for n in range(2, 7)], [Box(1, NOWHERE, "a", "A")]), "a")
    assert labels(found) == ["sin_1", "to mul_2, mul_3, mul_4 and 2 more"]


# ---- small things ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "text"), [([1], "1"), ([2, 3], "2-3"), ([3, 1, 2, 7, 9, 8], "1-3, 7-9"), ([1, 3, 5], "1, 3, 5")]
)
def test_range_text(numbers: list[int], text: str) -> None:
    assert range_text(numbers) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (3 * 2**20, "3.0 MB"), (5 * 2**40, "5120.0 GB")]
)
def test_size_text(count: int, text: str) -> None:
    assert size_text(count) == text


def test_common_box() -> None:
    boxes = {
        1: Box(1, NOWHERE, "a", "A"),
        2: Box(2, 1, "a.b", "B"),
        3: Box(3, 1, "a.c", "C"),
        4: Box(4, 3, "a.c.d", "D"),
    }
    assert common_box(boxes, [2, 4]) == 1
    assert common_box(boxes, [3, 4]) == 3
    assert common_box(boxes, [4, 4]) == 4
    assert common_box(boxes, [2, NOWHERE]) == NOWHERE
    assert common_box(boxes, []) == NOWHERE

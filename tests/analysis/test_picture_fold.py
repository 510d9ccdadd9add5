"""Equal blocks are drawn once; unequal ones are not."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from endoscope.analysis.picture import NOWHERE, Box, Edge, Look, Node, Picture, Weight
from endoscope.analysis.picture_fold import fold

INPUT, OUTPUT = 0, 100_000


class Sketch:
    """Builds pictures of stacked blocks."""

    def __init__(self) -> None:
        self.nodes = [Node(INPUT, "input", "input", Look.INPUT, shape="5")]
        self.edges: list[Edge] = []
        self.boxes: list[Box] = []

    def box(self, address: str, parent: int = NOWHERE, **facts: object) -> int:
        self.boxes.append(replace(Box(len(self.boxes), parent, address, address.split(".")[0]), **facts))
        return len(self.boxes) - 1

    def node(self, type_: str, *parents: int, box: int = NOWHERE, **facts: object) -> int:
        key = len(self.nodes)
        label = str(facts.pop("label", f"{type_}_{key}"))
        self.nodes.append(replace(Node(key, label, label.partition(":")[0], type=type_, shape="5", box=box), **facts))
        self.edges += [Edge(parent, key) for parent in parents]
        return key

    def block(self, address: str, x: int, parent: int = NOWHERE, size: int = 4, **facts: object) -> int:
        """A residual block: `size` - 1 operations and a sum with what came in."""
        box, y = self.box(address, parent), x
        for n in range(size - 1):
            y = self.node(f"op{n}", y, box=box, **facts)
        return self.node("add", x, y, box=box)

    def picture(self, *outputs: int) -> Picture:
        for n, source in enumerate(outputs):
            label = f"output_{n}"
            self.nodes.append(Node(OUTPUT + n, label, label, Look.OUTPUT, shape="5"))
            self.edges.append(Edge(source, OUTPUT + n))
        return Picture("Net", (), tuple(self.nodes), tuple(self.edges), {box.key: box for box in self.boxes})


def stack(count: int, **facts: object) -> Picture:
    sketch, x = Sketch(), INPUT
    for n in range(count):
        x = sketch.block(f"h.{n}", x, **facts)
    return sketch.picture(x)


def test_a_stack_of_blocks_is_drawn_once() -> None:
    found = fold(stack(12))
    assert [n.type for n in found.nodes] == ["", "op0", "op1", "op2", "add", ""]
    (box,) = found.boxes.values()
    assert (box.address, box.last, box.times) == ("h.0", "h.11", 12)


def test_what_enters_and_leaves_a_stack_is_told() -> None:
    found = fold(stack(12))
    assert {e for e in found.edges if e.source == INPUT} == {Edge(INPUT, 1, enters=(1,)), Edge(INPUT, 4, enters=(1,))}
    assert [e for e in found.edges if e.target == OUTPUT] == [Edge(4, OUTPUT, leaves=(12,))]


def test_a_plain_chain_needs_no_link_from_block_to_block() -> None:
    assert not any(e.again for e in fold(stack(12)).edges)


def test_a_hidden_state_is_drawn_as_a_link() -> None:
    sketch, state, results = Sketch(), INPUT, []
    for n in range(5):
        box = sketch.box(f"cell.{n}")
        state = sketch.node("tanh", sketch.node("linear", state, box=box), box=box)
        results.append(sketch.node("read", state, box=box))
    found = fold(sketch.picture(sketch.node("stack", *results)))
    assert [(e.source, e.target, e.enters) for e in found.edges if e.again] == [(2, 1, (2, 3, 4, 5))]


def test_what_every_block_reads_is_one_edge() -> None:
    sketch = Sketch()
    mask = sketch.node("mask", INPUT)
    x = mask
    for n in range(4):
        box = sketch.box(f"h.{n}")
        x = sketch.node("b", sketch.node("a", x, mask, box=box), box=box)
        x = sketch.node("c", x, mask, box=box)
    found = fold(sketch.picture(x))
    assert Edge(mask, 4) in found.edges  # `c` of the one block that is drawn; nothing beside it: all blocks do


def changed_shape(sketch: Sketch, n: int, x: int) -> int:
    return sketch.block(f"h.{n}", x, shape="7" if n == 2 else "5")


def changed_setting(sketch: Sketch, n: int, x: int) -> int:
    return sketch.block(f"h.{n}", x, settings=f"dilation={n // 2}")


def changed_weights(sketch: Sketch, n: int, x: int) -> int:
    return sketch.block(f"h.{n}", x, weights=(Weight("w", "5x6" if n == 2 else "5x5", 25, 100),))


def changed_wiring(sketch: Sketch, n: int, x: int) -> int:
    box = sketch.box(f"h.{n}")
    a = sketch.node("a", x, box=box)
    b = sketch.node("b", a, box=box)
    return sketch.node("c", a if n == 2 else x, b, box=box)


@pytest.mark.parametrize("block", [changed_shape, changed_setting, changed_weights, changed_wiring])
def test_blocks_that_differ_are_not_folded_together(block: Callable[[Sketch, int, int], int]) -> None:
    sketch, x = Sketch(), INPUT
    for n in range(4):
        x = block(sketch, n, x)
    found = fold(sketch.picture(x))
    assert all(box.times <= 2 for box in found.boxes.values())
    assert len(found.boxes) >= 2


def test_blocks_of_two_kinds_in_turn_are_folded_in_pairs() -> None:
    sketch, x = Sketch(), INPUT
    for n in range(4):
        x = sketch.block(f"local.{n}", x)
        x = sketch.block(f"global.{n}", x, size=3)
    found = fold(sketch.picture(x))
    assert sorted(box.times for box in found.boxes.values()) == [1, 1, 4]
    (around,) = [box for box in found.boxes.values() if box.times == 4]
    assert [box.parent for box in found.boxes.values() if box.times == 1] == [around.key, around.key]


def test_operations_between_the_blocks_are_folded_with_them() -> None:
    sketch, x = Sketch(), INPUT
    for n in range(6):
        x = sketch.node("add", x, sketch.block(f"h.{n}", x))
    found = fold(sketch.picture(x))
    assert len(found.nodes) == 7
    assert sorted(box.times for box in found.boxes.values()) == [1, 6]


def test_blocks_inside_blocks() -> None:
    sketch, x = Sketch(), INPUT
    for n in range(3):
        stage = sketch.box(f"stage.{n}")
        for m in range(4):
            x = sketch.block(f"block.{n}.{m}", x, parent=stage)
    found = fold(sketch.picture(x))
    assert [box.times for box in found.boxes.values()] == [3, 4]


def test_an_output_of_every_block_is_drawn_once() -> None:
    sketch, x, kept = Sketch(), INPUT, []
    for n in range(4):
        x = sketch.block(f"h.{n}", x)
        kept.append(x - 1)
    found = fold(sketch.picture(*kept))
    outputs = [n for n in found.nodes if n.look is Look.OUTPUT]
    assert [(n.label, n.last, n.times) for n in outputs] == [("output_0", "output_3", 4)]
    assert [e.leaves for e in found.edges if e.target == OUTPUT] == [()]


def test_heads_side_by_side_are_folded() -> None:
    sketch = Sketch()
    heads = [sketch.block(f"head.{n}", INPUT) for n in range(4)]
    (box,) = fold(sketch.picture(sketch.node("cat", *heads))).boxes.values()
    assert box.times == 4


def test_query_key_and_value_are_not() -> None:
    sketch = Sketch()
    ways = [sketch.block(f"proj.{n}", INPUT) for n in range(3)]
    end = sketch.node("attention")
    sketch.edges += [Edge(way, end, argument=f"arg {n}") for n, way in enumerate(ways)]
    assert len(fold(sketch.picture(end)).boxes) == 3


def test_a_few_operations_are_not_worth_it() -> None:
    assert fold(stack(2)) == stack(2)


def looped(steps: int, **facts: object) -> Picture:
    sketch, x = Sketch(), INPUT
    for n in range(steps):
        x = sketch.node("linear", x, whole=f"fc:{n + 1}", label=f"linear_1_1:{n + 1}", passes=steps, **facts)
        x = sketch.node("mul", x)
    return sketch.picture(x)


def test_steps_of_a_short_loop_are_drawn_one_by_one() -> None:
    assert fold(looped(10)) == looped(10)


def test_steps_of_a_long_loop_are_folded_without_their_passes() -> None:
    found = fold(looped(150))
    assert len(found.nodes) == 4
    assert (found.nodes[1].label, found.nodes[1].whole) == ("linear_1_1", "fc")


def test_operations_of_no_module_are_folded_only_if_there_are_very_many() -> None:
    def plain(steps: int) -> Picture:
        sketch, x = Sketch(), INPUT
        for _ in range(steps):
            x = sketch.node("sin", sketch.node("relu", x))
        return sketch.picture(x)

    assert fold(plain(500)) == plain(500)
    assert len(fold(plain(1500)).nodes) == 4


def test_nothing_is_dashed_that_is_not_dashed_in_every_step() -> None:
    sketch = Sketch()
    start = sketch.node("zeros", dashed=True)
    x = start
    for n in range(5):
        box = sketch.box(f"h.{n}")
        hidden = sketch.node("linear", x, box=box, dashed=n == 0)
        x = sketch.node("add", hidden, INPUT, box=box)
    found = fold(sketch.picture(x))
    assert not next(n for n in found.nodes if n.type == "linear").dashed


@pytest.mark.parametrize("make", [lambda: stack(1250), lambda: looped(2500), lambda: stack(2, size=2500)])
def test_five_thousand_nodes_are_fast(make: Callable[[], Picture]) -> None:
    full = make()
    started = time.process_time()
    fold(full)
    assert time.process_time() - started < 1.0  # about 0.2 s; the rest is for a busy machine

"""Boxes in boxes: nothing on top of anything, edges down, and what is not touched stays where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from endoscope.layout import net as net_module
from endoscope.layout.compose import Frame, Layout, Memory, Scene, arrange
from tests.layout.drawn import check, random_scene


def scene(parent: list[int], edges: list[tuple[int, int]], chips: frozenset[int] = frozenset(), **more: Any) -> Scene:
    is_open = [box in parent for box in range(len(parent))]
    return Scene(parent, is_open, [100.0] * len(parent), [36.0] * len(parent), edges, chips, **more)


def middle(layout: Layout, box: int) -> float:
    return layout.x[box] + layout.width[box] / 2


@pytest.mark.parametrize("seed", range(40))
def test_any_scene_is_drawn_properly(seed: int) -> None:
    drawn = random_scene(seed)
    check(drawn, arrange(drawn))


def test_a_chain_is_one_straight_line() -> None:
    layout = arrange(scene([-1, -1, -1], [(0, 1), (1, 2)]))
    assert {middle(layout, box) for box in range(3)} == {middle(layout, 0)}
    assert layout.paths[0] == [middle(layout, 0), 36.0, middle(layout, 0), layout.y[1]]


def test_a_residual_passes_beside_the_boxes_of_its_block() -> None:
    drawn = scene([-1, -1, -1, -1], [(0, 1), (1, 2), (2, 3), (0, 3)])
    layout = arrange(drawn)
    check(drawn, layout)
    assert len({middle(layout, box) for box in range(4)}) == 1
    assert max(layout.paths[3][::2]) > layout.x[1] + layout.width[1]


def test_edges_into_a_module_meet_at_its_border() -> None:
    drawn = scene([-1, -1, 1, 1, -1], [(0, 2), (2, 3), (3, 4)])
    layout = arrange(drawn)
    check(drawn, layout)
    assert layout.paths[0][0] == layout.paths[0][-2]  # straight through the border


def test_chips_stand_at_the_left_of_their_reader_in_its_row() -> None:
    drawn = scene([-1, -1, -1, -1], [(0, 3), (1, 3), (2, 3)], frozenset({1, 2}))
    layout = arrange(drawn)
    check(drawn, layout)
    assert all(layout.x[chip] + layout.width[chip] < layout.x[3] for chip in (1, 2))
    assert layout.y[1] >= layout.y[0] + 36  # not a row of its own above
    assert middle(layout, 0) == middle(layout, 3)


def test_a_loop_uses_a_lane_at_the_right() -> None:
    layout = arrange(scene([-1, -1, -1], [(0, 1), (1, 2), (2, 1)]))
    assert layout.back == [False, False, True]
    assert max(layout.paths[2][::2]) > max(layout.x[box] + layout.width[box] for box in range(3))
    assert max(layout.paths[2][::2]) <= layout.total_width


def test_boxes_without_edges_keep_clear_of_the_others() -> None:
    drawn = scene([-1, -1, 1, 1, 1, -1], [(0, 2), (2, 5)])
    check(drawn, arrange(drawn))


def test_opening_a_module_moves_nothing_sideways_and_what_is_below_only_down() -> None:
    closed = scene([-1, -1, -1, -1], [(0, 1), (1, 2), (2, 3), (0, 3)])
    opened = scene([-1, -1, 1, 1, -1, -1], [(0, 2), (2, 3), (3, 4), (4, 5), (0, 5)])
    before, after = arrange(closed), arrange(opened)
    same = {0: 0, 2: 4, 3: 5}
    shift = middle(after, 0) - middle(before, 0)
    assert all(middle(after, new) - middle(before, old) == shift for old, new in same.items())
    assert after.y[0] == before.y[0] and after.y[4] > before.y[2]
    assert after.y[4] - before.y[2] == pytest.approx(after.y[5] - before.y[3], abs=2)  # a turn is higher


def test_equal_modules_are_laid_out_once() -> None:
    blocks, edges, parent = 8, [], [-1]
    before = 0
    for _ in range(blocks):
        around = len(parent)
        parent += [-1, around, around]
        edges += [(before, around + 1), (around + 1, around + 2)]
        before = around + 2
    memory: Memory = {}
    first = arrange(scene(parent, edges), memory)
    assert len(memory) == 3  # the last block has no exit
    assert arrange(scene(parent, edges), memory) == first == arrange(scene(parent, edges))


def test_a_frame_says_how_much_room_is_around_the_content() -> None:
    layout = arrange(scene([-1, 0], []), frame=Frame(5, 6, 7, 8))
    assert (layout.x[1], layout.y[1]) == (7, 5)
    assert (layout.width[0], layout.height[0]) == (115, 47)


def test_low_boxes_stand_directly_above_what_they_lead_to() -> None:
    edges = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]
    high, low = (arrange(scene([-1] * 5, edges, low=chosen)) for chosen in (frozenset(), frozenset({3})))
    assert high.y[3] == high.y[1] and low.y[3] == low.y[2]


def test_what_is_beyond_the_limits_goes_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_module, "MOST_BENDS", 10)
    boxes = 20
    edges = [(one, other) for one in range(boxes) for other in range(one + 1, boxes)]
    layout = arrange(scene([-1] * boxes, edges))
    assert all(max(path[::2]) <= layout.total_width for path in layout.paths)
    assert max(max(path[::2]) for path in layout.paths) > max(layout.x[b] + layout.width[b] for b in range(boxes))


def test_nothing_is_drawn_of_nothing() -> None:
    layout = arrange(scene([], []))
    assert (layout.total_width, layout.total_height, layout.paths) == (0, 0, [])


def test_pinned_boxes_stay_where_they_were_put() -> None:
    plain = scene([-1, -1, 1, 1, -1], [(0, 2), (2, 3), (3, 4)])
    pinned = replace(plain, pins={3: (200.0, 10.0)})
    before, after = arrange(plain), arrange(pinned)
    frame = Frame()
    assert (after.x[3], after.y[3]) == (after.x[1] + frame.left + 200, after.y[1] + frame.before + 10)
    assert after.width[1] > before.width[1]
    assert after.paths[1][-2:] == [after.x[3] + 50, after.y[3]]


def test_a_pin_beyond_the_corner_shifts_all_others() -> None:
    plain = scene([-1, -1], [(0, 1)])
    layout = arrange(replace(plain, pins={1: (-30.0, -20.0)}))
    assert (layout.x[1], layout.y[1]) == (0, 0) and layout.x[0] == 30 and layout.y[0] == 20

"""Small scenes, and what must hold in every picture."""

from __future__ import annotations

import random

from endoscope.layout.compose import Layout, Scene

SLACK = 0.01


def random_scene(seed: int, boxes: int = 40) -> Scene:
    """Modules in modules, with edges in the order of execution, and chips."""
    rng = random.Random(seed)
    parent: list[int] = []
    is_open: list[bool] = []
    for box in range(boxes):
        around = [-1, *(other for other in range(box) if is_open[other])]
        parent.append(rng.choice(around[-3:]))
        is_open.append(rng.random() < 0.25)
    order = depth_first(parent)
    number = {old: new for new, old in enumerate(order)}
    parent = [number.get(parent[old], -1) for old in order]
    is_open = [is_open[old] for old in order]
    is_open = [opened and box in parent for box, opened in enumerate(is_open)]
    plain = [box for box in range(boxes) if not is_open[box]]
    edges = {tuple(sorted(rng.sample(plain, 2))) for _ in range(boxes)}
    width = [float(rng.choice((96, 120, 144))) for _ in order]
    return Scene(parent, is_open, width, [36.0] * boxes, [(one, other) for one, other in sorted(edges)])


def depth_first(parent: list[int]) -> list[int]:
    """Every box directly after the one around it."""
    children: dict[int, list[int]] = {}
    for box, around in enumerate(parent):
        children.setdefault(around, []).append(box)
    order: list[int] = []
    waiting = children.get(-1, [])[::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += children.get(order[-1], [])[::-1]
    return order


def check(scene: Scene, layout: Layout) -> None:
    """Boxes keep apart and inside of what is around them; edges lead down from border to border, past all boxes."""
    inside_each_other(scene, layout)
    apart(scene, layout)
    for (source, target), path, back in zip(scene.edges, layout.paths, layout.back, strict=True):
        starts_and_ends(layout, source, target, path, is_chip=source in scene.chips)
        if not back and source not in scene.chips:
            assert all(lower >= upper - SLACK for upper, lower in zip(path[1::2], path[3::2], strict=False)), path
        for box in range(len(scene.parent)):
            if not scene.open[box] and box not in (source, target):
                assert not crosses(path, box, layout), (source, target, box)


def inside_each_other(scene: Scene, layout: Layout) -> None:
    for box, around in enumerate(scene.parent):
        if around >= 0:
            assert layout.x[box] >= layout.x[around] - SLACK and layout.y[box] >= layout.y[around] - SLACK
            assert layout.x[box] + layout.width[box] <= layout.x[around] + layout.width[around] + SLACK
            assert layout.y[box] + layout.height[box] <= layout.y[around] + layout.height[around] + SLACK


def apart(scene: Scene, layout: Layout) -> None:
    for one, around in enumerate(scene.parent):
        for other in range(one):
            if scene.parent[other] == around:
                beside = (
                    layout.x[one] >= layout.x[other] + layout.width[other] - SLACK
                    or layout.x[other] >= layout.x[one] + layout.width[one] - SLACK
                )
                below = (
                    layout.y[one] >= layout.y[other] + layout.height[other] - SLACK
                    or layout.y[other] >= layout.y[one] + layout.height[one] - SLACK
                )
                assert beside or below, (one, other)


def starts_and_ends(layout: Layout, source: int, target: int, path: list[float], *, is_chip: bool) -> None:
    if is_chip:
        assert abs(path[0] - layout.x[source] - layout.width[source]) < SLACK
        assert abs(path[2] - layout.x[target]) < SLACK
        return
    assert abs(path[1] - layout.y[source] - layout.height[source]) < SLACK
    assert abs(path[-1] - layout.y[target]) < SLACK
    assert layout.x[target] <= path[-2] <= layout.x[target] + layout.width[target]


def crosses(path: list[float], box: int, layout: Layout, steps: int = 12) -> bool:
    """Whether a point of the path lies in the box: tried point by point."""
    left, right = layout.x[box] + 0.5, layout.x[box] + layout.width[box] - 0.5
    top, bottom = layout.y[box] + 0.5, layout.y[box] + layout.height[box] - 0.5
    for at in range(0, len(path) - 2, 2):
        x1, y1, x2, y2 = path[at : at + 4]
        for step in range(steps + 1):
            share = step / steps
            x = x1 + (x2 - x1) * share * share * (3 - 2 * share) if y1 != y2 else x1 + (x2 - x1) * share
            y = y1 + (y2 - y1) * share
            if left < x < right and top < y < bottom:
                return True
    return False

"""Places for the boxes of a graph: layers from top to bottom, few crossings, straight edges where that is possible.

longest path ─► layers ─► stand-ins where an edge passes a layer ─► order by the mean of the neighbours ─► x
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from statistics import fmean

GAP = 18.0  # between boxes of a layer
_NARROW = 8.0  # width of a stand-in
_LIGHT = 0.05  # an edge that passes makes way for a box
_SWEEPS = 12

Item = str | tuple[str, str, int]  # a box, or an edge on its way through a layer


@dataclass(frozen=True, slots=True)
class Placed:
    """Where everything is; x is the middle of a box."""

    layer: dict[str, int]
    x: dict[Item, float]
    ways: dict[tuple[str, str], list[Item]]  # edge -> source, stand-ins, target
    back: list[tuple[str, str]]  # edges that lead upwards: what comes round again
    width: float
    count: int  # of layers


def arrange(order: Sequence[str], edges: Sequence[tuple[str, str]], widths: Mapping[str, float]) -> Placed:
    """`order` is that of execution; an edge against it leads back."""
    place = {key: number for number, key in enumerate(order)}
    forward = [edge for edge in edges if place[edge[0]] < place[edge[1]]]
    back = [edge for edge in edges if place[edge[0]] > place[edge[1]]]
    layer = _layers(order, forward)
    rows, ways = _rows(order, forward, layer)
    above, below = _links(ways)
    _untangle(rows, above, below)
    x = _straighten(rows, above, below, widths)
    left = min((x[item] - _wide(item, widths) / 2 for row in rows for item in row), default=0.0)
    x = {item: value - left for item, value in x.items()}
    right = max((x[item] + _wide(item, widths) / 2 for row in rows for item in row), default=0.0)
    return Placed(layer, x, ways, back, right, len(rows))


def in_order(position: Mapping[str, int], edges: Sequence[tuple[str, str]]) -> list[str]:
    """Everything behind what it is made from, by position where there is a choice; circles are cut at their start."""
    waiting = dict.fromkeys(position, 0)
    children: dict[str, list[str]] = {}
    for source, target in edges:
        waiting[target] += 1
        children.setdefault(source, []).append(target)
    order: list[str] = []
    ready = [(position[key], key) for key, count in waiting.items() if not count]
    heapify(ready)
    left = sorted(waiting, key=lambda key: position[key], reverse=True)
    done: set[str] = set()
    while len(order) < len(position):
        if not ready:
            while left[-1] in done:
                left.pop()
            ready.append((position[left[-1]], left[-1]))
        key = heappop(ready)[1]
        if key in done:
            continue
        done.add(key)
        order.append(key)
        for child in children.get(key, ()):
            waiting[child] -= 1
            if not waiting[child] and child not in done:
                heappush(ready, (position[child], child))
    return order


def _layers(order: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Below everything that it is made from; what is made from nothing, directly above its first reader."""
    parents: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    for source, target in edges:
        parents.setdefault(target, []).append(source)
        children.setdefault(source, []).append(target)
    layer: dict[str, int] = {}
    for key in order:
        layer[key] = max((layer[parent] + 1 for parent in parents.get(key, ())), default=0)
    for key in order:
        if key not in parents and key in children:
            layer[key] = min(layer[child] for child in children[key]) - 1
    used = {number: rank for rank, number in enumerate(sorted(set(layer.values())))}
    return {key: used[number] for key, number in layer.items()}


def _rows(
    order: Sequence[str], edges: Sequence[tuple[str, str]], layer: Mapping[str, int]
) -> tuple[list[list[Item]], dict[tuple[str, str], list[Item]]]:
    rows: list[list[Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for key in order:
        rows[layer[key]].append(key)
    ways: dict[tuple[str, str], list[Item]] = {}
    for source, target in edges:
        between: list[Item] = [(source, target, number) for number in range(layer[source] + 1, layer[target])]
        for number, item in enumerate(between, layer[source] + 1):
            rows[number].append(item)
        ways[source, target] = [source, *between, target]
    return rows, ways


def _links(ways: Mapping[tuple[str, str], list[Item]]) -> tuple[dict[Item, list[Item]], dict[Item, list[Item]]]:
    above: dict[Item, list[Item]] = {}
    below: dict[Item, list[Item]] = {}
    for way in ways.values():
        for upper, lower in pairwise(way):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    return above, below


def _untangle(rows: list[list[Item]], above: Mapping[Item, list[Item]], below: Mapping[Item, list[Item]]) -> None:
    """Sort every layer by where its neighbours stand, downwards and upwards in turns."""
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        links = above if downwards else below
        for row in rows if downwards else rows[::-1]:
            places = {item: number for other in rows for number, item in enumerate(other)}
            wanted = {
                item: fmean(places[other] for other in links[item]) if links.get(item) else float(places[item])
                for item in row
            }
            row.sort(key=lambda item: wanted[item])


def _straighten(
    rows: list[list[Item]],
    above: Mapping[Item, list[Item]],
    below: Mapping[Item, list[Item]],
    widths: Mapping[str, float],
) -> dict[Item, float]:
    """x of everything: near its neighbours, in the order of the layer, without overlap."""
    x: dict[Item, float] = {}
    for row in rows:
        x.update(zip(row, _apart([0.0] * len(row), row, widths), strict=True))
    trunk = _trunk(rows, above)
    for sweep in range(2 * _SWEEPS + 1):
        downwards = sweep % 2 == 0  # and so at last: what hangs on one box stands straight below it
        links = above if downwards else below
        for row in rows if downwards else rows[::-1]:
            wanted = []
            for item in row:
                near = links.get(item, [])
                if downwards and item in trunk:
                    near = [trunk[item]]
                wanted.append(fmean(x[other] for other in near) if near else x[item])
            x.update(zip(row, _apart(wanted, row, widths), strict=True))
    return x


def _trunk(rows: list[list[Item]], above: Mapping[Item, list[Item]]) -> dict[Item, Item]:
    """Where a branch and what skips it meet again -> where they parted: both stand on one line."""
    ancestors: dict[Item, set[Item]] = {}
    found: dict[Item, Item] = {}
    for item in (item for row in rows for item in row):
        near = above.get(item, [])
        ancestors[item] = {item}.union(*(ancestors[other] for other in near))
        boxes = [other for other in near if isinstance(other, str)]
        skips = [other[0] for other in near if not isinstance(other, str)]
        if len(boxes) == 1 and len(skips) == 1 and skips[0] in ancestors[boxes[0]]:
            found[item] = skips[0]
    return found


def _apart(wanted: Sequence[float], row: Sequence[Item], widths: Mapping[str, float]) -> list[float]:
    """The places nearest to the wanted ones at which nothing overlaps: neighbours that collide share their mean."""
    offsets = [0.0][: len(row)]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (_wide(one, widths) + _wide(other, widths)) / 2 + GAP)
    blocks: list[tuple[float, float, int]] = []  # mean of the wanted places, weight, how many
    for value, offset, item in zip(wanted, offsets, row, strict=True):
        mean, weight, count = value - offset, 1.0 if isinstance(item, str) else _LIGHT, 1
        while blocks and blocks[-1][0] > mean:
            earlier, heavy, many = blocks.pop()
            mean = (earlier * heavy + mean * weight) / (heavy + weight)
            weight, count = weight + heavy, count + many
        blocks.append((mean, weight, count))
    bases = [mean for mean, _, count in blocks for _ in range(count)]
    return [base + offset for base, offset in zip(bases, offsets, strict=True)]


def _wide(item: Item, widths: Mapping[str, float]) -> float:
    return widths[item] if isinstance(item, str) else _NARROW

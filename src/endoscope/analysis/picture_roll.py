"""Draw all passes of a layer as one node, and all calls of a module as one box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from endoscope.analysis.picture import NOWHERE, Box, Edge, Look, Node, Picture, common_box, merge_edges, occupied

Key = tuple[str, Look]


def roll(picture: Picture) -> Picture:
    """One node per layer. Edges say in which passes they leave and enter, where that varies."""
    boxes, box_of = _roll_boxes(picture.boxes)
    layers: dict[Key, list[Node]] = {}
    for node in picture.nodes:
        layers.setdefault((node.layer, node.look), []).append(node)
    stand_in = {node.key: group[0].key for group in layers.values() for node in group}
    number = {node.key: n for group in layers.values() for n, node in enumerate(group, 1)}
    counts = {group[0].key: len(group) for group in layers.values()}
    calls = _calls(picture)
    nodes = tuple(_rolled(group, boxes, box_of, calls) for group in layers.values())

    def passes(edge: Edge) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (number[edge.source],), (number[edge.target],)

    edges = merge_edges(picture.edges, stand_in, passes, counts)
    return occupied(replace(picture, nodes=nodes, edges=edges, boxes=boxes))


def _roll_boxes(boxes: Mapping[int, Box]) -> tuple[dict[int, Box], dict[int, int]]:
    """One box per module and place; and for each box the one that stands for it."""
    known: dict[tuple[int, str, str], int] = {}
    rolled: dict[int, Box] = {}
    stand_in = {NOWHERE: NOWHERE}
    for key in sorted(boxes):
        box = boxes[key]
        parent = stand_in[box.parent]
        first = known.setdefault((parent, box.address, box.type), key)
        stand_in[key] = first
        if first == key:
            rolled[key] = replace(box, parent=parent, rolled=True, passes=1)
        else:
            rolled[first] = replace(rolled[first], passes=rolled[first].passes + 1)
    return rolled, stand_in


def _calls(picture: Picture) -> dict[str, int]:
    """How many nodes are the whole of some call of a module."""
    counts: dict[str, int] = {}
    for node in picture.nodes:
        address = node.whole.partition(":")[0]
        if address:
            counts[address] = counts.get(address, 0) + 1
    return counts


def _rolled(group: list[Node], boxes: Mapping[int, Box], box_of: Mapping[int, int], calls: Mapping[str, int]) -> Node:
    first = group[0]
    box = common_box(boxes, (box_of[node.box] for node in group))
    address = first.whole.partition(":")[0]
    alone = calls.get(address, 0) == len(group)  # no other layer is a call of the same module
    weights = {weight.name: weight for node in group for weight in node.weights}
    return replace(
        first,
        label=first.layer if len(group) > 1 else first.label,
        passes=len(group),
        rolled=True,
        box=box,
        shape=_shapes([node.shape for node in group]),
        bytes=first.bytes,
        whole=address if alone else first.whole,
        weights=tuple(weights.values()),
        dashed=all(node.dashed for node in group),
        decides=any(node.decides for node in group),
    )


def _shapes(shapes: list[str]) -> str:
    return shapes[0] if len(set(shapes)) == 1 else f"{shapes[0]} … {shapes[-1]}"

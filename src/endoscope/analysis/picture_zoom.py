"""Draw one module only, and draw modules that are one operation as that operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from endoscope.analysis.picture import (
    ENDS,
    NOWHERE,
    Box,
    Edge,
    Look,
    Node,
    Picture,
    Weight,
    occupied,
    paths_of,
)

_MOST_NAMES = 3  # on a node that stands for several outside ones


def inside(picture: Picture, address: str) -> set[int]:
    """Boxes that belong to a module: its calls, or those of the modules in it if it is never called itself.

    `fc:2` is the second call only. All boxes in these belong to it as well.
    """
    calls = {key for key, box in picture.boxes.items() if address in (box.address, f"{box.address}:{box.pass_}")}
    if not calls:
        calls = {key for key, box in picture.boxes.items() if box.address.startswith(address + ".")}
    found = set(calls)
    for key in sorted(picture.boxes):  # a box has a larger number than the one around it
        if picture.boxes[key].parent in found:
            found.add(key)
    return found


def zoom(picture: Picture, address: str) -> Picture:
    """Only what happens inside one module; what comes in and goes out as one node each."""
    chosen = inside(picture, address)
    own = {node.key for node in picture.nodes if node.box in chosen}
    entrances, exits, edges = _boundary(picture, own)
    frames = {key for key in chosen if picture.boxes[key].address == address.partition(":")[0]}
    outer: dict[int, int] = {}  # box -> the box around it that is still drawn

    def drawn(box: int) -> int:
        return NOWHERE if box not in chosen else outer[box] if box in frames else box

    for key in sorted(chosen):
        outer[key] = drawn(picture.boxes[key].parent)
    alone = _alone(picture, frames)
    nodes = [
        replace(node, box=drawn(node.box), whole=alone.get(node.key, "")) for node in picture.nodes if node.key in own
    ]
    boxes = {key: replace(picture.boxes[key], parent=outer[key]) for key in sorted(chosen - frames)}
    return Picture(picture.title, picture.facts, (*entrances, *nodes, *exits), tuple(edges), boxes)


def _alone(picture: Picture, frames: set[int]) -> dict[int, str]:
    """Operations that are all that a call of the chosen module does."""
    held: dict[int, list[int]] = {}
    paths = paths_of(picture)
    for node in picture.nodes:
        for box in paths[node.box]:
            if box in frames and node.look not in ENDS:
                held.setdefault(box, []).append(node.key)
    return {nodes[0]: picture.boxes[box].name for box, nodes in held.items() if len(nodes) == 1}


def _boundary(picture: Picture, own: set[int]) -> tuple[list[Node], list[Node], list[Edge]]:
    """Nodes for the world outside, and all edges of the part that is drawn."""
    nodes = picture.by_key
    entrances: dict[int, Node] = {}
    receivers: dict[int, list[Node]] = {}
    edges: list[Edge] = []
    for edge in picture.edges:
        into, out_of = edge.target in own, edge.source in own
        if into:
            edges.append(edge)
            if not out_of:
                entrances[edge.source] = _entrance(nodes[edge.source])
        elif out_of and not edge.control:
            receivers.setdefault(edge.source, []).append(nodes[edge.target])
    exits = []
    for number, (source, targets) in enumerate(receivers.items(), max(nodes, default=0) + 1):
        exits.append(_exit(number, nodes[source], targets))
        edges.append(Edge(source, number))
    return [entrances[node.key] for node in picture.nodes if node.key in entrances], exits, edges


def _entrance(node: Node) -> Node:
    if node.look in ENDS:
        return replace(node, box=NOWHERE)
    return replace(
        node, label=f"from {node.label}", layer=f"from {node.layer}", look=Look.ENTRANCE, box=NOWHERE,
        weights=(), buffers=(), dashed=False, decides=False,
    )  # fmt: skip


def _exit(key: int, source: Node, targets: list[Node]) -> Node:
    return replace(
        source, key=key, label=f"to {_names(t.label for t in targets)}", layer=f"to {_names(t.layer for t in targets)}",
        look=Look.EXIT, type="exit", box=NOWHERE, weights=(), buffers=(), dashed=False, decides=False,
    )  # fmt: skip


def _names(labels: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(labels))
    more = f" and {len(distinct) - _MOST_NAMES} more" if len(distinct) > _MOST_NAMES else ""
    return ", ".join(distinct[:_MOST_NAMES]) + more


def absorb(picture: Picture) -> Picture:
    """A module that is one operation needs no frame: the operation carries its address.

    Buffers that only such a module reads (running statistics) are told in its node, like parameters.
    """
    paths = paths_of(picture)
    held: dict[int, int] = {}
    for node in picture.nodes:
        if node.look not in ENDS:
            for box in paths[node.box]:
                held[box] = held.get(box, 0) + 1
    nodes = [_absorbed(node, picture.boxes, held) for node in picture.nodes]
    nodes, gone = _swallow_buffers(nodes, picture.edges)
    edges = _without_sources(picture.edges, gone)
    return occupied(replace(picture, nodes=tuple(nodes), edges=edges))


def _without_sources(edges: tuple[Edge, ...], gone: set[int]) -> tuple[Edge, ...]:
    """The other edges; an argument that is left alone needs no name."""
    touched = {edge.target for edge in edges if edge.source in gone}
    left = Counter(edge.target for edge in edges if edge.source not in gone)
    return tuple(
        replace(edge, argument="") if edge.target in touched and left[edge.target] == 1 else edge
        for edge in edges
        if edge.source not in gone
    )


def _absorbed(node: Node, boxes: Mapping[int, Box], held: Mapping[int, int]) -> Node:
    box, whole = node.box, node.whole
    while box != NOWHERE and held.get(box, 0) <= 1:
        if not whole and not boxes[box].function and node.look not in ENDS:
            whole = boxes[box].name
        box = boxes[box].parent
    return node if box == node.box else replace(node, box=box, whole=whole)


def _swallow_buffers(nodes: list[Node], edges: tuple[Edge, ...]) -> tuple[list[Node], set[int]]:
    by_key = {node.key: node for node in nodes}
    readers: dict[int, list[int]] = {}
    for edge in edges:
        if by_key[edge.source].look is Look.BUFFER:
            readers.setdefault(edge.source, []).append(edge.target)
    told: dict[int, list[Weight]] = {}
    gone: set[int] = set()
    for buffer, users in readers.items():
        node = by_key[buffer]
        owner = node.label.rpartition(".")[0]
        if owner and all(by_key[user].whole.partition(":")[0] == owner for user in users):
            gone.add(buffer)
            for user in dict.fromkeys(users):
                told.setdefault(user, []).append(Weight(node.label, node.shape, 0, node.bytes))
    kept = [node for node in nodes if node.key not in gone]
    return [replace(n, buffers=tuple(told[n.key])) if n.key in told else n for n in kept], gone

"""Which boxes have a row for themselves: there is room beside them, so a recording draws their history in them."""

from __future__ import annotations

from endoscope.layout.folding import Folded


def alone(folded: Folded) -> list[bool]:
    """For each box whether no other box of the same module can stand in its row. Chips and open modules never are."""
    boxes = folded.boxes
    rank = [0] * len(boxes)
    pairs = sorted({pair for edge in folded.edges if (pair := _siblings(folded, *edge)) is not None})
    edges = [(one, other) for one, other in pairs if one < other]  # without loops
    for one, other in edges:
        rank[other] = max(rank[other], rank[one] + 1)
    _lowered(edges, rank)
    linked = {box for edge in folded.edges for box in edge}  # others stand below, in rows of their own
    count: dict[tuple[int, int], int] = {}
    for number, box in enumerate(boxes):
        if not box.is_chip and (box.open or number in linked):
            place = box.parent, rank[number]
            count[place] = count.get(place, 0) + 1
    return [
        not box.is_chip and not box.open and count.get((box.parent, rank[number])) == 1
        for number, box in enumerate(boxes)
    ]


def _lowered(edges: list[tuple[int, int]], rank: list[int]) -> None:
    """What has more readers than sources stands directly above its first reader, as in net.py."""
    sources = [0] * len(rank)
    readers: dict[int, list[int]] = {}
    for one, other in edges:
        sources[other] += 1
        readers.setdefault(one, []).append(other)
    for box in sorted(readers, reverse=True):
        if len(readers[box]) > sources[box]:
            rank[box] = max(rank[box], min(rank[other] for other in readers[box]) - 1)


def _siblings(folded: Folded, source: int, target: int) -> tuple[int, int] | None:
    """The two boxes of one module between which an edge runs; None for a chip and its reader."""
    boxes = folded.boxes
    if boxes[source].is_chip:
        return None
    while boxes[source].parent != boxes[target].parent:
        if boxes[source].depth >= boxes[target].depth:
            source = boxes[source].parent
        else:
            target = boxes[target].parent
    return source, target

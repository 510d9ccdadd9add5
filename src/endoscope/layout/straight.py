"""The x of every vertex: what can be straight is straight.

spine ─► ties between neighbouring rows ─► rigid blocks ─► packed from the left ─► pulled to their neighbours
"""

from __future__ import annotations

from itertools import pairwise

from endoscope.layout.level import GAP, LANE
from endoscope.layout.net import Net, Segment

_PASSES = 10
_EXIT_FIRST = 100_000  # a way to an exit counts for more than any number of boxes
_FAR = 1e18
_MIDDLE_OF_BENDS = 4  # how much harder a straight lane pulls than a box


def assign_x(net: Net, place: list[int]) -> list[float]:
    """The left side of every vertex; boxes with chips begin where the chips do."""
    above, below = _ties(net, place, _spine(net, place))
    block, shift, count = _blocks(net, above, below)
    right, left = _distances(net, block, shift, count)
    x = _packed(right, left)
    _pull(net, block, shift, x, right, left)
    return [x[block[vertex]] + shift[vertex] if block[vertex] >= 0 else 0.0 for vertex in range(len(net.rank))]


def _spine(net: Net, place: list[int]) -> set[int]:
    """Ids of the segments of the path from entry to exit through most boxes; of equal paths the middle one."""
    score = [0] * len(net.rank)
    following: list[Segment | None] = [None] * len(net.rank)
    for row in reversed(net.rows):
        for vertex in row:
            if net.down[vertex]:
                most = max(score[segment.below] for segment in net.down[vertex])
                equal = [segment for segment in net.down[vertex] if score[segment.below] == most]
                equal.sort(key=lambda segment: place[segment.below])
                following[vertex] = equal[(len(equal) - 1) // 2]
                score[vertex] = most
            if vertex < net.boxes:
                score[vertex] += 1
            elif net.first_outlet <= vertex < net.first_bend:
                score[vertex] += _EXIT_FIRST
    found: set[int] = set()
    begin = max(net.rows[0] or net.main, key=score.__getitem__, default=None)
    step = following[begin] if begin is not None else None
    while step is not None:
        found.add(id(step))
        step = following[step.below]
    return found


def _ties(net: Net, place: list[int], spine: set[int]) -> tuple[list[Segment | None], list[Segment | None]]:
    """Segments that will be vertical: at most one up and one down from each vertex, and none crosses another."""
    above: list[Segment | None] = [None] * len(net.rank)
    below: list[Segment | None] = [None] * len(net.rank)
    for row in net.rows[1:]:
        taken: list[tuple[int, int]] = []
        for segment in _candidates(net, place, row, spine):
            if below[segment.above] or above[segment.below]:
                continue
            upper, lower = place[segment.above], place[segment.below]
            if any((upper - one) * (lower - other) < 0 for one, other in taken):
                continue
            taken.append((upper, lower))
            below[segment.above] = segment
            above[segment.below] = segment
    return above, below


def _candidates(net: Net, place: list[int], row: list[int], spine: set[int]) -> list[Segment]:
    """The spine, then from box to box, from bend to bend, mixed; among equals those to the middle neighbour."""
    found: list[tuple[int, float, int, Segment]] = []
    for vertex in row:
        near = sorted(net.up[vertex], key=lambda segment: place[segment.above])
        middle = (len(near) - 1) / 2
        for number, segment in enumerate(near):
            bends = (segment.above >= net.first_bend) + (segment.below >= net.first_bend)
            kind = 0 if id(segment) in spine else (1, 3, 2)[bends]
            siblings = net.down[segment.above]
            off = abs(number - middle)
            if len(siblings) > 1:
                off += abs(siblings.index(segment) - (len(siblings) - 1) / 2)
            found.append((kind, off, len(found), segment))
    found.sort()
    return [segment for *_, segment in found]


def _blocks(net: Net, above: list[Segment | None], below: list[Segment | None]) -> tuple[list[int], list[float], int]:
    """Tied vertices are one rigid block: number of the block of each vertex, and its x in that block."""
    block, shift, count = [-1] * len(net.rank), [0.0] * len(net.rank), 0
    for row in net.rows:
        for first in row:
            if above[first] is not None:
                continue
            vertex, x = first, 0.0
            while True:
                block[vertex], shift[vertex] = count, x
                segment = below[vertex]
                if segment is None:
                    break
                x += segment.start - segment.end
                vertex = segment.below
            count += 1
    return block, shift, count


Distances = list[dict[int, float]]


def _distances(net: Net, block: list[int], shift: list[float], count: int) -> tuple[Distances, Distances]:
    """How far blocks that are neighbours in a row must stay apart, seen from the left one and from the right one."""
    right: Distances = [{} for _ in range(count)]
    left: Distances = [{} for _ in range(count)]
    boxes, width = net.boxes, net.width
    for row in net.rows:
        for one, other in pairwise(row):
            gap = LANE if one >= boxes or other >= boxes else GAP
            distance = shift[one] + width[one] + gap - shift[other]
            first, second = block[one], block[other]
            if distance > right[first].get(second, -_FAR):
                right[first][second] = left[second][first] = distance
    return right, left


def _packed(right: Distances, left: Distances) -> list[float]:
    """As far to the left as the distances allow."""
    x = [0.0] * len(right)
    waiting = [len(found) for found in left]
    ready = [block for block, count in enumerate(waiting) if not count]
    for block in ready:
        for other, distance in right[block].items():
            x[other] = max(x[other], x[block] + distance)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return x


def _pull(net: Net, block: list[int], shift: list[float], x: list[float], right: Distances, left: Distances) -> None:
    """Every block goes to the mean of what it is linked with, as far as its neighbours let it."""
    pulls: list[list[tuple[int, float, int]]] = [[] for _ in x]
    for segment in net.segments:
        one, other = block[segment.above], block[segment.below]
        if one != other:
            distance = shift[segment.above] + segment.start - shift[segment.below] - segment.end
            weight = _MIDDLE_OF_BENDS if net.is_bend(segment.above) and net.is_bend(segment.below) else 1
            pulls[one].append((other, -distance, weight))
            pulls[other].append((one, distance, weight))
    movable = sorted((number for number in range(len(x)) if pulls[number]), key=x.__getitem__)
    for number in range(_PASSES if movable else 0):
        for here in movable if number % 2 else reversed(movable):
            total = sum((x[other] + distance) * weight for other, distance, weight in pulls[here])
            wanted = total / sum(weight for *_, weight in pulls[here])
            highest = min((x[other] - distance for other, distance in right[here].items()), default=_FAR)
            lowest = max((x[other] + distance for other, distance in left[here].items()), default=-_FAR)
            x[here] = max(lowest, min(highest, wanted))

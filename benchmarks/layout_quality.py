"""What can be counted in a picture: crossings, edges through boxes, edges against the flow, and what moves."""

from __future__ import annotations

import bisect
import statistics
from dataclasses import dataclass

from endoscope.layout.compose import Layout, Scene

Segment = tuple[float, float, float, float]
_SLACK = 0.5  # pixels


@dataclass(frozen=True)
class Quality:
    crossings: int
    through: int  # edges that touch a box which is neither of their ends nor around one of them
    against: int
    length: float
    width: float


def quality(scene: Scene, layout: Layout) -> Quality:
    """Of one picture."""
    lines = [_lines(path) for path in layout.paths]
    length = sum(abs(x2 - x1) + abs(y2 - y1) for pieces in lines for x1, y1, x2, y2 in pieces)
    crossings, through = _crossings(lines), _through(scene, layout, lines)
    return Quality(crossings, through, sum(layout.back), length, layout.total_width)


def _lines(path: list[float]) -> list[Segment]:
    """Curves are taken for straight lines: two curves of one gap cross if and only if these do."""
    return [(path[i], path[i + 1], path[i + 2], path[i + 3]) for i in range(0, len(path) - 2, 2)]


def _crossings(lines: list[list[Segment]]) -> int:
    """Pairs of edges that cross properly; edges that share a line or a port do not."""
    pieces = sorted((min(s[1], s[3]), max(s[1], s[3]), edge, s) for edge, own in enumerate(lines) for s in own)
    found: set[tuple[int, int]] = set()
    for number, (_, bottom, edge, segment) in enumerate(pieces):
        for other_top, _, other, second in pieces[number + 1 :]:
            if other_top >= bottom:
                break
            if edge != other and _cross(segment, second):
                found.add((min(edge, other), max(edge, other)))
    return len(found)


def _cross(one: Segment, other: Segment) -> bool:
    def side(line: Segment, x: float, y: float) -> float:
        return (line[2] - line[0]) * (y - line[1]) - (line[3] - line[1]) * (x - line[0])

    first, second = side(one, other[0], other[1]), side(one, other[2], other[3])
    third, fourth = side(other, one[0], one[1]), side(other, one[2], one[3])
    return first * second < -1e-6 and third * fourth < -1e-6


def _through(scene: Scene, layout: Layout, lines: list[list[Segment]]) -> int:
    boxes = sorted((layout.y[b], b) for b in range(len(scene.parent)) if not scene.open[b])
    tops = [top for top, _ in boxes]
    highest = max((layout.height[b] for _, b in boxes), default=0.0)
    count = 0
    for edge, pieces in enumerate(lines):
        ends = scene.edges[edge]
        near: list[tuple[Segment, int]] = []
        for piece in pieces:
            upper, lower = sorted((piece[1], piece[3]))
            first, last = bisect.bisect_left(tops, upper - highest), bisect.bisect_right(tops, lower)
            near += [(piece, box) for _, box in boxes[first:last]]
        count += any(box not in ends and _touches(piece, box, layout) for piece, box in near)
    return count


def _touches(piece: Segment, box: int, layout: Layout) -> bool:
    """Whether a piece of an edge meets the inside of a box."""
    left, right = layout.x[box] + _SLACK, layout.x[box] + layout.width[box] - _SLACK
    top, bottom = layout.y[box] + _SLACK, layout.y[box] + layout.height[box] - _SLACK
    x1, y1, x2, y2 = piece
    begin, end = 0.0, 1.0
    for start, way, low, high in ((x1, x2 - x1, left, right), (y1, y2 - y1, top, bottom)):
        if way == 0:
            if not low < start < high:
                return False
            continue
        near, far = sorted(((low - start) / way, (high - start) / way))
        begin, end = max(begin, near), min(end, far)
    return begin < end


def moved(before: dict[str, tuple[float, float]], after: dict[str, tuple[float, float]], below: float) -> float:
    """Mean distance by which other boxes move sideways, and along the flow beyond the growth, once the camera follows.

    The camera keeps what was opened in place, so the median sideways shift does not count. What is below it moves
    down by the growth; `below` is where that begins.
    """
    shared = [key for key in before if key in after]
    if not shared:
        return 0.0
    sideways = [after[key][0] - before[key][0] for key in shared]
    down = [after[key][1] - before[key][1] for key in shared]
    common = statistics.median(sideways)
    grown = [shift for key, shift in zip(shared, down, strict=True) if before[key][1] >= below]
    growth = statistics.median(grown) if grown else 0.0
    expected = [growth if before[key][1] >= below else 0.0 for key in shared]
    return statistics.fmean(abs(x - common) + abs(y - e) for x, y, e in zip(sideways, down, expected, strict=True))

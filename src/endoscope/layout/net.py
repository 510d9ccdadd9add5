"""The vertices of one module in rows: boxes, its entries and exits, and a bend for every row that an edge passes."""

from __future__ import annotations

from typing import NamedTuple

from endoscope.layout.level import CHIP_BETWEEN, CHIP_GAP, Level

MOST_BENDS = 6000
MOST_EDGES = 4000


class Segment(NamedTuple):
    """A piece of an edge between neighbouring rows; `start` and `end` are measured from the left of its vertices."""

    above: int
    below: int
    start: float
    end: float


class Way(NamedTuple):
    """The whole of an edge."""

    source: int
    start: float
    target: int
    end: float
    bends: tuple[int, ...]


class Link(NamedTuple):
    """An edge before it has bends, by vertices."""

    source: int
    exit: int
    target: int
    entry: int
    number: int


class Net:
    """Vertices are numbered: boxes, entries of the module, its exits, bends. Row 0 holds the entries."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.boxes = len(level.widths)
        self.first_outlet = self.boxes + len(level.inlets)
        self.first_bend = self.first_outlet + len(level.outlets)
        self.chips: list[list[int]] = [[] for _ in level.widths]
        for box, reader in enumerate(level.reader):
            if reader >= 0:
                self.chips[reader].append(box)
        self.chip_room = [max((level.widths[c] + CHIP_GAP for c in chips), default=0.0) for chips in self.chips]
        self.links = self._links()
        self._tell_loose()
        self.rank = self._ranks()
        self.last = max((self.rank[box] for box in self.main), default=0)
        for outlet in range(self.first_outlet, self.first_bend):
            self.rank[outlet] = self.last + 1
        self.width = [room + width for room, width in zip(self.chip_room, level.widths, strict=True)]
        self.width += [0.0] * (self.first_bend - self.boxes)
        self.aside: set[int] = set()  # numbers of links that use the lane at the right
        self.ways: dict[int, Way] = {}
        self.segments: list[Segment] = []
        self._bend()
        self.up: list[list[Segment]] = [[] for _ in self.rank]
        self.down: list[list[Segment]] = [[] for _ in self.rank]
        for segment in self.segments:
            self.down[segment.above].append(segment)
            self.up[segment.below].append(segment)
        self.rows: list[list[int]] = [[] for _ in range(self.last + 2)]
        self.rows[0] += range(self.boxes, self.first_outlet)
        for vertex in (*self.main, *range(self.first_bend, len(self.rank)), *range(self.first_outlet, self.first_bend)):
            self.rows[self.rank[vertex]].append(vertex)

    def chips_height(self, box: int) -> float:
        """Of the column of chips beside a box."""
        heights = [self.level.heights[chip] for chip in self.chips[box]]
        return sum(heights) + CHIP_BETWEEN * (len(heights) - 1) if heights else 0.0

    def is_bend(self, vertex: int) -> bool:
        return vertex >= self.first_bend

    def _links(self) -> list[Link]:
        """All edges but those of chips: inner ones, from the entries, to the exits; numbered in this order."""
        level = self.level
        ends = [(edge.source, edge.exit, edge.target, edge.entry) for edge in level.edges]
        for number, ports in enumerate(level.inlets, self.boxes):
            ends += [(number, 0, port.box, port.number) for port in ports]
        ends += [(port.box, port.number, number, 0) for number, port in enumerate(level.outlets, self.first_outlet)]
        is_chip = [reader >= 0 for reader in level.reader] + [False] * (self.first_bend - self.boxes)
        return [Link(*link, number) for number, link in enumerate(ends) if not is_chip[link[0]]]

    def _tell_loose(self) -> None:
        """Boxes in rows, and boxes without any edge, which stand below."""
        level = self.level
        linked = [bool(chips) for chips in self.chips] + [True] * (self.first_bend - self.boxes)
        for link in self.links:
            linked[link.source] = linked[link.target] = True
        for loop in level.loops:
            linked[loop.source] = linked[loop.target] = True
        plain = [box for box in range(self.boxes) if level.reader[box] < 0]
        self.main = [box for box in plain if linked[box]]
        self.loose = [box for box in plain if not linked[box]]

    def _ranks(self) -> list[int]:
        """Longest path; what has more readers than sources goes directly above its first reader."""
        rank = [0] * self.first_bend
        sources = [0] * self.first_bend
        targets: list[list[int]] = [[] for _ in range(self.boxes)]
        for link in self.links:
            sources[link.target] += 1
            if link.source < self.boxes and link.target < self.boxes:
                targets[link.source].append(link.target)
        for box in self.main:
            rank[box] = max(rank[box], 1)
            for target in targets[box]:
                rank[target] = max(rank[target], rank[box] + 1)
        low = set(self.level.low)
        for box in reversed(self.main):
            if targets[box] and (len(targets[box]) > sources[box] or box in low):
                rank[box] = max(rank[box], min(rank[target] for target in targets[box]) - 1)
        return rank

    # ---- bends -----------------------------------------------------------------------------------------------------

    def _bend(self) -> None:
        """All edges from one port share their bends."""
        fans: dict[tuple[int, int], list[Link]] = {}
        for link in self._affordable():
            fans.setdefault((link.source, link.exit), []).append(link)
        for (source, exit_), links in fans.items():
            self._fan(source, self._start(source, exit_), links)

    def _fan(self, source: int, start: float, links: list[Link]) -> None:
        rank, bends = self.rank, []
        before, leaves = source, start
        for row in range(rank[source] + 1, max(rank[link.target] for link in links)):
            bend = len(rank)
            rank.append(row)
            self.width.append(0.0)
            self.segments.append(Segment(before, bend, leaves, 0.0))
            bends.append(bend)
            before, leaves = bend, 0.0
        for link in links:
            passed = rank[link.target] - rank[source] - 1
            end = self._end(link.target, link.entry)
            above = (bends[passed - 1], 0.0) if passed else (source, start)
            self.segments.append(Segment(above[0], link.target, above[1], end))
            self.ways[link.number] = Way(source, start, link.target, end, tuple(bends[:passed]))

    def _start(self, vertex: int, exit_: int) -> float:
        return self.chip_room[vertex] + self.level.exits[vertex][exit_] if vertex < self.boxes else 0.0

    def _end(self, vertex: int, entry: int) -> float:
        return self.chip_room[vertex] + self.level.entries[vertex][entry] if vertex < self.boxes else 0.0

    def _affordable(self) -> list[Link]:
        """All edges, or the shortest that stay within the limits; the others use the lane at the right."""
        rank = self.rank
        length: dict[tuple[int, int], int] = {}
        for link in self.links:
            port = link.source, link.exit
            length[port] = max(length.get(port, 0), rank[link.target] - rank[link.source] - 1)
        if len(self.links) <= MOST_EDGES and sum(length.values()) <= MOST_BENDS:
            return self.links
        kept: list[Link] = []
        spent, reached = 0, dict.fromkeys(length, 0)
        for count, link in enumerate(sorted(self.links, key=lambda link: rank[link.target] - rank[link.source])):
            port = link.source, link.exit
            more = max(0, rank[link.target] - rank[link.source] - 1 - reached[port])
            inner = link.source < self.boxes and link.target < self.boxes
            if inner and (spent + more > MOST_BENDS or count > MOST_EDGES):
                self.aside.add(link.number)
                continue
            spent += more
            reached[port] += more
            kept.append(link)
        return kept

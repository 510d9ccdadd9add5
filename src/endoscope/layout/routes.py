"""From rows and x to rectangles and paths: `place` is the whole layout of one module.

Edges go straight down beside the boxes of a row and turn only in the free gap between rows, so none touches a box.
"""

from __future__ import annotations

from endoscope.layout.level import (
    CHIP_BETWEEN,
    CHIP_GAP,
    GAP,
    HIGHEST_TURN,
    LANE_OUTSIDE,
    PORT_MARGIN,
    ROW,
    TURN,
    Edge,
    Level,
    Path,
    Placed,
)
from endoscope.layout.net import Net
from endoscope.layout.order import sort_rows
from endoscope.layout.straight import assign_x

_STEEP = 0.05  # share of the widest sideways run that a turn is higher
_AT_PORT = 0.8  # turns at the border of a module are lower
_STRAIGHT = 2.0  # sideways runs below this are taken for straight
_SAME = 1e-6  # sums of the same numbers in another order
_LANES = 4  # at the right; more edges share them
_LINE = 480.0  # boxes without edges stand in lines at least this wide
_CHIP_INSET = 6.0  # an edge of a chip stays so far away from the corners of its reader


def place(level: Level) -> Placed:
    """Lay out one module."""
    return _Places(level).placed()


class _Places:
    def __init__(self, level: Level) -> None:
        self.level = level
        self.net = net = Net(level)
        self.x = assign_x(net, sort_rows(net))
        self._shift_right()
        self.top, self.bottom = self._rows()
        self.height = self.bottom[-1]
        self.box_x = [0.0] * net.boxes
        self.box_y = [0.0] * net.boxes
        for box in net.main:
            self._put(box)

    def placed(self) -> Placed:
        """Routes, and what stands below everything else."""
        level, net = self.level, self.net
        edges = [self._edge(number, edge) for number, edge in enumerate(level.edges)]
        loops = [self._lane(number, loop) for number, loop in enumerate(level.loops)]
        number = len(level.edges)
        inlets: list[list[Path]] = []
        for ports in level.inlets:
            inlets.append([self._route(number + k) for k in range(len(ports))])
            number += len(ports)
        outlets = [self._route(number + k) for k in range(len(level.outlets))]
        if level.loops or net.aside:
            self.width += 2 * LANE_OUTSIDE + LANE_OUTSIDE * _LANES
        self._put_loose()
        entries = self.x[net.boxes : net.first_outlet]
        exits = self.x[net.first_outlet : net.first_bend]
        return Placed(self.box_x, self.box_y, self.width, self.height, edges, loops, inlets, outlets, entries, exits)

    # ---- rectangles ------------------------------------------------------------------------------------------------

    def _shift_right(self) -> None:
        """The leftmost vertex stands at 0, or everything in the middle if the module is wider than its content."""
        net, least = self.net, self.level.least_width
        drawn = [(vertex, PORT_MARGIN if vertex >= net.boxes else 0.0) for row in net.rows for vertex in row]
        left = min((self.x[vertex] - margin for vertex, margin in drawn), default=0.0)
        right = max((self.x[vertex] + net.width[vertex] + margin for vertex, margin in drawn), default=0.0)
        self.width = max(right - left, least)
        shift = (self.width - (right - left)) / 2 - left
        self.x = [x + shift for x in self.x]

    def _rows(self) -> tuple[list[float], list[float]]:
        """Top and bottom of each row; the gap below it is as high as its edges need to turn."""
        net, x, heights = self.net, self.x, self.level.heights
        aside = [0.0] * len(net.rows)  # the widest sideways run below each row
        for segment in net.segments:
            sideways = abs(x[segment.above] + segment.start - x[segment.below] - segment.end)
            above = net.rank[segment.above]
            aside[above] = max(aside[above], sideways)
        last = net.last + 1 if self.level.outlets else net.last
        tops: list[float] = []
        bottoms: list[float] = []
        y = 0.0
        for number, row in enumerate(net.rows):
            tops.append(y)
            y += max((max(heights[box], net.chips_height(box)) for box in row if box < net.boxes), default=0.0)
            bottoms.append(y)
            if number < last and (number or self.level.inlets):
                y += self._gap(aside[number], number in (0, net.last))
        return tops, bottoms

    @staticmethod
    def _gap(aside: float, at_port: bool) -> float:
        if aside < _STRAIGHT:
            return PORT_MARGIN if at_port else ROW
        return min(HIGHEST_TURN, TURN * (_AT_PORT if at_port else 1.0) + aside * _STEEP)

    def _put(self, box: int) -> None:
        """A box and its chips, each in the middle of the height of both."""
        net, heights = self.net, self.level.heights
        top = self.top[net.rank[box]]
        chips = net.chips_height(box)
        height = max(heights[box], chips)
        self.box_x[box] = self.x[box] + net.chip_room[box]
        self.box_y[box] = top + (height - heights[box]) / 2
        y = top + (height - chips) / 2
        for chip in net.chips[box]:
            self.box_x[chip] = self.box_x[box] - CHIP_GAP - self.level.widths[chip]
            self.box_y[chip] = y
            y += heights[chip] + CHIP_BETWEEN

    def _put_loose(self) -> None:
        """Boxes without edges: in lines below, or at the right of edges that leave below."""
        if not self.net.loose:
            return
        widths, heights = self.level.widths, self.level.heights
        left = self.width + GAP if self.level.outlets else 0.0
        widest = left + max(widths[box] for box in self.net.loose) if left else max(self.width, _LINE)
        x, y, line = left, 0.0, 0.0
        if self.height and not left:
            y = self.height + TURN
        for box in self.net.loose:
            if x > left and x + widths[box] > widest:
                x, y, line = left, y + line + GAP, 0.0
            self.box_x[box], self.box_y[box] = x, y
            x += widths[box] + GAP
            line = max(line, heights[box])
            self.width = max(self.width, x - GAP)
        self.height = max(self.height, y + line)

    # ---- paths -----------------------------------------------------------------------------------------------------

    def _edge(self, number: int, edge: Edge) -> Path:
        if self.level.reader[edge.source] >= 0:
            return self._from_chip(edge)
        return self._lane(number, edge) if number in self.net.aside else self._route(number)

    def _from_chip(self, edge: Edge) -> Path:
        x, y = self.box_x[edge.source] + self.level.widths[edge.source], self.box_y[edge.source]
        middle = y + self.level.heights[edge.source] / 2
        upper = self.box_y[edge.target] + _CHIP_INSET
        lower = self.box_y[edge.target] + self.level.heights[edge.target] - _CHIP_INSET
        return [x, middle, self.box_x[edge.target], max(upper, min(lower, middle))]

    def _route(self, number: int) -> Path:
        """Down from row to row."""
        net, way = self.net, self.net.ways[number]
        x = self.x[way.source] + way.start
        y = self._bottom_of(way.source)
        path = [x, y]
        row = net.rank[way.source]
        for vertex in (*way.bends, way.target):
            next_x = self.x[vertex] + (way.end if vertex == way.target else 0.0)
            if abs(next_x - x) > _SAME:
                path += (x, self.bottom[row], next_x, self.top[net.rank[vertex]])
            x, row = next_x, net.rank[vertex]
        path += (x, self.box_y[way.target] if way.target < net.boxes else self.height)
        return path

    def _bottom_of(self, vertex: int) -> float:
        if vertex < self.net.boxes:
            return self.box_y[vertex] + self.level.heights[vertex]
        return 0.0

    def _lane(self, number: int, edge: Edge) -> Path:
        """Out below the box, along a lane at the right, and in from above."""
        net, level = self.net, self.level
        lane = self.width + 10 + LANE_OUTSIDE * (number % _LANES)
        start = self.box_x[edge.source] + level.exits[edge.source][edge.exit]
        end = self.box_x[edge.target] + level.entries[edge.target][edge.entry]
        below = self.bottom[net.rank[edge.source]] + LANE_OUTSIDE
        above = self.top[net.rank[edge.target]] - LANE_OUTSIDE
        return [
            start, self._bottom_of(edge.source), start, below, lane, below, lane, above, end, above,
            end, self.box_y[edge.target],
        ]  # fmt: skip

"""What the layout of one module depends on, and what comes out: plain data.

    Level ─► net (ranks, bends) ─► order ─► straight ─► routes ─► Placed

`Level` is hashable, so equal modules are laid out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Path = list[float]  # x, y, x, y, …: lines where x or y stays the same, curves with vertical ends between

GAP = 18.0  # between boxes of a row
LANE = 12.0  # beside an edge that passes a row
ROW = 16.0  # between rows with straight edges only
TURN = 24.0  # between rows where an edge bends
HIGHEST_TURN = 64.0
CHIP_GAP = 14.0  # between a chip and its reader
CHIP_BETWEEN = 6.0  # between chips
PORT_MARGIN = 8.0  # beside ports and bends at the borders of a module
LANE_OUTSIDE = 7.0  # between the lanes at the right


class Edge(NamedTuple):
    """Between two boxes of a module: from an exit of one to an entry of the other."""

    source: int
    target: int
    exit: int = 0
    entry: int = 0


class Port(NamedTuple):
    """An entry or an exit of a box."""

    box: int
    number: int = 0


class Level(NamedTuple):
    """The inside of one module. Boxes stand in the order of execution."""

    widths: tuple[float, ...]
    heights: tuple[float, ...]
    entries: tuple[tuple[float, ...], ...]  # x of the entries of each box
    exits: tuple[tuple[float, ...], ...]
    edges: tuple[Edge, ...]  # along the flow
    loops: tuple[Edge, ...]  # against it
    inlets: tuple[tuple[Port, ...], ...]  # for every entry of the module itself, what it feeds
    outlets: tuple[Port, ...]  # for every exit of the module itself, where it comes from
    reader: tuple[int, ...]  # the box that a chip stands beside; -1 for what is no chip
    low: tuple[int, ...] = ()  # boxes that stand directly above what they lead to
    least_width: float = 0.0


@dataclass(frozen=True, slots=True)
class Placed:
    """Where everything in a module is, measured from the upper left corner of its content."""

    x: list[float]
    y: list[float]
    width: float
    height: float
    edges: list[Path]
    loops: list[Path]
    inlets: list[list[Path]]
    outlets: list[Path]
    entries: list[float]  # x of the module's own entries
    exits: list[float]

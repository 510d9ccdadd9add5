"""Boxes that somebody put somewhere: they stay there, and their edges lead there directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from endoscope.layout.level import Level, Path, Placed, Port

Pin = tuple[float, float]  # measured from the upper left corner of the content of the module around


def apply_pins(level: Level, placed: Placed, pins: Mapping[int, Pin]) -> Placed:
    """The same module with some boxes elsewhere. One that was put beyond the corner shifts all others instead."""
    left, top = _shift(pins)
    x = [left + pins[box][0] if box in pins else left + value for box, value in enumerate(placed.x)]
    y = [top + pins[box][1] if box in pins else top + value for box, value in enumerate(placed.y)]
    right = max(x[box] + width for box, width in enumerate(level.widths))
    bottom = max(y[box] + height for box, height in enumerate(level.heights))
    width, height = max(level.least_width, left + placed.width, right), max(top + placed.height, bottom)
    entries, exits = [value + left for value in placed.entries], [value + left for value in placed.exits]

    def start(port: Port) -> Path:
        return [x[port.box] + level.exits[port.box][port.number], y[port.box] + level.heights[port.box]]

    def end(port: Port) -> Path:
        return [x[port.box] + level.entries[port.box][port.number], y[port.box]]

    def inner(path: Path, source: Port, target: Port) -> Path:
        if source.box not in pins and target.box not in pins:
            return [value + (top if number % 2 else left) for number, value in enumerate(path)]
        return [*start(source), *end(target)]

    edges = [
        inner(path, Port(edge.source, edge.exit), Port(edge.target, edge.entry))
        for path, edge in zip(placed.edges, level.edges, strict=True)
    ]
    loops = [
        inner(path, Port(edge.source, edge.exit), Port(edge.target, edge.entry))
        for path, edge in zip(placed.loops, level.loops, strict=True)
    ]
    inlets = [[[entry, 0.0, *end(port)] for port in ports] for entry, ports in zip(entries, level.inlets, strict=True)]
    outlets = [[*start(port), exit_, height] for exit_, port in zip(exits, level.outlets, strict=True)]
    return replace(
        placed, x=x, y=y, width=width, height=height, edges=edges, loops=loops, inlets=inlets, outlets=outlets,
        entries=entries, exits=exits,
    )  # fmt: skip


def _shift(pins: Mapping[int, Pin]) -> Pin:
    """How far everything moves so that the pins have room."""
    return -min(0.0, *(pin[0] for pin in pins.values())), -min(0.0, *(pin[1] for pin in pins.values()))

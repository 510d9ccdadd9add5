"""Curves over steps as inline SVG: axes with round numbers, one colour per type of step, marks for recorded steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from endoscope.markup import numbers
from endoscope.markup.tags import Markup, tag

WIDTH, HEIGHT = 640, 190
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 10, 30
COLOURS = 6  # after that they come again, dashed
_MOST_POINTS = 320  # of a line; more cannot be told apart at this width
_MOST_MARKS = 400
_LOG_FROM = 50.0  # largest through smallest; beyond that a linear axis hides the small ones


class Line(NamedTuple):
    """One curve."""

    name: str
    steps: np.ndarray
    values: np.ndarray
    colour: int = 0


class Event(NamedTuple):
    """Something that began at a step."""

    step: int
    severity: str
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to places in the picture."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def place(self, value: np.ndarray) -> np.ndarray:
        values = np.log10(value) if self.is_log else value
        return np.asarray(self.begin + (values - self.low) / (self.high - self.low) * (self.end - self.begin))

    def ticks(self, most: int = 5) -> list[float]:
        if self.is_log:
            powers = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            every = max(1, math.ceil(len(powers) / most))
            return [10.0**power for power in powers][::every]
        return round_ticks(self.low, self.high, most)


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within a range."""
    raw = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    width = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / width - 1e-9)
    return [n * width for n in range(first, math.floor(high / width + 1e-9) + 1)]


def chart(lines: Sequence[Line], *, marks: np.ndarray, events: Sequence[Event] = (), label: str = "") -> Markup:
    """An SVG of some curves; `marks` are the recorded steps."""
    finite = [line.values[np.isfinite(line.values)] for line in lines]
    known = np.concatenate(finite) if finite else np.empty(0)
    steps = np.concatenate([marks, *(line.steps for line in lines)])
    if not len(known) or not len(steps):
        return tag("p", "No finite value was recorded.", class_="empty")
    across = _step_axis(steps)
    up = _value_axis(known)
    parts = [
        *_grid(across, up),
        *_marks(across, marks),
        *(_event(across, event) for event in events),
        *(part for line in lines for part in _line(line, across, up)),
    ]
    return tag(
        "svg", tag("title", label), parts, viewbox=f"0 0 {WIDTH} {HEIGHT}", class_="chart", role="img", aria_label=label
    )


def legend(lines: Sequence[Line]) -> Markup | None:
    """Which colour is which, if there are several."""
    if len(lines) < 2:
        return None
    return tag(
        "span",
        [tag("span", tag("i", class_=f"swatch c{line.colour % COLOURS}"), line.name, class_="key") for line in lines],
        class_="legend",
    )


def _step_axis(steps: np.ndarray) -> Axis:
    low, high = float(steps.min()), float(steps.max())
    return Axis(low, high if high > low else low + 1, LEFT, WIDTH - RIGHT)


def _value_axis(values: np.ndarray) -> Axis:
    low, high = float(values.min()), float(values.max())
    bottom, top = HEIGHT - BOTTOM, TOP
    if low > 0 and high / low >= _LOG_FROM:
        floor, ceiling = math.log10(low), math.log10(high)
        if ceiling - floor < 2:  # at least two powers of ten, so that there are numbers to read
            floor, ceiling = math.floor(floor), math.ceil(ceiling)
        return Axis(floor, ceiling, bottom, top, is_log=True)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        room = abs(high) * 0.1 or 1.0
        return Axis(low - room, high + room, bottom, top)
    if 0 < low < 0.35 * high:
        low = 0.0
    room = 0.05 * (high - low)
    return Axis(low if low == 0.0 else low - room, high + room, bottom, top)


def _grid(across: Axis, up: Axis) -> list[Markup]:
    found = []
    for value in up.ticks():
        y = float(up.place(np.array(value)))
        found.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        found.append(tag("text", numbers.short(value), x=LEFT - 6, y=y + 3.5, class_="tick end"))
    for value in sorted({float(round(tick)) for tick in across.ticks(8)}):
        x = float(across.place(np.array(value)))
        found.append(tag("text", numbers.step_number(value), x=x, y=HEIGHT - 5, class_="tick middle"))
    return found


def _marks(across: Axis, marks: np.ndarray) -> list[Markup]:
    """A small stroke below the axis for each recorded step."""
    every = max(1, math.ceil(len(marks) / _MOST_MARKS))
    places = np.unique(across.place(np.unique(marks)[::every].astype(np.float64)).round(1)).tolist()
    y = HEIGHT - BOTTOM + 3
    strokes = "".join(f"M{x:g} {y}v5" for x in places)
    return [tag("path", d=strokes, class_="marks")] if strokes else []


def _event(across: Axis, event: Event) -> Markup:
    x = float(across.place(np.array(float(event.step))))
    return tag(
        "g",
        tag("title", event.label),
        tag("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_="event"),
        tag("circle", cx=x, cy=HEIGHT - BOTTOM + 5.5, r=3.5),
        class_=f"severity-{event.severity}",
    )


def _line(line: Line, across: Axis, up: Axis) -> list[Markup]:
    steps, values = thinned(line.steps.astype(np.float64), line.values)
    usable = np.isfinite(values) & ((values > 0) | (not up.is_log))
    style = f"line c{line.colour % COLOURS}" + (" again" if line.colour >= COLOURS else "")
    x = across.place(steps)
    y = up.place(np.where(usable, values, 1.0))
    parts, begun = [], False
    for place, (horizontal, vertical) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        if not usable[place]:
            begun = False
            continue
        parts.append(f"{'L' if begun else 'M'}{horizontal:.1f} {vertical:.1f}")
        begun = True
    found = [tag("path", tag("title", line.name), d="".join(parts), class_=style)]
    if len(values) == 1:
        found.append(tag("circle", cx=float(x[0]), cy=float(y[0]), r=3.0, class_=f"dot c{line.colour % COLOURS}"))
    broken = across.place(np.unique(line.steps[~np.isfinite(line.values)]).astype(np.float64))
    if len(broken):
        strokes = "".join(f"M{place:.1f} {TOP}v8" for place in np.unique(broken.round(1)).tolist()[:_MOST_MARKS])
        found.append(tag("path", tag("title", "not finite"), d=strokes, class_="broken"))
    return found


def thinned(steps: np.ndarray, values: np.ndarray, most: int = _MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Fewer points that look the same: of each short piece the lowest and the highest."""
    if len(values) <= most:
        return steps, values
    keep = []
    for piece in np.array_split(np.arange(len(values)), most // 2):
        inside = values[piece]
        if np.isfinite(inside).any():
            keep += sorted({int(piece[np.nanargmin(inside)]), int(piece[np.nanargmax(inside)])})
        else:
            keep.append(int(piece[0]))
    return steps[keep], values[keep]

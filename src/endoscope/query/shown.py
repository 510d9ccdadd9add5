"""What a notebook shows of recordings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import numpy as np

from endoscope.markup import numbers
from endoscope.markup.notebook import fitting, folded, table
from endoscope.markup.tags import Markup, tag
from endoscope.query.series import Metrics
from endoscope.query.steps import Step

_MOST_CURVE = 240  # points
_WIDE, _HIGH = 240, 36


class Told(Protocol):
    """What is asked of a recording."""

    path: Path

    @property
    def name(self) -> str: ...
    @property
    def created(self) -> float: ...
    @property
    def closed(self) -> bool: ...
    @property
    def steps(self) -> list[Step]: ...
    @property
    def types(self) -> list[str]: ...
    @property
    def nodes(self) -> list[str]: ...
    @property
    def metrics(self) -> Metrics: ...


def recording_block(recording: Told) -> Markup:
    """Steps, metrics with their curves, and what to type next."""
    steps = recording.steps
    span = f" ({steps[0].number} to {steps[-1].number})" if steps else ""
    facts = [
        f"{numbers.plural(len(steps), 'recorded step')}{span}",
        f"{numbers.plural(len(recording.nodes), 'node')}",
        f"types: {', '.join(recording.types)}" if len(recording.types) > 1 else "",
        f"began {numbers.moment(recording.created)}",
        "" if recording.closed else "not closed",
    ]
    rows = [(name, *_told(series.steps, series.values)) for name, series in recording.metrics.items()]
    parts = [
        tag("p", tag("b", recording.name), ": ", " · ".join(filter(None, facts))),
        *([table(("metric", "first", "last", "least", "largest", ""), rows)] if rows else []),
        folded(
            "what next",
            tag("pre", f"endoscope.diagnose({str(recording.path)!r})   # what looks wrong\n"
                f"endoscope.show({str(recording.path)!r})       # the page"),
        ),
    ]  # fmt: skip
    return tag("div", fitting(parts, "More does not fit here: recording.metrics has all of them."))


def _told(steps: np.ndarray, values: np.ndarray) -> tuple[str | Markup, ...]:
    finite = values[np.isfinite(values)]
    if not values.size or not finite.size:
        return "–", "–", "–", "–", ""
    ends = [numbers.number(float(one)) for one in (values[0], values[-1], finite.min(), finite.max())]
    return (*ends, curve(steps, values))


def curve(steps: np.ndarray, values: np.ndarray) -> Markup:
    """A line without axes."""
    known = np.isfinite(values)
    x, y = steps[known].astype(float), values[known].astype(float)
    if len(x) < 2:
        return Markup("")
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_CURVE)).astype(int))
    x, y = x[chosen], y[chosen]
    across = (x - x.min()) / (x.max() - x.min() or 1) * (_WIDE - 4) + 2
    up = _HIGH - 2 - (y - y.min()) / (y.max() - y.min() or 1) * (_HIGH - 4)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    line = tag("polyline", points=points, fill="none", stroke="currentColor", stroke_width=1.2)
    return tag("svg", line, width=_WIDE, height=_HIGH, viewbox=f"0 0 {_WIDE} {_HIGH}", role="img")


def recordings_block(path: Path, names: Iterable[str]) -> Markup:
    listed = [tag("li", name) for name in names]
    return tag("div", tag("p", tag("b", str(path)), f": {numbers.plural(len(listed), 'trial')}"), tag("ul", listed))

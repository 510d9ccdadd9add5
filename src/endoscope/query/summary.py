"""A trial in a few numbers, for a table of many: read without its statistics, so that hundreds take a moment.

journal  ─► recorded steps, bytes, whether it has ended
metrics  ─► last and extreme values, the curve of the loss in at most `CURVE_POINTS` points
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from endoscope.query.liveness import last_sign
from endoscope.query.recording import Recording
from endoscope.query.series import Series
from endoscope.store import paths

CURVE_POINTS = 130
_LOSSES = ("loss", "train/loss", "loss/train", "train_loss")
_OWN = "endoscope"  # under this name the recorder keeps its own report among the settings


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one trial."""

    name: str
    last: float
    lowest: float  # of the finite values; NaN if there are none
    highest: float


class Writer(NamedTuple):
    """What one process has written; for `liveness.is_written`."""

    folder: Path
    closed: bool
    last_sign: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What a table of trials shows of one."""

    steps: int  # recorded
    last_step: int | None  # number of the newest recorded step
    trained_to: int | None  # number of the newest step that anything is known of
    updated: float
    closed: bool
    size: int  # bytes on disk
    cost: float  # share of the training's time that recording took; NaN if unknown
    metrics: tuple[Metric, ...] = ()
    loss: str = ""  # the metric of the curve; empty if there is none
    curve_steps: np.ndarray = field(default_factory=lambda: np.empty(0))
    curve_values: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))
    problems: tuple[str, ...] = ()
    writers: tuple[Writer, ...] = ()
    ranks: tuple[int, ...] = ()  # that have recorded something; empty in a trial of one process


def summarise(recording: Recording) -> Summary:
    """Of what was recorded until the last refresh."""
    outline = recording.tables.outline()
    known = recording.metrics
    found = {name: known[name] for name in known}
    loss = loss_among(list(found), ())
    steps, values = thinned(found[loss]) if loss else (np.empty(0), np.empty(0, np.float32))
    newest = [int(one.steps[-1]) for one in found.values() if len(one)]
    newest += [] if outline.last_step is None else [outline.last_step]
    return Summary(
        steps=outline.steps,
        last_step=outline.last_step,
        trained_to=max(newest, default=None),
        updated=recording.updated,
        closed=recording.closed,
        size=outline.bytes + _size_of(recording.path / paths.TRIAL),
        cost=_cost(recording),
        metrics=tuple(_metric(name, one.values) for name, one in found.items() if len(one)),
        loss=loss or "",
        curve_steps=steps,
        curve_values=values,
        problems=tuple(str(problem) for problem in recording.problems),
        ranks=tuple(recording.ranks) if recording.world_size > 1 else (),
        writers=tuple(Writer(source.folder, source.closed, last_sign(source)) for source in recording.sources),
    )


def loss_among(metrics: Sequence[str], losses: Collection[str]) -> str | None:
    """The metric that stands for how training goes: a loss, else the first there is."""
    exact = [*_LOSSES, *losses, *(f"loss/{loss}" for loss in losses)]
    alike = [name for name in metrics if re.search("loss", name, re.IGNORECASE)]
    return next((name for name in [*exact, *alike, *metrics] if name in metrics), None)


def thinned(series: Series, most: int = CURVE_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """(steps, values) of a curve in at most so many points: means of equal stretches.

    A single NaN, or infinity, makes its point NaN: what went wrong must not be averaged away.
    """
    values = series.values.astype(np.float64)
    if len(values) <= most:
        return series.steps.astype(np.float64), values.astype(np.float32)
    edges = np.linspace(0, len(values), most + 1).astype(np.int64)
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    means[~np.isfinite(means)] = np.nan
    return series.steps[edges[1:] - 1].astype(np.float64), means.astype(np.float32)


def _metric(name: str, values: np.ndarray) -> Metric:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (math.nan, math.nan)
    return Metric(name, float(values[-1]), low, high)


def _cost(recording: Recording) -> float:
    """By the budget, which compares whole steps; where there was none, by the recorder's own clock."""
    own = recording.config.get(_OWN)
    report: dict[str, Any] = own if isinstance(own, dict) else {}
    budget = report.get("budget")
    share = budget.get("share") if isinstance(budget, dict) else None
    if isinstance(share, int | float):
        return float(share)
    told = report.get("recording_seconds")
    is_told = isinstance(told, int | float)
    spent = float(told) if is_told else max(map(_recording_seconds, recording.sources))  # type: ignore[arg-type]
    whole = recording.updated - recording.created
    return spent / whole if 0 < spent < whole else math.nan


def _recording_seconds(source: Recording) -> float:
    return sum(step.recording_seconds for step in source.steps)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

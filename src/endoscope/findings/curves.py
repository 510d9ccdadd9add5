"""Losses and metrics over steps, and the few questions that checks ask of a curve."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from endoscope.findings.rows import Rows, Tensor
from endoscope.query.recording import Recording

_LOSS = re.compile(r"loss|nll|cross.?entropy|\bmse\b|\bce\b", re.IGNORECASE)
_SCORE = re.compile(
    r"reward|return|\bacc|accuracy|_acc\b|\bf1\b|\bauc\b|score|\br2\b|success|win.?rate|\bwon\b|\bwins\b", re.IGNORECASE
)
_HELD_OUT = re.compile(r"val|test|eval|held", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)  # known by identity: arrays have no truth
class Curve:
    """One number per step."""

    name: str
    numbers: np.ndarray  # of the steps
    values: np.ndarray  # float64
    types: np.ndarray
    tensor: Tensor | None = None  # where it was recorded as a tensor

    @property
    def is_loss(self) -> bool:
        return self.tensor is not None or _LOSS.search(self.name) is not None

    @property
    def is_held_out(self) -> bool:
        """Measured on data that is not trained on, going by its name."""
        return _HELD_OUT.search(self.name) is not None

    @property
    def is_score(self) -> bool:
        """It should rise, going by its name."""
        return _SCORE.search(self.name) is not None

    @property
    def finite(self) -> Curve:
        keep = np.isfinite(self.values)
        return Curve(self.name, self.numbers[keep], self.values[keep], self.types[keep], self.tensor)

    def at(self, places: np.ndarray) -> dict[str, Any]:
        """Where and when, for `Seen`."""
        types = tuple(dict.fromkeys(self.types[places].tolist()))
        return {"tensor": self.tensor, "node": self.name, "steps": self.numbers[places], "types": types}

    def __len__(self) -> int:
        return len(self.values)


def metric_curves(recording: Recording) -> list[Curve]:
    """Every metric, one curve for each type of step."""
    return [curve for name, found in recording.metrics.items() for curve in _by_type(name, found)]


def loss_curves(recording: Recording, values: Rows, numbers: np.ndarray, types: np.ndarray) -> list[Curve]:
    """What is trained on: losses that were recorded as tensors; of all steps, if there is a metric of the same name."""
    metrics = [curve for curve in metric_curves(recording) if curve.is_loss and not curve.is_held_out]
    tensors = [tensor for tensor in values.tensors if tensor.key.kind == "loss" and _is_a_number(tensor, recording)]
    by_name = {tensor.node: tensor for tensor in tensors}
    found = [Curve(c.name, c.numbers, c.values, c.types, by_name.get(c.name)) for c in metrics]
    named = {curve.name for curve in found}
    if tensors and not (len(by_name) == 1 and found):
        passes: dict[str, list[Tensor]] = {}
        for tensor in tensors:
            passes.setdefault(tensor.node, []).append(tensor)
        for name, group in passes.items():
            if name not in named:
                over_passes = np.nanmean(values["mean"][[tensor.row for tensor in group]].astype(np.float64), axis=0)
                found += _curves_of(group[0], over_passes, numbers, types)
    return found


def _is_a_number(tensor: Tensor, recording: Recording) -> bool:
    """Of many ranks, each has a number of its own."""
    shape, ranks = tensor.key.shape, len(recording.ranks)
    return not shape or (ranks > 1 and len(shape) == 1 and shape[0] <= ranks)


def _curves_of(tensor: Tensor, values: np.ndarray, numbers: np.ndarray, types: np.ndarray) -> list[Curve]:
    found = []
    for type_ in dict.fromkeys(types.tolist()):
        rows = np.flatnonzero((types == type_) & ~np.isnan(values))
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        if len(rows):
            found.append(Curve(tensor.node, numbers[rows], values[rows].astype(np.float64), types[rows], tensor))
    return found


def _by_type(name: str, series: Any) -> list[Curve]:
    found = []
    for type_ in dict.fromkeys(series.types.tolist()):
        rows = np.flatnonzero(series.types == type_)
        found.append(Curve(name, series.steps[rows], series.values[rows].astype(np.float64), series.types[rows]))
    return found


def past_median(values: np.ndarray, window: int) -> np.ndarray:
    """For each value the median of so many before it; NaN where there are not enough."""
    result = np.full(len(values), np.nan)
    if len(values) > window:
        result[window:] = np.median(sliding_window_view(values, window)[:-1], axis=1)
    return result


def past_spread(values: np.ndarray, window: int) -> np.ndarray:
    """For each value a robust standard deviation of so many before it."""
    result = np.full(len(values), np.nan)
    if len(values) > window:
        parts = sliding_window_view(values, window)[:-1]
        away = np.abs(parts - np.median(parts, axis=1, keepdims=True))
        result[window:] = 1.4826 * np.median(away, axis=1)
    return result


def first_level(values: np.ndarray) -> float:
    """Where a curve begins: the median of its first tenth, three values at least."""
    return float(np.median(values[: max(3, len(values) // 10)]))


def last_level(values: np.ndarray, share: float = 0.2) -> float:
    """Where it ends."""
    return float(np.median(values[-max(3, int(len(values) * share)) :]))


def fall(values: np.ndarray, share: float = 0.2) -> float:
    """From where it begins to where it ends, as a part of where it begins; 0 where that cannot be told."""
    first = first_level(values) if len(values) else 0.0
    return (first - last_level(values, share)) / abs(first) if first else 0.0

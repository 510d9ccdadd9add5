"""From the statistics of the parts of a tensor to those of the whole.

Arrays have one row for each part, along their first dimension; the others (steps, tensors, samples) are carried along.
NaN where a part has no such number: a part without finite elements has no mean, and adds nothing to one.

Numbers are divided by the largest of them before they are squared, so no square overflows or vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from endoscope.schema.stats import Statistic


class Parts:
    """What was recorded of the parts of a tensor, and how such numbers are put together."""

    def __init__(self, read: Callable[[str], np.ndarray]) -> None:
        self._read = read
        self._known: dict[str, np.ndarray] = {}

    def __getitem__(self, statistic: str) -> np.ndarray:
        """A statistic of each part, as float64; NaN where a part has none."""
        if statistic not in self._known:
            self._known[statistic] = np.asarray(self._read(statistic), np.float64)
        return self._known[statistic]

    @property
    def finite(self) -> np.ndarray:
        """How many finite elements each part has; 0 where nothing was recorded of it."""
        return np.asarray(np.nan_to_num(self["count"] - self["nans"] - self["infs"]))

    def sum(self, values: np.ndarray) -> np.ndarray:
        return _nan_where_none(values, np.nansum(values, axis=0))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over all finite elements, each of which has the value of its part."""
        weights = np.where(np.isnan(values), 0.0, self.finite)
        total = weights.sum(axis=0)
        shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        found = (np.nan_to_num(values, posinf=np.inf, neginf=-np.inf) * shares).sum(axis=0)
        # Of equal numbers it is that number, whatever rounding says.
        return np.where(total > 0, np.clip(found, self.min(values), self.max(values)), np.nan)

    def min(self, values: np.ndarray) -> np.ndarray:
        return _nan_where_none(values, np.where(np.isnan(values), np.inf, values).min(axis=0, initial=np.inf))

    def max(self, values: np.ndarray) -> np.ndarray:
        return _nan_where_none(values, np.where(np.isnan(values), -np.inf, values).max(axis=0, initial=-np.inf))

    def norm(self, values: np.ndarray) -> np.ndarray:
        """The root of the sum of squares."""
        unit = _unit(values)
        return _nan_where_none(values, unit * np.sqrt(np.nansum((values / unit) ** 2, axis=0)))

    def rms(self, values: np.ndarray) -> np.ndarray:
        """The root of the mean square over all finite elements, each of which has the value of its part."""
        unit = _unit(values)
        return np.asarray(unit * np.sqrt(self.mean((values / unit) ** 2)))

    def hypot(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The root of the sum of two squares, for each part."""
        return np.asarray(np.hypot(some, others))


def merged(statistic: Statistic, parts: Parts) -> np.ndarray | None:
    """A statistic of the whole; None if it does not follow from the parts."""
    merge = statistic.merge
    if merge is None:
        return None
    with np.errstate(all="ignore"):  # what overflows is infinite, what has no number is NaN
        if isinstance(merge, str):
            return np.asarray(_WORDS[merge](parts)(parts[statistic.name]))
        return np.asarray(merge(parts), np.float64)


_WORDS: Mapping[str, Callable[[Parts], Callable[[np.ndarray], np.ndarray]]] = {
    "sum": lambda parts: parts.sum,
    "mean": lambda parts: parts.mean,
    "min": lambda parts: parts.min,
    "max": lambda parts: parts.max,
    "norm": lambda parts: parts.norm,
}


def _unit(values: np.ndarray) -> np.ndarray:
    largest = np.where(np.isfinite(values), np.abs(values), 0.0).max(axis=0, initial=0.0)
    return np.where(largest > 0, largest, 1.0)


def _nan_where_none(values: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values).all(axis=0), np.nan, found)

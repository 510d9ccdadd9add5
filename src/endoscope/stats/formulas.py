"""Statistics from what is known about rows of numbers; a row is a sample, a unit, or a part of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known about some rows; every field has one number for each row.

    `mean`, `around` and `absolute` are of scaled numbers.
    """

    finite: Numbers  # how many numbers are finite
    zeros: Numbers
    nans: Numbers
    infs: Numbers
    neg_infs: Numbers
    mean: Numbers
    around: Numbers  # sum of squared distances from the mean
    absolute: Numbers  # sum of magnitudes
    low: Numbers
    high: Numbers

    def merged(self, axis: int) -> Rows:
        """What is known about all rows along an axis together."""
        finite = self.finite.sum(axis, keepdims=True)
        mean = (self.finite * self.mean).sum(axis, keepdims=True) / np.maximum(finite, 1)
        around = self.around + self.finite * (self.mean - mean) ** 2
        return Rows(
            finite=finite.squeeze(axis),
            zeros=self.zeros.sum(axis),
            nans=self.nans.sum(axis),
            infs=self.infs.sum(axis),
            neg_infs=self.neg_infs.sum(axis),
            mean=mean.squeeze(axis),
            around=around.sum(axis),
            absolute=self.absolute.sum(axis),
            low=self.low.min(axis, initial=np.inf),
            high=self.high.max(axis, initial=-np.inf),
        )


Formula = Callable[[Rows, Numbers], Numbers]
FORMULAS: dict[str, Formula] = {}


def formula(name: str) -> Callable[[Formula], Formula]:
    """Register how a statistic follows from what is known about rows."""

    def register(function: Formula) -> Formula:
        FORMULAS[name] = function
        return function

    return register


def statistic(name: str, rows: Rows, scale: Numbers) -> Numbers:
    """One statistic of every row; numbers, as opposed to counts, are NaN for rows without finite numbers."""
    value = FORMULAS[name](rows, scale)
    return value if name in _COUNTS else np.where(rows.finite > 0, value, np.nan)


_COUNTS = ("zeros", "nans", "infs", "neg_infs")
for _name in _COUNTS:
    FORMULAS[_name] = lambda rows, scale, name=_name: getattr(rows, name)  # type: ignore[misc]


@formula("mean")
def _mean(rows: Rows, scale: Numbers) -> Numbers:
    return np.clip(rows.mean / scale, rows.low, rows.high)


@formula("std")
def _std(rows: Rows, scale: Numbers) -> Numbers:
    spread = np.sqrt(np.maximum(rows.around, 0) / np.maximum(rows.finite, 1)) / scale
    return np.where(rows.low == rows.high, 0.0, spread)  # equal numbers have no spread, whatever rounding says


@formula("abs_mean")
def _abs_mean(rows: Rows, scale: Numbers) -> Numbers:
    return rows.absolute / np.maximum(rows.finite, 1) / scale


@formula("min")
def _min(rows: Rows, scale: Numbers) -> Numbers:
    return rows.low


@formula("max")
def _max(rows: Rows, scale: Numbers) -> Numbers:
    return rows.high


@formula("abs_max")
def _abs_max(rows: Rows, scale: Numbers) -> Numbers:
    return np.maximum(-rows.low, rows.high)


@formula("norm")
def _norm(rows: Rows, scale: Numbers) -> Numbers:
    squares: Numbers = np.maximum(rows.around, 0) + rows.finite * rows.mean**2
    return np.sqrt(squares) / scale

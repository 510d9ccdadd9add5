"""Statistics from what is known about rows of numbers; a row is a sample, a unit, or a part of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from endoscope.schema.stats import BUILT_IN

Numbers = NDArray[Any]
_STATISTICS = {one.name: one for one in BUILT_IN}


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known about some rows; every field has one number for each row.

    `mean`, `around` and `absolute` are of numbers times the scale.
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
    scale: Numbers  # a power of two, nearly always 1

    def merged(self, axis: int) -> Rows:
        """What is known about all rows along an axis together."""
        finite = self.finite.sum(axis, keepdims=True)
        mean = (self.finite * self.mean).sum(axis, keepdims=True) / np.maximum(finite, 1)
        around = (self.around + self.finite * (self.mean - mean) ** 2).sum(axis)
        low, high = self.low.min(axis, initial=np.inf), self.high.max(axis, initial=-np.inf)
        return Rows(
            finite=finite.squeeze(axis),
            zeros=self.zeros.sum(axis),
            nans=self.nans.sum(axis),
            infs=self.infs.sum(axis),
            neg_infs=self.neg_infs.sum(axis),
            mean=mean.squeeze(axis),
            around=np.where(low == high, 0.0, np.maximum(around, 0.0)),  # equal numbers have no spread
            absolute=self.absolute.sum(axis),
            low=low,
            high=high,
            scale=self.scale.max(axis),
        )


def statistic(name: str, rows: Rows) -> Numbers:
    """One statistic of every row; numbers, as opposed to counts, are NaN for rows without finite numbers."""
    one = _STATISTICS[name]
    assert one.of is not None
    value = one.of(rows)
    return value if one.is_count else np.where(rows.finite > 0, value, np.nan)

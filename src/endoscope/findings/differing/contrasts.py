"""Many comparisons at once: one row for each tensor (or unit) and statistic, one column for each window or step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from endoscope.schema.recording import Key

#: Never below zero, and of any size: compared as ratios, so that early steps do not outweigh all others.
SCALES = frozenset(("std", "abs_mean", "abs_max", "norm"))
#: Between 0 and 1.
SHARES = frozenset(("zeros", "nans", "infs", "neg_infs"))


class Subject(NamedTuple):
    """What is compared."""

    key: Key
    statistic: str
    unit: tuple[int, ...] | None = None  # None: the tensor as a whole


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Differences a - b of many subjects, in several windows."""

    subjects: Sequence[Subject]
    deltas: np.ndarray  # float64[subjects, windows]; NaN where a window has nothing of the subject
    noise: np.ndarray  # float64[windows]: variance of a difference, in variances of one value
    middle: np.ndarray  # float64[subjects]: mean of both sides, each counting the same
    size: np.ndarray  # float64[subjects]: how large the numbers are that the statistic is about
    ratio: np.ndarray  # bool[subjects]: deltas and middle are logarithms
    first: np.ndarray  # int64[windows]: number of the first step
    counts: tuple[int, int]  # steps, or samples, of a and of b
    least_error: np.ndarray | None = None  # float64[subjects]: the error of the mean difference is not below this
    rest: np.ndarray | None = None  # float64[subjects, windows]: squares of what drift and difference leave unexplained
    rest_freedom: np.ndarray | None = None  # int64[windows]: how many numbers that are
    wanders: bool = False  # differences of neighbouring windows may have more in common than chance


def as_logarithms(values: np.ndarray, statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """Values of scales that are above zero throughout become logarithms; also says which rows these are."""
    ratio = np.zeros(len(values), dtype=bool)
    if statistic not in SCALES:
        return values, ratio
    lowest = np.nanmin(np.where(np.isfinite(values), values, np.inf), axis=1, initial=np.inf)
    ratio = np.asarray((lowest > 0) & np.isfinite(lowest))
    result = values.astype(np.float64)
    result[ratio] = np.log(result[ratio])
    return result, ratio

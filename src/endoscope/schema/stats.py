"""The vocabulary of statistics: what is counted and measured about a tensor, under which names.

Shared by the side that measures and the side that reads, so nothing here needs torch or numpy.
The exact definitions are in docs/reference/statistics.md. In short: counts are over all elements, everything
else is over the finite ones, and is NaN where there are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic. Columns in memory and on disk, their order and their names follow from the list below.

    `of` says how it follows from what is known about some numbers (`stats.formulas.Rows`); one line of the same name
    in `stats/kernels.c` says so to the kernels. A quantile has a level instead: the share of numbers below it.
    """

    name: str
    of: Callable[[Any], Any] | None = None
    level: float | None = None
    is_count: bool = False  # a whole number, about all elements
    of_samples: bool = False  # also of each sample
    of_units: bool = False  # also of each unit over the batch


# Sums of squares are of scaled numbers, so that none leaves its range; only a quotient of both is a statistic.
STATISTICS = (
    Statistic("count", lambda rows: rows.finite + rows.nans + rows.infs, is_count=True),
    Statistic("zeros", lambda rows: rows.zeros, is_count=True, of_samples=True),
    Statistic("nans", lambda rows: rows.nans, is_count=True, of_samples=True),
    Statistic("infs", lambda rows: rows.infs, is_count=True, of_samples=True),
    Statistic("neg_infs", lambda rows: rows.neg_infs, is_count=True),
    Statistic("mean", lambda rows: (rows.mean / rows.scale).clip(rows.low, rows.high), of_samples=True, of_units=True),
    Statistic("std", lambda rows: (rows.around / rows.finite) ** 0.5 / rows.scale, of_samples=True, of_units=True),
    Statistic("abs_mean", lambda rows: rows.absolute / rows.finite / rows.scale, of_samples=True),
    Statistic("min", lambda rows: rows.low, of_samples=True),
    Statistic("max", lambda rows: rows.high, of_samples=True),
    Statistic("abs_max", lambda rows: rows.high.clip(-rows.low), of_samples=True, of_units=True),
    Statistic("norm", lambda rows: (rows.around + rows.finite * rows.mean**2) ** 0.5 / rows.scale, of_samples=True),
    Statistic("q01", level=0.01),
    Statistic("q05", level=0.05),
    Statistic("q25", level=0.25),
    Statistic("q50", level=0.50),
    Statistic("q75", level=0.75),
    Statistic("q95", level=0.95),
    Statistic("q99", level=0.99),
)

WHOLE = tuple(one.name for one in STATISTICS)  # of the whole tensor, in the order of the columns
COUNTS = tuple(one.name for one in STATISTICS if one.is_count)
QUANTILES = {one.name: one.level for one in STATISTICS if one.level is not None}
NUMBERS = tuple(name for name in WHOLE if name not in COUNTS and name not in QUANTILES)
SAMPLE = tuple(one.name for one in sorted(STATISTICS, key=lambda one: one.is_count) if one.of_samples)  # counts last
UNIT = tuple(one.name for one in STATISTICS if one.of_units)

UNIT_CAP = 4096  # at most so many units of one tensor are kept

# The histogram has the same bins for every tensor, so histograms are merged by adding their counts:
# bin 128 is zero, to its right two bins for every power of two from 2^-32 on, to its left their mirror image.
LOWEST_EXPONENT = -32
HIGHEST_EXPONENT = 31
BINS_PER_SIGN = 2 * (HIGHEST_EXPONENT - LOWEST_EXPONENT + 1)
ZERO_BIN = BINS_PER_SIGN
HISTOGRAM_BINS = 2 * BINS_PER_SIGN + 1


def histogram_edges() -> list[float]:
    """The 258 edges of the 257 bins, from -2^32 to 2^32.

    The zero bin has no width. The bins beside it also hold all smaller magnitudes, so they begin at zero;
    the outermost bins also hold all larger finite magnitudes.
    """
    exponents = range(LOWEST_EXPONENT, HIGHEST_EXPONENT + 1)
    starts = [math.ldexp(mantissa, exponent) for exponent in exponents for mantissa in (1.0, 1.5)]
    positive = [0.0, *starts[1:], math.ldexp(1.0, HIGHEST_EXPONENT + 1)]
    return [-edge for edge in reversed(positive)] + positive


def histogram_bin(value: float) -> int:
    """The index of the bin that a finite value is counted in."""
    if value == 0:
        return ZERO_BIN
    fraction, exponent = math.frexp(abs(value))  # 0.5 <= fraction < 1
    rank = 2 * (exponent - 1 - LOWEST_EXPONENT) + (fraction >= 0.75)
    rank = min(max(rank, 0), BINS_PER_SIGN - 1)
    return ZERO_BIN + 1 + rank if value > 0 else ZERO_BIN - 1 - rank

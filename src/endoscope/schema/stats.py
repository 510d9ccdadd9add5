"""The vocabulary of statistics: what is counted and measured about a tensor, under which names.

Shared by the side that measures and the side that reads, so nothing here needs torch or numpy.
The exact definitions are in docs/reference/statistics.md. In short: counts are over all elements, everything
else is over the finite ones, and is NaN where there are none.
"""

from __future__ import annotations

import math

COUNTS = ("count", "zeros", "nans", "infs", "neg_infs")  # whole numbers
NUMBERS = ("mean", "std", "abs_mean", "min", "max", "abs_max", "norm")
QUANTILES = {"q01": 0.01, "q05": 0.05, "q25": 0.25, "q50": 0.50, "q75": 0.75, "q95": 0.95, "q99": 0.99}

WHOLE = (*COUNTS, *NUMBERS, *QUANTILES)  # of the whole tensor, in the order of the columns
SAMPLE = ("mean", "std", "abs_mean", "min", "max", "abs_max", "norm", "zeros", "nans", "infs")  # of one sample
UNIT = ("mean", "std", "abs_max")  # of one unit, over the batch

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

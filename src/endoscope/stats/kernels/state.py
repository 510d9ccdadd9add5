"""Running totals of a sample and of a whole tensor, and how they become statistics.

A piece of a sample ─► add_piece ─► totals of the sample ─► close_sample ─► totals of the tensor

Sums are taken around a number near the mean (ORIGIN), so that a small spread around a large mean survives.
"""

from __future__ import annotations

import math

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels.machine import get_f64, get_i64, greater, kernel, lesser, set_f32, set_f64, set_i64

# Totals, twice: first of the current sample, then of the whole tensor.
FINITE, SUM, SQUARES, ABSOLUTE, LOW, HIGH, ZEROS, NANS, INFS, NEG_INFS = range(10)
WHOLE = 10
ORIGIN = 20  # sums and squares are of (number - origin)
SCALE = 21  # sums are of numbers times this power of two
SHIFT = 22  # the mean of the piece before
MANY_ZEROS = 23  # were there many zeros in the piece before?
PLAIN_ZEROS = 24  # zeros that were counted in the fine bins themselves


@kernel("void(i8)")
def clear(totals: int) -> None:
    """Start one set of totals."""
    for field in range(FINITE, NEG_INFS + 1):
        set_f64(totals, field, 0.0)
    set_f64(totals, LOW, np.inf)
    set_f64(totals, HIGH, -np.inf)


@kernel("void(i8, f8)")
def open_request(state: int, scale: float) -> None:
    """Start a tensor."""
    clear(state)
    clear(state + 8 * WHOLE)
    set_f64(state, ORIGIN, 0.0)
    set_f64(state, SCALE, scale)
    set_f64(state, SHIFT, 0.0)
    set_f64(state, MANY_ZEROS, 0.0)
    set_f64(state, PLAIN_ZEROS, 0.0)


@kernel("void(i8, i8, f8)")
def increase(totals: int, field: int, by: float) -> None:
    """Add to one total."""
    set_f64(totals, field, get_f64(totals, field) + by)


@kernel("void(i8, f8, f8, f8, f8, f8, f8, f8)")
def add_piece(
    state: int, finite: float, mean: float, around: float, absolute: float, low: float, high: float, zeros: float
) -> None:
    """Add what is known about some finite numbers: their mean, the squares around it and so on."""
    if get_f64(state, FINITE) == 0 and get_f64(state, WHOLE + FINITE) == 0:
        set_f64(state, ORIGIN, mean)
    offset = mean - get_f64(state, ORIGIN)
    increase(state, FINITE, finite)
    increase(state, SUM, finite * offset)
    increase(state, SQUARES, around + finite * offset * offset)
    increase(state, ABSOLUTE, absolute)
    increase(state, ZEROS, zeros)
    set_f64(state, LOW, lesser(low, get_f64(state, LOW)))
    set_f64(state, HIGH, greater(high, get_f64(state, HIGH)))


@kernel("void(i8, f8, f8, f8)")
def add_odd(state: int, nans: float, infs: float, neg_infs: float) -> None:
    """Add numbers that are not finite."""
    increase(state, NANS, nans)
    increase(state, INFS, infs)
    increase(state, NEG_INFS, neg_infs)


@kernel("UniTuple(f8, 3)(i8, f8, f8)")
def moments(totals: int, origin: float, scale: float) -> tuple[float, float, float]:
    """Mean, standard deviation and norm."""
    finite = get_f64(totals, FINITE)
    if finite == 0:
        return np.nan, np.nan, np.nan
    low, high = get_f64(totals, LOW), get_f64(totals, HIGH)
    offset = get_f64(totals, SUM) / finite
    mean = origin + offset
    around = greater(get_f64(totals, SQUARES) - finite * offset * offset, 0.0)
    if low == high:  # equal numbers have no spread, whatever rounding says
        mean, around = low * scale, 0.0
    std = math.sqrt(around / finite)
    norm = math.sqrt(around + finite * mean * mean)
    return lesser(greater(mean / scale, low), high), std / scale, norm / scale


@kernel("void(i8, i8, i8, i8)")
def _write_sample(table: int, rows: int, row: int, state: int) -> None:
    """The columns are those of schema.stats.SAMPLE."""
    finite, scale = get_f64(state, FINITE), get_f64(state, SCALE)
    mean, std, norm = moments(state, get_f64(state, ORIGIN), scale)
    low, high = get_f64(state, LOW), get_f64(state, HIGH)
    some = finite > 0
    set_f32(table, row, mean)
    set_f32(table, rows + row, std)
    set_f32(table, 2 * rows + row, get_f64(state, ABSOLUTE) / finite / scale if some else np.nan)
    set_f32(table, 3 * rows + row, low if some else np.nan)
    set_f32(table, 4 * rows + row, high if some else np.nan)
    set_f32(table, 5 * rows + row, greater(-low, high) if some else np.nan)
    set_f32(table, 6 * rows + row, norm)
    set_f32(table, 7 * rows + row, get_f64(state, ZEROS))
    set_f32(table, 8 * rows + row, get_f64(state, NANS))
    set_f32(table, 9 * rows + row, get_f64(state, INFS))


@kernel("void(i8, i8, i8)")
def close_sample(job: int, state: int, row: int) -> None:
    """Write the statistics of the current sample, unless its row is negative, and add it to the tensor."""
    if row >= 0:
        _write_sample(get_i64(job, at.SAMPLE_TABLE), get_i64(job, at.SAMPLE_TOTAL), row, state)
    whole = state + 8 * WHOLE
    for field in (FINITE, SUM, SQUARES, ABSOLUTE, ZEROS, NANS, INFS, NEG_INFS):
        increase(whole, field, get_f64(state, field))
    set_f64(whole, LOW, lesser(get_f64(whole, LOW), get_f64(state, LOW)))
    set_f64(whole, HIGH, greater(get_f64(whole, HIGH), get_f64(state, HIGH)))
    clear(state)


@kernel("void(i8, i8, i8, i8)")
def write_whole(job: int, state: int, row: int, count: int) -> None:
    """The columns are those of schema.stats.NUMBERS and COUNTS."""
    whole = state + 8 * WHOLE
    rows = get_i64(job, at.REQUEST_COUNT)
    numbers, counts = get_i64(job, at.NUMBERS), get_i64(job, at.COUNTS)
    finite, scale = get_f64(whole, FINITE), get_f64(state, SCALE)
    mean, std, norm = moments(whole, get_f64(state, ORIGIN), scale)
    low, high = get_f64(whole, LOW), get_f64(whole, HIGH)
    some = finite > 0
    set_f64(numbers, row, mean)
    set_f64(numbers, rows + row, std)
    set_f64(numbers, 2 * rows + row, get_f64(whole, ABSOLUTE) / finite / scale if some else np.nan)
    set_f64(numbers, 3 * rows + row, low if some else np.nan)
    set_f64(numbers, 4 * rows + row, high if some else np.nan)
    set_f64(numbers, 5 * rows + row, greater(-low, high) if some else np.nan)
    set_f64(numbers, 6 * rows + row, norm)
    set_i64(counts, row, count)
    set_i64(counts, rows + row, get_f64(whole, ZEROS))
    set_i64(counts, 2 * rows + row, get_f64(whole, NANS))
    set_i64(counts, 3 * rows + row, get_f64(whole, INFS))
    set_i64(counts, 4 * rows + row, get_f64(whole, NEG_INFS))

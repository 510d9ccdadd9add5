"""Running totals of a sample and of a whole tensor, and how they become statistics.

A piece of a sample ─► add_piece ─► totals of the sample ─► close_sample ─► totals of the tensor

Sums and squares are of distances from the first mean (ORIGIN), so that a small spread around a large mean
survives.
"""

from __future__ import annotations

import math

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels.machine import get_f64, get_i64, greater, kernel, lesser, set_f32, set_f64, set_i64

# Totals, twice: first of the current sample, then of the whole tensor.
FINITE, SUM, SQUARES, ABSOLUTE, LOW, HIGH, ZEROS, NANS, INFS, NEG_INFS, ORIGIN = range(11)
WHOLE = 11
SCALE = 22  # sums are of numbers times this power of two
SHIFT = 23  # the mean of the piece before
MANY_ZEROS = 24  # were there many zeros in the piece before?
PLAIN_ZEROS = 25  # zeros that were counted in the fine bins themselves
EVERY = 26  # one number of so many, a power of two, is counted in the histogram: 1 for all
SEEN = 27  # numbers so far, if not all are counted
COUNTED = 28  # numbers in the histogram


@kernel("void(i8)")
def clear(totals: int) -> None:
    """Start one set of totals."""
    for field in range(ORIGIN + 1):
        set_f64(totals, field, 0.0)
    set_f64(totals, LOW, np.inf)
    set_f64(totals, HIGH, -np.inf)


@kernel("void(i8, f8, i8)")
def open_request(state: int, scale: float, every: int) -> None:
    """Start a tensor, with one number of `every` in the histogram."""
    clear(state)
    clear(state + 8 * WHOLE)
    set_f64(state, SCALE, scale)
    set_f64(state, SHIFT, 0.0)
    set_f64(state, MANY_ZEROS, 0.0)
    set_f64(state, PLAIN_ZEROS, 0.0)
    set_f64(state, EVERY, every)
    set_f64(state, SEEN, 0.0)
    set_f64(state, COUNTED, 0.0)


@kernel("void(i8, i8, f8)")
def increase(totals: int, field: int, by: float) -> None:
    """Add to one total."""
    set_f64(totals, field, get_f64(totals, field) + by)


@kernel("void(i8, f8, f8, f8, f8, f8, f8, f8)")
def add_piece(
    totals: int, finite: float, mean: float, around: float, absolute: float, low: float, high: float, zeros: float
) -> None:
    """Add what is known about some finite numbers: their mean, the squares around it and so on."""
    if get_f64(totals, FINITE) == 0:
        set_f64(totals, ORIGIN, mean)
    offset = mean - get_f64(totals, ORIGIN)
    increase(totals, FINITE, finite)
    increase(totals, SUM, finite * offset)
    increase(totals, SQUARES, around + finite * offset * offset)
    increase(totals, ABSOLUTE, absolute)
    increase(totals, ZEROS, zeros)
    set_f64(totals, LOW, lesser(low, get_f64(totals, LOW)))
    set_f64(totals, HIGH, greater(high, get_f64(totals, HIGH)))


@kernel("void(i8, f8, f8, f8)")
def add_odd(totals: int, nans: float, infs: float, neg_infs: float) -> None:
    """Add numbers that are not finite."""
    increase(totals, NANS, nans)
    increase(totals, INFS, infs)
    increase(totals, NEG_INFS, neg_infs)


@kernel("UniTuple(f8, 2)(i8)")
def _centre(totals: int) -> tuple[float, float]:
    """Mean of the finite numbers, of which there are some, and squares around it."""
    finite = get_f64(totals, FINITE)
    offset = get_f64(totals, SUM) / finite
    around = get_f64(totals, SQUARES) - finite * offset * offset
    return get_f64(totals, ORIGIN) + offset, greater(around, 0.0)


@kernel("UniTuple(f8, 4)(i8, f8, f8, f8)")
def _numbers(totals: int, mean: float, around: float, scale: float) -> tuple[float, float, float, float]:
    """Mean, standard deviation, mean magnitude and norm of the finite numbers, of which there are some."""
    low, high = get_f64(totals, LOW), get_f64(totals, HIGH)
    if low == high:  # equal numbers have no spread, whatever rounding says
        mean, around = low * scale, 0.0
    finite, back = get_f64(totals, FINITE), 1.0 / scale
    each = 1.0 / finite
    std, norm = math.sqrt(around * each), math.sqrt(around + finite * mean * mean)
    mean = lesser(greater(mean * back, low), high)
    return mean, std * back, get_f64(totals, ABSOLUTE) * each * back, norm * back


@kernel("void(i8, i8, i8, i8, f8, f8)")
def _write_sample(table: int, rows: int, row: int, state: int, mean: float, around: float) -> None:
    """The columns are those of schema.stats.SAMPLE."""
    std, absolute, norm, low, high = np.nan, np.nan, np.nan, np.nan, np.nan
    if get_f64(state, FINITE) > 0:
        mean, std, absolute, norm = _numbers(state, mean, around, get_f64(state, SCALE))
        low, high = get_f64(state, LOW), get_f64(state, HIGH)
    set_f32(table, row, mean)
    set_f32(table, rows + row, std)
    set_f32(table, 2 * rows + row, absolute)
    set_f32(table, 3 * rows + row, low)
    set_f32(table, 4 * rows + row, high)
    set_f32(table, 5 * rows + row, greater(-low, high))
    set_f32(table, 6 * rows + row, norm)
    set_f32(table, 7 * rows + row, get_f64(state, ZEROS))
    set_f32(table, 8 * rows + row, get_f64(state, NANS))
    set_f32(table, 9 * rows + row, get_f64(state, INFS))


@kernel("void(i8, i8, i8)")
def close_sample(job: int, state: int, row: int) -> None:
    """Write the statistics of the current sample, unless its row is negative, and add it to the tensor."""
    whole, finite = state + 8 * WHOLE, get_f64(state, FINITE)
    mean, around = np.nan, np.nan
    if finite > 0:
        mean, around = _centre(state)
        low, high = get_f64(state, LOW), get_f64(state, HIGH)
        add_piece(whole, finite, mean, around, get_f64(state, ABSOLUTE), low, high, get_f64(state, ZEROS))
    add_odd(whole, get_f64(state, NANS), get_f64(state, INFS), get_f64(state, NEG_INFS))
    if row >= 0:
        table, rows = get_i64(job, at.SAMPLE_TABLE), get_i64(job, at.SAMPLE_TOTAL)
        _write_sample(table, rows, row, state, mean, around)
    clear(state)


@kernel("void(i8, i8, i8, i8)")
def write_whole(job: int, state: int, row: int, count: int) -> None:
    """The columns are those of schema.stats.NUMBERS and COUNTS."""
    whole = state + 8 * WHOLE
    rows = get_i64(job, at.REQUEST_COUNT)
    numbers, counts = get_i64(job, at.NUMBERS), get_i64(job, at.COUNTS)
    mean, std, absolute, norm, low, high = np.nan, np.nan, np.nan, np.nan, np.nan, np.nan
    if get_f64(whole, FINITE) > 0:
        mean, around = _centre(whole)
        mean, std, absolute, norm = _numbers(whole, mean, around, get_f64(state, SCALE))
        low, high = get_f64(whole, LOW), get_f64(whole, HIGH)
    set_f64(numbers, row, mean)
    set_f64(numbers, rows + row, std)
    set_f64(numbers, 2 * rows + row, absolute)
    set_f64(numbers, 3 * rows + row, low)
    set_f64(numbers, 4 * rows + row, high)
    set_f64(numbers, 5 * rows + row, greater(-low, high))
    set_f64(numbers, 6 * rows + row, norm)
    set_i64(counts, row, count)
    set_i64(counts, rows + row, get_f64(whole, ZEROS))
    set_i64(counts, 2 * rows + row, get_f64(whole, NANS))
    set_i64(counts, 3 * rows + row, get_f64(whole, INFS))
    set_i64(counts, 4 * rows + row, get_f64(whole, NEG_INFS))

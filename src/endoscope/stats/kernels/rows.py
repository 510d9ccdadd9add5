"""Eight rows of a sample in one pass, for totals and units, where the histogram needs only some numbers.

add_rows ─► chunks of eight rows, 2,048 numbers ─► blocks of eight rows ─► totals, units
              └─ NaN, Inf, huge or tiny numbers ─► from there on each row for itself (piece.look, units.add_rows)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from endoscope.stats import layout as at
from endoscope.stats.kernels import latest, piece, units
from endoscope.stats.kernels import state as total
from endoscope.stats.kernels import vectors as lanes
from endoscope.stats.kernels.machine import fewer, get_f64, greater, kernel, prefetch, set_f64

ROWS = 8
ZERO = np.float32(0.0)
# Of the magnitudes of a column, added up: within these bounds squares are precise in float32.
TOO_LARGE = np.float32(2.0**45)
TOO_SMALL = np.float32(2.0**-48)
_any_extreme = lanes.any_outside(float(TOO_SMALL), float(TOO_LARGE))


@kernel(types.boolean(lanes.Floats))
def _cannot_be_squared(magnitudes: Any) -> bool:
    """Whether some numbers are huge or NaN, or all of them tiny, but not zero."""
    is_tiny = not lanes.any_not_below(magnitudes, lanes.all_equal(TOO_SMALL)) and lanes.any_above(
        magnitudes, lanes.all_equal(ZERO)
    )
    return is_tiny or lanes.any_not_below(magnitudes, lanes.all_equal(TOO_LARGE))  # NaN is not below anything


@kernel("Tuple((f4, f4, f4, f4, f4, i4, i8))(i8, i8, i8, i8, i8, f4, i8)")
def _chunk(
    job: int, rows: int, stride: int, first: int, end: int, shift: float, ahead: int
) -> tuple[float, float, float, float, float, int, int]:
    """Columns `first` to `end`: what `piece.sweep` returns, and the column at which it had to stop, or `end`.

    `ahead` is how many bytes behind these numbers those of the next chunk are.
    """
    row, is_first = 4 * stride, latest.groups_in(job, first) == 0
    eighths, shifts = lanes.all_equal(units.EIGHTH), lanes.all_equal(shift)
    s8, q8, r8, m8 = lanes.all_equal(ZERO), lanes.all_equal(ZERO), lanes.all_equal(ZERO), lanes.all_equal(ZERO)
    low, high = lanes.all_equal(np.float32(np.inf)), lanes.all_equal(np.float32(-np.inf))
    zeros, stopped = lanes.no_counts(np.int32(0)), end
    for i in range(first, end, lanes.LANES):
        for number in range(ROWS):
            prefetch(rows + number * row, 4 * i + ahead)
        a, b = lanes.load(rows, i), lanes.load(rows + row, i)
        c, d = lanes.load(rows + 2 * row, i), lanes.load(rows + 3 * row, i)
        e, f = lanes.load(rows + 4 * row, i), lanes.load(rows + 5 * row, i)
        g, h = lanes.load(rows + 6 * row, i), lanes.load(rows + 7 * row, i)
        a_, b_, c_, d_ = lanes.magnitude(a), lanes.magnitude(b), lanes.magnitude(c), lanes.magnitude(d)
        e_, f_, g_, h_ = lanes.magnitude(e), lanes.magnitude(f), lanes.magnitude(g), lanes.magnitude(h)
        magnitudes = lanes.add(
            lanes.add(lanes.add(a_, b_), lanes.add(c_, d_)), lanes.add(lanes.add(e_, f_), lanes.add(g_, h_))
        )
        if _any_extreme(magnitudes) and _cannot_be_squared(magnitudes):
            stopped = i
            break
        nearest = lanes.smaller(
            lanes.smaller(lanes.smaller(a_, b_), lanes.smaller(c_, d_)),
            lanes.smaller(lanes.smaller(e_, f_), lanes.smaller(g_, h_)),
        )
        if lanes.any_zero(nearest):  # most numbers are not, and counting takes long
            zeros = lanes.count_zeros(lanes.count_zeros(lanes.count_zeros(lanes.count_zeros(zeros, a), b), c), d)
            zeros = lanes.count_zeros(lanes.count_zeros(lanes.count_zeros(lanes.count_zeros(zeros, e), f), g), h)
        total8 = lanes.add(lanes.add(lanes.add(a, b), lanes.add(c, d)), lanes.add(lanes.add(e, f), lanes.add(g, h)))
        mean = lanes.multiply(total8, eighths)
        around = lanes.add_square(lanes.square(lanes.subtract(a, mean)), lanes.subtract(b, mean))
        around = lanes.add_square(lanes.add_square(around, lanes.subtract(c, mean)), lanes.subtract(d, mean))
        other = lanes.add_square(lanes.square(lanes.subtract(e, mean)), lanes.subtract(f, mean))
        other = lanes.add_square(lanes.add_square(other, lanes.subtract(g, mean)), lanes.subtract(h, mean))
        around = lanes.join(around, other)
        m8 = lanes.add(m8, magnitudes)
        lowest = lanes.smaller(
            lanes.smaller(lanes.smaller(a, b), lanes.smaller(c, d)),
            lanes.smaller(lanes.smaller(e, f), lanes.smaller(g, h)),
        )
        highest = lanes.larger(
            lanes.larger(lanes.larger(a, b), lanes.larger(c, d)),
            lanes.larger(lanes.larger(e, f), lanes.larger(g, h)),
        )
        low, high = lanes.smaller(low, lowest), lanes.larger(high, highest)
        peak = lanes.higher(lanes.bits(lanes.magnitude(lowest)), lanes.bits(lanes.magnitude(highest)))
        shifted = lanes.subtract(mean, shifts)
        s8, r8, q8 = lanes.add(s8, shifted), lanes.add_square(r8, shifted), lanes.add(q8, around)
        latest.add(job, i, is_first, mean, around, peak)
    latest.end_group(job, first, stopped, end)
    s, m = np.float32(8.0) * lanes.total(s8), lanes.total(m8)
    q = lanes.total(q8) + np.float32(8.0) * lanes.total(r8)
    return s, q, m, lanes.lowest(low), lanes.highest(high), lanes.total_count(zeros), stopped


@kernel("UniTuple(f8, 2)(i8, i8, i8, f4)")
def _sums_of_rows(rows: int, stride: int, length: int, shift: float) -> tuple[float, float]:
    s, q = 0.0, 0.0
    for row in range(ROWS):
        more, squares = piece.sums_around(rows + 4 * row * stride, length, shift)
        s, q = s + np.float64(more), q + np.float64(squares)
    return s, q


@kernel("void(i8, i8, i8, i8, i8, f4, f4, f4, f4, f4, i4, f4)")
def _add_chunk(
    state: int, rows: int, stride: int, first: int, end: int,
    s: float, q: float, m: float, lo: float, hi: float, z: int, shift: float,
) -> None:  # fmt: skip
    """Add what is known about a whole chunk to the totals of the sample."""
    count = np.float64(ROWS * (end - first))
    mean, around, magnitudes = np.float64(lo), 0.0, np.float64(m)
    if lo == hi:
        magnitudes = abs(mean) * count
    else:
        offset = np.float64(s) / count
        around = np.float64(q) - count * offset * offset
        if count * offset * offset > 4.0 * around:  # the shift was far off, so little is left of the precision
            place = rows + 4 * first
            shift = np.float32(_sums_of_rows(place, stride, end - first, ZERO)[0] / count)
            total_s, total_q = _sums_of_rows(place, stride, end - first, shift)
            offset = total_s / count
            around = total_q - count * offset * offset
        mean = np.float64(shift) + offset
    total.add_piece(state, count, mean, greater(around, 0.0), magnitudes, np.float64(lo), np.float64(hi), np.float64(z))
    set_f64(state, total.SHIFT, mean)


@kernel("void(i8, i8, i8, i8, i8)")
def _count(job: int, state: int, rows: int, stride: int, length: int) -> None:
    """Some numbers of each row, for the histogram."""
    for row in range(ROWS):
        piece.count_some(job, state, rows + 4 * row * stride, length)


@kernel("void(i8, i8, i8, i8, i8)")
def add_rows(job: int, state: int, rows: int, stride: int, length: int) -> None:
    """Add eight rows of float32 numbers of one sample; `length` is a multiple of lanes."""
    for first in range(0, length, at.CHUNK):
        end = fewer(first + at.CHUNK, length)
        shift = np.float32(get_f64(state, total.SHIFT))
        ahead = 4 * at.CHUNK if end < length else 4 * (ROWS * stride - first)  # here, or in the next eight rows
        s, q, m, lo, hi, z, stopped = _chunk(job, rows, stride, first, end, shift, ahead)
        if stopped == end:
            _add_chunk(state, rows, stride, first, end, s, q, m, lo, hi, z, shift)
        else:
            kind = piece.ORDINARY
            for row in range(ROWS):
                found = piece.look_uncounted(job, state, rows + 4 * (row * stride + first), end - first)[0]
                kind = found if found > kind else kind
            units.add_rest_of_rows(job, rows, stride, ROWS, stopped, end, kind)
    _count(job, state, rows, stride, length)

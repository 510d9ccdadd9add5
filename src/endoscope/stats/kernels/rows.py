"""Eight rows of a sample in one pass, for totals and units, where the histogram needs only some numbers.

add_rows ─► chunks of eight rows, 2,048 numbers ─► blocks of eight by eight ─► totals, units
              └─ NaN, Inf, huge or tiny numbers ─► from there on each row for itself (piece.look, units.add_rows)
"""

from __future__ import annotations

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels import piece, units
from endoscope.stats.kernels import state as total
from endoscope.stats.kernels import vectors as eight
from endoscope.stats.kernels.machine import fewer, get_f64, get_i64, greater, kernel, prefetch, set_f64

CHUNK = at.PIECE // 8  # columns that are added up on their own
ROWS = 8
ZERO = np.float32(0.0)
EIGHTH = np.float32(0.125)
# Of the magnitudes of a column, added up: within these bounds squares are precise in float32.
TOO_LARGE = np.float32(2.0**45)
TOO_SMALL = np.float32(2.0**-48)


@kernel("Tuple((f4, f4, f4, f4, f4, i4, i8))(i8, i8, i8, i8, i8, f4, i8)")
def _chunk(
    job: int, rows: int, stride: int, first: int, end: int, shift: float, ahead: int
) -> tuple[float, float, float, float, float, int, int]:
    """Columns `first` to `end`: what `piece.sweep` returns, and the column at which it had to stop, or `end`.

    `ahead` is how many bytes behind these numbers those of the next chunk are.
    """
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest = get_i64(job, at.UNIT_LARGEST)
    row = 4 * stride
    eighths, shifts = eight.all_equal(EIGHTH), eight.all_equal(shift)
    s8, q8, r8, m8 = eight.all_equal(ZERO), eight.all_equal(ZERO), eight.all_equal(ZERO), eight.all_equal(ZERO)
    low, high = eight.all_equal(np.float32(np.inf)), eight.all_equal(np.float32(-np.inf))
    too_large, too_small, nothing = eight.all_equal(TOO_LARGE), eight.all_equal(TOO_SMALL), eight.all_equal(ZERO)
    zeros, stopped = eight.no_counts(np.int32(0)), end
    for i in range(first, end, eight.LANES):
        for number in range(ROWS):
            prefetch(rows + number * row, 4 * i + ahead)
        a, b = eight.load(rows, i), eight.load(rows + row, i)
        c, d = eight.load(rows + 2 * row, i), eight.load(rows + 3 * row, i)
        e, f = eight.load(rows + 4 * row, i), eight.load(rows + 5 * row, i)
        g, h = eight.load(rows + 6 * row, i), eight.load(rows + 7 * row, i)
        magnitudes = eight.add(
            eight.add(
                eight.add(eight.magnitude(a), eight.magnitude(b)), eight.add(eight.magnitude(c), eight.magnitude(d))
            ),
            eight.add(
                eight.add(eight.magnitude(e), eight.magnitude(f)), eight.add(eight.magnitude(g), eight.magnitude(h))
            ),
        )
        is_tiny = not eight.any_not_below(magnitudes, too_small) and eight.any_above(magnitudes, nothing)
        if is_tiny or eight.any_not_below(magnitudes, too_large):  # or NaN, which is not below anything
            stopped = i
            break
        total8 = eight.add(eight.add(eight.add(a, b), eight.add(c, d)), eight.add(eight.add(e, f), eight.add(g, h)))
        mean = eight.multiply(total8, eighths)
        around = eight.add_square(eight.square(eight.subtract(a, mean)), eight.subtract(b, mean))
        around = eight.add_square(eight.add_square(around, eight.subtract(c, mean)), eight.subtract(d, mean))
        other = eight.add_square(eight.square(eight.subtract(e, mean)), eight.subtract(f, mean))
        other = eight.add_square(eight.add_square(other, eight.subtract(g, mean)), eight.subtract(h, mean))
        around = eight.join(around, other)
        m8 = eight.add(m8, magnitudes)
        lowest = eight.smaller(
            eight.smaller(eight.smaller(a, b), eight.smaller(c, d)),
            eight.smaller(eight.smaller(e, f), eight.smaller(g, h)),
        )
        highest = eight.larger(
            eight.larger(eight.larger(a, b), eight.larger(c, d)),
            eight.larger(eight.larger(e, f), eight.larger(g, h)),
        )
        low, high = eight.smaller(low, lowest), eight.larger(high, highest)
        peak = eight.higher(eight.bits(eight.magnitude(lowest)), eight.bits(eight.magnitude(highest)))
        zeros = eight.count_zeros(eight.count_zeros(eight.count_zeros(eight.count_zeros(zeros, a), b), c), d)
        zeros = eight.count_zeros(eight.count_zeros(eight.count_zeros(eight.count_zeros(zeros, e), f), g), h)
        shifted = eight.subtract(mean, shifts)
        s8, r8, q8 = eight.add(s8, shifted), eight.add_square(r8, shifted), eight.add(q8, around)
        eight.add_to_units(sums, squares, largest, i, mean, around, peak)
    s, m = np.float32(8.0) * eight.total(s8), eight.total(m8)
    q = eight.total(q8) + np.float32(8.0) * eight.total(r8)
    return s, q, m, eight.lowest(low), eight.highest(high), eight.total_count(zeros), stopped


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
    """Add eight rows of float32 numbers of one sample; `length` is a multiple of eight."""
    for first in range(0, length, CHUNK):
        end = fewer(first + CHUNK, length)
        shift = np.float32(get_f64(state, total.SHIFT))
        ahead = 4 * CHUNK if end < length else 4 * (ROWS * stride - first)  # here, or in the next eight rows
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

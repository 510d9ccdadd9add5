"""Statistics of one piece: a few thousand numbers that lie next to each other.

look ─► sweep (float32, eight at a time, histogram included)
          ├─ ordinary numbers ─► done
          └─ NaN, Inf, huge or tiny numbers ─► careful (float64, one at a time)
"""

from __future__ import annotations

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels import state as total
from endoscope.stats.kernels import vectors as eight
from endoscope.stats.kernels.machine import (
    bits_of_float,
    fewer,
    get_f32,
    get_f64,
    get_i64,
    greater,
    highest,
    increment,
    kernel,
    lesser,
    lowest,
    set_f64,
)

# Within these bounds squares neither overflow nor underflow in float32.
LARGE = np.float32(2.0**90)
TINY = np.float32(2.0**-48)
ZERO = np.float32(0.0)
BLOCK = 256  # numbers that are added up on their own: a long sum of equal numbers rounds in one direction


@kernel("Tuple((f4, f4, f4, f4, f4, i4))(i8, i8, f4, i8, b1)")
def sweep(
    address: int, length: int, shift: float, table: int, zeros_apart: bool
) -> tuple[float, float, float, float, float, int]:
    """One pass: sum and squares of (number - shift), sum of magnitudes, lowest, highest, zeros; and the histogram."""
    sums = eight.all_equal(ZERO)
    squares = eight.all_equal(ZERO)
    magnitudes = eight.all_equal(ZERO)
    low = eight.all_equal(np.float32(np.inf))
    high = eight.all_equal(np.float32(-np.inf))
    zeros = eight.no_counts(np.int32(0))
    shifts = eight.all_equal(shift)
    whole = length - length % eight.LANES
    for start in range(0, whole, BLOCK):
        s8, q8, m8 = eight.all_equal(ZERO), eight.all_equal(ZERO), eight.all_equal(ZERO)
        for i in range(start, fewer(start + BLOCK, whole), eight.LANES):
            numbers = eight.load(address, i)
            shifted = eight.subtract(numbers, shifts)
            s8 = eight.add(s8, shifted)
            q8 = eight.add_square(q8, shifted)
            m8 = eight.add(m8, eight.magnitude(numbers))
            low = eight.smaller(low, numbers)
            high = eight.larger(high, numbers)
            zeros = eight.count_zeros(zeros, numbers)
            if zeros_apart:
                eight.tally_zeros_apart(table, numbers)
            else:
                eight.tally(table, address, i)
        sums, squares, magnitudes = eight.add(sums, s8), eight.add(squares, q8), eight.add(magnitudes, m8)
    s, q, m = eight.total(sums), eight.total(squares), eight.total(magnitudes)
    lo, hi, z = eight.lowest(low), eight.highest(high), eight.total_count(zeros)
    for i in range(whole, length):
        x = get_f32(address, i)
        d = x - shift
        s += d
        q += d * d
        m += abs(x)
        lo = x if x < lo else lo
        hi = x if x > hi else hi
        z += np.int32(x == ZERO)
        if zeros_apart and x == ZERO:
            increment(table, eight.FINE_BINS)
        else:
            increment(table, np.int64(bits_of_float(x) >> np.uint32(eight.FINE_SHIFT)))
    return s, q, m, lo, hi, z


@kernel("UniTuple(f4, 2)(i8, i8, f4)")
def sums_around(address: int, length: int, shift: float) -> tuple[float, float]:
    """Sum and squares of (number - shift)."""
    shifts = eight.all_equal(shift)
    sums, squares = eight.all_equal(ZERO), eight.all_equal(ZERO)
    whole = length - length % eight.LANES
    for i in range(0, whole, eight.LANES):
        shifted = eight.subtract(eight.load(address, i), shifts)
        sums = eight.add(sums, shifted)
        squares = eight.add_square(squares, shifted)
    s, q = eight.total(sums), eight.total(squares)
    for i in range(whole, length):
        d = get_f32(address, i) - shift
        s += d
        q += d * d
    return s, q


@kernel("UniTuple(f8, 4)(i8, i8, i8, f8)")
def careful(state: int, address: int, length: int, scale: float) -> tuple[float, float, float, float]:
    """Add float64 numbers, of any size and kind, to the totals: all sums are of numbers times the scale.

    Returns how many are finite, their mean, the squares around it and the largest magnitude.
    """
    finite, zeros, nans, infs, neg_infs = 0, 0, 0, 0, 0
    s, m, lo, hi = 0.0, 0.0, np.inf, -np.inf
    for i in range(length):
        x = get_f64(address, i)
        if abs(x) < np.inf:
            finite += 1
            zeros += x == 0.0
            s += x * scale
            m += abs(x) * scale
            lo = lesser(lo, x)
            hi = greater(hi, x)
        elif x != x:
            nans += 1
        else:
            infs += 1
            neg_infs += x < 0.0
    total.add_odd(state, np.float64(nans), np.float64(infs), np.float64(neg_infs))
    if finite == 0:
        return 0.0, 0.0, 0.0, 0.0
    mean = s / finite if lo < hi else lo * scale
    around = 0.0
    for i in range(length):
        x = get_f64(address, i)
        if abs(x) < np.inf:
            d = x * scale - mean
            around += d * d
    total.add_piece(state, np.float64(finite), mean, around, m, lo, hi, np.float64(zeros))
    return np.float64(finite), mean, around, greater(hi, -lo)


@kernel("UniTuple(f8, 2)(f8, f8, f8)")
def _add_exactly(total: float, error: float, number: float) -> tuple[float, float]:
    """Add a number, and what is lost by that to the error."""
    after = total + number
    added = after - total
    return after, error + ((total - (after - added)) + (number - added))


@kernel("f8(i8, i8, f8)")
def _sum_of_doubles(address: int, length: int, scale: float) -> float:
    """The sum as if it were rounded only once: large numbers of both signs may leave a small one.

    Four sums, because each addition would otherwise have to wait for the one before.
    """
    a, b, c, d, error, other = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = length - length % 4
    for i in range(0, whole, 4):
        a, error = _add_exactly(a, error, get_f64(address, i) * scale)
        b, other = _add_exactly(b, other, get_f64(address, i + 1) * scale)
        c, error = _add_exactly(c, error, get_f64(address, i + 2) * scale)
        d, other = _add_exactly(d, other, get_f64(address, i + 3) * scale)
    for i in range(whole, length):
        a, error = _add_exactly(a, error, get_f64(address, i) * scale)
    a, error = _add_exactly(a, error, b)
    a, error = _add_exactly(a, error, c)
    a, error = _add_exactly(a, error, d)
    return a + (error + other)


@kernel("Tuple((f8, f8, f8, i8))(i8, i8, f8)", may_reorder=True)
def _extent_of_doubles(address: int, length: int, scale: float) -> tuple[float, float, float, int]:
    """Sum of magnitudes, lowest, highest, zeros."""
    m, lo, hi, zeros = 0.0, np.inf, -np.inf, 0
    for i in range(length):
        x = get_f64(address, i)
        m += abs(x) * scale
        lo = lowest(lo, x)
        hi = highest(hi, x)
        zeros += x == 0.0
    return m, lo, hi, zeros


@kernel("f8(i8, i8, f8, f8)", may_reorder=True)
def _squares_of_doubles(address: int, length: int, mean: float, scale: float) -> float:
    around = 0.0
    for i in range(length):
        d = get_f64(address, i) * scale - mean
        around += d * d
    return around


@kernel("Tuple((b1, f8, f8, f8, f8))(i8, i8, i8, f8)")
def look_at_doubles(state: int, address: int, length: int, scale: float) -> tuple[bool, float, float, float, float]:
    """What `look` does, for float64 numbers; without the histogram."""
    m, lo, hi, zeros = _extent_of_doubles(address, length, scale)
    if not m < np.inf:
        finite, mean, around, largest = careful(state, address, length, scale)
        return False, finite, mean, around, largest
    count = np.float64(length)
    mean, around = lo * scale, 0.0
    if lo < hi:
        mean = _sum_of_doubles(address, length, scale) / count
        around = _squares_of_doubles(address, length, mean, scale)
    total.add_piece(state, count, mean, around, m, lo, hi, np.float64(zeros))
    return True, count, mean, around, greater(hi, -lo)


@kernel("Tuple((b1, f8, f8, f8, f8))(i8, i8, i8, i8)")
def _look_again(job: int, state: int, address: int, length: int) -> tuple[bool, float, float, float, float]:
    doubles = get_i64(job, at.DOUBLES)
    for i in range(length):
        set_f64(doubles, i, np.float64(get_f32(address, i)))
    finite, mean, around, largest = careful(state, doubles, length, 1.0)
    return False, finite, mean, around, largest


@kernel("Tuple((b1, f8, f8, f8, f8))(i8, i8, i8, i8)")
def look(job: int, state: int, address: int, length: int) -> tuple[bool, float, float, float, float]:
    """Add float32 numbers to the totals.

    Returns whether they were ordinary, how many are finite, their mean, the squares around it and the largest
    magnitude.
    """
    shift = np.float32(get_f64(state, total.SHIFT))
    apart = get_f64(state, total.MANY_ZEROS) > 0
    s, q, m, lo, hi, z = sweep(address, length, shift, get_i64(job, at.FINE), apart)
    if not apart:
        total.increase(state, total.PLAIN_ZEROS, z)
    set_f64(state, total.MANY_ZEROS, 1.0 if 16 * z > length else 0.0)
    # A NaN makes both comparisons false.
    if not (m < LARGE and q < LARGE) or (m > ZERO and greater(hi, -lo) < TINY):
        return _look_again(job, state, address, length)
    count = np.float64(length)
    mean, around = np.float64(lo), 0.0
    if lo < hi:
        offset = np.float64(s) / count
        around = np.float64(q) - count * offset * offset
        if count * offset * offset > 4.0 * around:  # the shift was far off, so little is left of the precision
            shift = np.float32(np.float64(sums_around(address, length, ZERO)[0]) / count)
            s, q = sums_around(address, length, shift)
            offset = np.float64(s) / count
            around = np.float64(q) - count * offset * offset
        mean = np.float64(shift) + offset
    else:
        m = abs(lo) * np.float32(length)
    total.add_piece(state, count, mean, around, np.float64(m), np.float64(lo), np.float64(hi), np.float64(z))
    set_f64(state, total.SHIFT, mean)
    return True, count, mean, around, greater(hi, -lo)

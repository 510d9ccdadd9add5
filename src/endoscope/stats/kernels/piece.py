"""Statistics of one piece: a few thousand numbers that lie next to each other.

look ─► sweep (float32, many at a time, histogram included)
          ├─ ordinary numbers ─► done
          ├─ tiny numbers ─► magnified, once more
          └─ NaN, Inf or huge numbers ─► careful (float64, one at a time)
"""

from __future__ import annotations

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels import state as total
from endoscope.stats.kernels import vectors as lanes
from endoscope.stats.kernels.machine import (
    AHEAD,
    LINE,
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
    prefetch,
    set_f32,
    set_f64,
)

# Within these bounds squares neither overflow nor underflow in float32.
LARGE = np.float32(2.0**90)
TINY = np.float32(2.0**-48)
ZERO = np.float32(0.0)
# What a piece is like: units are added up in float32, in float64, or one by one.
ORDINARY, SMALL, ODD = 0, 1, 2

RUN = 64  # numbers that are counted together, where not all are
BLOCK = 256  # numbers that are added up on their own: a long sum of equal numbers rounds in one direction


@kernel("Tuple((f4, f4, f4, f4, f4, i4))(i8, i8, f4, i8, b1)")
def sweep(
    address: int, length: int, shift: float, table: int, zeros_apart: bool
) -> tuple[float, float, float, float, float, int]:
    """One pass: sum and squares of (number - shift), sum of magnitudes, lowest, highest, zeros; and the histogram."""
    sums = lanes.all_equal(ZERO)
    squares = lanes.all_equal(ZERO)
    magnitudes = lanes.all_equal(ZERO)
    low = lanes.all_equal(np.float32(np.inf))
    high = lanes.all_equal(np.float32(-np.inf))
    zeros = lanes.no_counts(np.int32(0))
    shifts = lanes.all_equal(shift)
    whole = length - length % lanes.LANES
    for start in range(0, whole, BLOCK):
        s8, q8, m8 = lanes.all_equal(ZERO), lanes.all_equal(ZERO), lanes.all_equal(ZERO)
        for i in range(start, fewer(start + BLOCK, whole), lanes.LANES):
            prefetch(address, 4 * i + AHEAD)
            numbers = lanes.load(address, i)
            shifted = lanes.subtract(numbers, shifts)
            s8 = lanes.add(s8, shifted)
            q8 = lanes.add_square(q8, shifted)
            m8 = lanes.add(m8, lanes.magnitude(numbers))
            low = lanes.smaller(low, numbers)
            high = lanes.larger(high, numbers)
            zeros = lanes.count_zeros(zeros, numbers)
            if zeros_apart:
                lanes.tally_zeros_apart(table, numbers)
            else:
                lanes.tally(table, address, i)
        sums, squares, magnitudes = lanes.add(sums, s8), lanes.add(squares, q8), lanes.add(magnitudes, m8)
    s, q, m = lanes.total(sums), lanes.total(squares), lanes.total(magnitudes)
    lo, hi, z = lanes.lowest(low), lanes.highest(high), lanes.total_count(zeros)
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
            increment(table, lanes.FINE_BINS)
        else:
            increment(table, np.int64(bits_of_float(x) >> np.uint32(lanes.FINE_SHIFT)))
    return s, q, m, lo, hi, z


@kernel("i4(i8, i8)")
def _zeros_in(address: int, length: int) -> int:
    """How many of these numbers are zero; the length is a multiple of `lanes.LANES`."""
    zeros = lanes.no_counts(np.int32(0))
    for i in range(0, length, lanes.LANES):
        zeros = lanes.count_zeros(zeros, lanes.load(address, i))
    return lanes.total_count(zeros)


@kernel("Tuple((f4, f4, f4, f4, f4, i4))(i8, i8, f4)")
def sweep_uncounted(address: int, length: int, shift: float) -> tuple[float, float, float, float, float, int]:
    """What `sweep` returns, without the histogram: two registers at a time, because additions take their time."""
    sums, squares, magnitudes = lanes.all_equal(ZERO), lanes.all_equal(ZERO), lanes.all_equal(ZERO)
    low, low2 = lanes.all_equal(np.float32(np.inf)), lanes.all_equal(np.float32(np.inf))
    high, high2 = lanes.all_equal(np.float32(-np.inf)), lanes.all_equal(np.float32(-np.inf))
    shifts = lanes.all_equal(shift)
    z, whole = np.int32(0), length - length % (2 * lanes.LANES)
    for start in range(0, whole, BLOCK):
        end = fewer(start + BLOCK, whole)
        s8, q8, m8 = lanes.all_equal(ZERO), lanes.all_equal(ZERO), lanes.all_equal(ZERO)
        s9, q9, m9 = lanes.all_equal(ZERO), lanes.all_equal(ZERO), lanes.all_equal(ZERO)
        nearest = lanes.all_equal(np.float32(np.inf))
        for i in range(start, end, 2 * lanes.LANES):
            prefetch(address, 4 * i + AHEAD)
            if 8 * lanes.LANES > LINE:
                prefetch(address, 4 * i + AHEAD + LINE)
            numbers, others = lanes.load(address, i), lanes.load(address, i + lanes.LANES)
            shifted, other = lanes.subtract(numbers, shifts), lanes.subtract(others, shifts)
            s8, s9 = lanes.add(s8, shifted), lanes.add(s9, other)
            q8, q9 = lanes.add_square(q8, shifted), lanes.add_square(q9, other)
            size, size2 = lanes.magnitude(numbers), lanes.magnitude(others)
            m8, m9 = lanes.add(m8, size), lanes.add(m9, size2)
            nearest = lanes.smaller(nearest, lanes.smaller(size, size2))
            low, low2 = lanes.smaller(low, numbers), lanes.smaller(low2, others)
            high, high2 = lanes.larger(high, numbers), lanes.larger(high2, others)
        if lanes.any_zero(nearest):  # most numbers are not, and counting takes long
            z += _zeros_in(address + 4 * start, end - start)
        sums = lanes.add(sums, lanes.add(s8, s9))
        squares = lanes.add(squares, lanes.add(q8, q9))
        magnitudes = lanes.add(magnitudes, lanes.add(m8, m9))
    s, q, m = lanes.total(sums), lanes.total(squares), lanes.total(magnitudes)
    lo, hi = lanes.lowest(lanes.smaller(low, low2)), lanes.highest(lanes.larger(high, high2))
    for i in range(whole, length):
        x = get_f32(address, i)
        d = x - shift
        s, q, m = s + d, q + d * d, m + abs(x)
        lo, hi = x if x < lo else lo, x if x > hi else hi
        z += np.int32(x == ZERO)
    return s, q, m, lo, hi, z


@kernel("void(i8, i8, i8)")
def tally_all(table: int, address: int, length: int) -> None:
    """Count numbers in the histogram, zeros apart."""
    for i in range(length):
        x = get_f32(address, i)
        increment(table, np.int64(bits_of_float(x) >> np.uint32(lanes.FINE_SHIFT)) if x != ZERO else lanes.FINE_BINS)


@kernel("UniTuple(i8, 2)(i8, i8, i8)")
def _tally_run(table: int, address: int, length: int) -> tuple[int, int]:
    """Count numbers in the histogram; returns how many, and how many of them are zero."""
    zeros, whole = lanes.no_counts(np.int32(0)), length - length % lanes.LANES
    for i in range(0, whole, lanes.LANES):
        zeros = lanes.count_zeros(zeros, lanes.load(address, i))
        lanes.tally(table, address, i)
    z = np.int64(lanes.total_count(zeros))
    for i in range(whole, length):
        x = get_f32(address, i)
        z += x == ZERO
        increment(table, np.int64(bits_of_float(x) >> np.uint32(lanes.FINE_SHIFT)))
    return length, z


@kernel("UniTuple(i8, 2)(i8, i8, i8, i8, i8)")
def _tally_some(table: int, address: int, length: int, first: int, every: int) -> tuple[int, int]:
    """Count one run of numbers of `every`, a power of two; `first` is the place of these numbers in the tensor.

    Not the same one of each group: rows have a length, and the same columns would be counted again and again.
    Returns how many numbers were counted, and how many of them are zero.
    """
    counted, zeros, group_size = 0, 0, RUN * every
    group = first & -group_size
    while group < first + length:
        mixed = np.uint64(group + 1) * np.uint64(0x9E3779B97F4A7C15)
        start = group + RUN * (np.int64(mixed >> np.uint64(40)) & (every - 1)) - first
        end = fewer(start + RUN, length)
        start = start if start > 0 else 0
        if start < end:
            more, z = _tally_run(table, address + 4 * start, end - start)
            counted, zeros = counted + more, zeros + z
        group += group_size
    return counted, zeros


@kernel("UniTuple(f4, 2)(i8, i8, f4)")
def sums_around(address: int, length: int, shift: float) -> tuple[float, float]:
    """Sum and squares of (number - shift)."""
    shifts = lanes.all_equal(shift)
    sums, squares = lanes.all_equal(ZERO), lanes.all_equal(ZERO)
    whole = length - length % lanes.LANES
    for i in range(0, whole, lanes.LANES):
        shifted = lanes.subtract(lanes.load(address, i), shifts)
        sums = lanes.add(sums, shifted)
        squares = lanes.add_square(squares, shifted)
    s, q = lanes.total(sums), lanes.total(squares)
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


@kernel("Tuple((i8, f8, f8, f8, f8))(i8, i8, i8, f8)")
def look_at_doubles(state: int, address: int, length: int, scale: float) -> tuple[int, float, float, float, float]:
    """What `look` does, for float64 numbers; without the histogram."""
    m, lo, hi, zeros = _extent_of_doubles(address, length, scale)
    if not m < np.inf:
        finite, mean, around, largest = careful(state, address, length, scale)
        return ODD, finite, mean, around, largest
    count = np.float64(length)
    mean, around = lo * scale, 0.0
    if lo < hi:
        mean = _sum_of_doubles(address, length, scale) / count
        around = _squares_of_doubles(address, length, mean, scale)
    total.add_piece(state, count, mean, around, m, lo, hi, np.float64(zeros))
    return ORDINARY, count, mean, around, greater(hi, -lo)


@kernel("Tuple((i8, f8, f8, f8, f8))(i8, i8, i8, i8)")
def _look_again(job: int, state: int, address: int, length: int) -> tuple[int, float, float, float, float]:
    doubles = get_i64(job, at.DOUBLES)
    for i in range(length):
        set_f64(doubles, i, np.float64(get_f32(address, i)))
    finite, mean, around, largest = careful(state, doubles, length, 1.0)
    return ODD, finite, mean, around, largest


@kernel("UniTuple(f8, 2)(i8, i8, f4, f4, f4)")
def _centre(address: int, length: int, shift: float, s: float, q: float) -> tuple[float, float]:
    """Mean and squares around it, from sum and squares of (number - shift)."""
    count = np.float64(length)
    offset = np.float64(s) / count
    around = np.float64(q) - count * offset * offset
    if count * offset * offset > 4.0 * around:  # the shift was far off, so little is left of the precision
        shift = np.float32(np.float64(sums_around(address, length, ZERO)[0]) / count)
        s, q = sums_around(address, length, shift)
        offset = np.float64(s) / count
        around = np.float64(q) - count * offset * offset
    return np.float64(shift) + offset, around


@kernel("UniTuple(f8, 3)(i8, i8, i8, f8)")
def _magnified(job: int, address: int, length: int, largest: float) -> tuple[float, float, float]:
    """Mean, squares around it and sum of magnitudes of tiny numbers: they are multiplied by a power of two first."""
    factor = np.float32(2.0**60 if largest >= 2.0**-108 else 2.0**120)
    scratch = get_i64(job, at.DOUBLES)
    for i in range(length):
        set_f32(scratch, i, get_f32(address, i) * factor)
    s, q, m, _, _, _ = sweep_uncounted(scratch, length, ZERO)
    mean, around = _centre(scratch, length, ZERO, s, q)
    back = 1.0 / np.float64(factor)
    return mean * back, around * back * back, np.float64(m) * back


@kernel("void(i8, i8, i8, i8)")
def count_some(job: int, state: int, address: int, length: int) -> None:
    """Count some of these numbers in the histogram."""
    table, every = get_i64(job, at.FINE), np.int64(get_f64(state, total.EVERY))
    counted, zeros = _tally_some(table, address, length, np.int64(get_f64(state, total.SEEN)), every)
    total.increase(state, total.COUNTED, np.float64(counted))
    total.increase(state, total.PLAIN_ZEROS, np.float64(zeros))
    total.increase(state, total.SEEN, np.float64(length))


@kernel("Tuple((i8, f8, f8, f8, f8))(i8, i8, i8, i8, f4, f4, f4, f4, f4, f4, i4)")
def _explain(
    job: int, state: int, address: int, length: int,
    shift: float, s: float, q: float, m: float, lo: float, hi: float, z: int,
) -> tuple[int, float, float, float, float]:  # fmt: skip
    """From what a sweep found to what `look` returns; adds it to the totals."""
    if not (m < LARGE and q < LARGE):  # a NaN makes both comparisons false
        return _look_again(job, state, address, length)
    largest, count, magnitudes, kind = greater(hi, -lo), np.float64(length), np.float64(m), ORDINARY
    mean, around = np.float64(lo), 0.0
    if lo == hi:
        magnitudes = abs(mean) * count
    elif largest < TINY:
        mean, around, magnitudes = _magnified(job, address, length, largest)
    else:
        mean, around = _centre(address, length, shift, s, q)
    if 0.0 < largest < TINY:
        kind = SMALL
    total.add_piece(state, count, mean, around, magnitudes, np.float64(lo), np.float64(hi), np.float64(z))
    set_f64(state, total.SHIFT, mean)
    return kind, count, mean, around, largest


@kernel("Tuple((i8, f8, f8, f8, f8))(i8, i8, i8, i8)")
def look_uncounted(job: int, state: int, address: int, length: int) -> tuple[int, float, float, float, float]:
    """What `look` does, without the histogram."""
    shift = np.float32(get_f64(state, total.SHIFT))
    s, q, m, lo, hi, z = sweep_uncounted(address, length, shift)
    return _explain(job, state, address, length, shift, s, q, m, lo, hi, z)


@kernel("Tuple((i8, f8, f8, f8, f8))(i8, i8, i8, i8)")
def look(job: int, state: int, address: int, length: int) -> tuple[int, float, float, float, float]:
    """Add float32 numbers to the totals.

    Returns what they are like, how many are finite, their mean, the squares around it and the largest magnitude.
    """
    if get_f64(state, total.EVERY) > 1:
        found = look_uncounted(job, state, address, length)
        count_some(job, state, address, length)  # afterwards: then the numbers are in the cache
        return found
    shift = np.float32(get_f64(state, total.SHIFT))
    apart = get_f64(state, total.MANY_ZEROS) > 0
    s, q, m, lo, hi, z = sweep(address, length, shift, get_i64(job, at.FINE), apart)
    if not apart:
        total.increase(state, total.PLAIN_ZEROS, z)
    set_f64(state, total.MANY_ZEROS, 1.0 if 16 * z > length else 0.0)
    return _explain(job, state, address, length, shift, s, q, m, lo, hi, z)

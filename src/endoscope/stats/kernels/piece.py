"""Statistics of one piece: a few thousand numbers that lie next to each other.

look ─► sweep (float32, eight at a time, histogram included)
          ├─ ordinary numbers ─► done
          ├─ tiny numbers ─► magnified, once more
          └─ NaN, Inf or huge numbers ─► careful (float64, one at a time)
"""

from __future__ import annotations

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels import state as total
from endoscope.stats.kernels import vectors as eight
from endoscope.stats.kernels.machine import (
    AHEAD,
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
            prefetch(address, 4 * i + AHEAD)
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


@kernel("Tuple((f4, f4, f4, f4, f4, i4))(i8, i8, f4)")
def sweep_uncounted(address: int, length: int, shift: float) -> tuple[float, float, float, float, float, int]:
    """What `sweep` returns, without the histogram: two eights at a time, because additions take their time."""
    sums, squares, magnitudes = eight.all_equal(ZERO), eight.all_equal(ZERO), eight.all_equal(ZERO)
    low, low2 = eight.all_equal(np.float32(np.inf)), eight.all_equal(np.float32(np.inf))
    high, high2 = eight.all_equal(np.float32(-np.inf)), eight.all_equal(np.float32(-np.inf))
    zeros, zeros2 = eight.no_counts(np.int32(0)), eight.no_counts(np.int32(0))
    shifts = eight.all_equal(shift)
    whole = length - length % (2 * eight.LANES)
    for start in range(0, whole, BLOCK):
        s8, q8, m8 = eight.all_equal(ZERO), eight.all_equal(ZERO), eight.all_equal(ZERO)
        s9, q9, m9 = eight.all_equal(ZERO), eight.all_equal(ZERO), eight.all_equal(ZERO)
        for i in range(start, fewer(start + BLOCK, whole), 2 * eight.LANES):
            prefetch(address, 4 * i + AHEAD)
            numbers, others = eight.load(address, i), eight.load(address, i + eight.LANES)
            shifted, other = eight.subtract(numbers, shifts), eight.subtract(others, shifts)
            s8, s9 = eight.add(s8, shifted), eight.add(s9, other)
            q8, q9 = eight.add_square(q8, shifted), eight.add_square(q9, other)
            m8, m9 = eight.add(m8, eight.magnitude(numbers)), eight.add(m9, eight.magnitude(others))
            low, low2 = eight.smaller(low, numbers), eight.smaller(low2, others)
            high, high2 = eight.larger(high, numbers), eight.larger(high2, others)
            zeros, zeros2 = eight.count_zeros(zeros, numbers), eight.count_zeros(zeros2, others)
        sums = eight.add(sums, eight.add(s8, s9))
        squares = eight.add(squares, eight.add(q8, q9))
        magnitudes = eight.add(magnitudes, eight.add(m8, m9))
    s, q, m = eight.total(sums), eight.total(squares), eight.total(magnitudes)
    lo, hi = eight.lowest(eight.smaller(low, low2)), eight.highest(eight.larger(high, high2))
    z = eight.total_count(zeros) + eight.total_count(zeros2)
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
        increment(table, np.int64(bits_of_float(x) >> np.uint32(eight.FINE_SHIFT)) if x != ZERO else eight.FINE_BINS)


@kernel("UniTuple(i8, 2)(i8, i8, i8)")
def _tally_run(table: int, address: int, length: int) -> tuple[int, int]:
    """Count numbers in the histogram; returns how many, and how many of them are zero."""
    zeros, whole = eight.no_counts(np.int32(0)), length - length % eight.LANES
    for i in range(0, whole, eight.LANES):
        zeros = eight.count_zeros(zeros, eight.load(address, i))
        eight.tally(table, address, i)
    z = np.int64(eight.total_count(zeros))
    for i in range(whole, length):
        x = get_f32(address, i)
        z += x == ZERO
        increment(table, np.int64(bits_of_float(x) >> np.uint32(eight.FINE_SHIFT)))
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

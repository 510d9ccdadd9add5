"""The fine histogram: read it into the stored one, find ranks in it, clear it.

A fine bin is named by its key: the upper bits of the number's magnitude, down to 8 bits of mantissa. Keys of
negative numbers come behind those of positive ones, counters for zeros behind both. 128 fine bins make one
coarse bin, half an octave wide, and those in reach make the stored histogram.

`is_wide` tells float64 numbers (20 bits of key) from float32 numbers (17 bits).
"""

from __future__ import annotations

import numpy as np

from endoscope.schema.stats import BINS_PER_SIGN, HISTOGRAM_BINS, LOWEST_EXPONENT, ZERO_BIN
from endoscope.stats import layout as at
from endoscope.stats.kernels.machine import (
    bits_of_double,
    bits_of_float,
    double_of_bits,
    fewer,
    float_of_bits,
    get_u32,
    kernel,
    set_u32,
)

PER_COARSE = 128
MOST_COARSE = 4096  # of one sign
ZERO_COUNTERS = at.ZERO_COUNTERS  # behind the keys of both signs
COUNT_BITS = np.uint32(0x7FFFFFFF)  # the highest bit marks a bin


@kernel("i8(b1)")
def keys_per_sign(is_wide: bool) -> int:
    """How many fine bins each sign has."""
    return 1 << 19 if is_wide else 1 << 16


@kernel("i8(f8, b1)")
def key_of(number: float, is_wide: bool) -> int:
    """The key of a number that is not zero."""
    if is_wide:
        return np.int64(bits_of_double(number) >> np.uint64(44))
    return np.int64(bits_of_float(np.float32(number)) >> np.uint32(15))


@kernel("f8(i8, b1)")
def lower_edge(key: int, is_wide: bool) -> float:
    """The smallest magnitude with this key; infinite behind the last one."""
    if is_wide:
        return double_of_bits(np.uint64(key) << np.uint64(44))
    return np.float64(float_of_bits(np.uint32(key) << np.uint32(15)))


@kernel("i8(i8, i8)")
def _coarse_sum(table: int, first: int) -> int:
    count = np.uint32(0)
    for i in range(PER_COARSE):
        count += get_u32(table, first + i)
    return np.int64(count)


@kernel("i8(i8, b1)")
def _rank_of(coarse: int, is_wide: bool) -> int:
    """How far from zero the stored bin of a coarse bin is."""
    offset = 2 * ((1023 if is_wide else 127) + LOWEST_EXPONENT)
    return fewer(coarse - offset if coarse > offset else 0, BINS_PER_SIGN - 1)


@kernel("UniTuple(i8, 2)(i8, b1, f8, i8, i8, i8)")
def read(table: int, is_wide: bool, largest: float, nonzero: int, coarse: int, stored: int) -> tuple[int, int]:
    """Add up fine bins to coarse ones, from the largest magnitude down until all numbers are found.

    Counts go to `coarse` (positive, then negative) and to the stored histogram. Returns the lowest and the
    highest coarse bin.
    """
    sign = keys_per_sign(is_wide)
    top = key_of(largest, is_wide) // PER_COARSE if nonzero > 0 else 0
    bottom = top + 1
    while nonzero > 0 and bottom > 0:
        bottom -= 1
        positive = _coarse_sum(table, bottom * PER_COARSE)
        negative = _coarse_sum(table, sign + bottom * PER_COARSE)
        set_u32(coarse, bottom, positive)
        set_u32(coarse, MOST_COARSE + bottom, negative)
        rank = _rank_of(bottom, is_wide)
        right, left = ZERO_BIN + 1 + rank, ZERO_BIN - 1 - rank
        set_u32(stored, right, get_u32(stored, right) + positive)
        set_u32(stored, left, get_u32(stored, left) + negative)
        nonzero -= positive + negative
    return bottom, top


@kernel("void(i8, f8)")
def _not_empty(stored: int, number: float) -> None:
    """A float32 number was seen: its stored bin is not empty."""
    if number != 0.0:
        rank = _rank_of(key_of(abs(number), False) // PER_COARSE, False)
        place = ZERO_BIN + 1 + rank if number > 0.0 else ZERO_BIN - 1 - rank
        if get_u32(stored, place) == 0:
            set_u32(stored, place, np.uint32(1))


@kernel("void(i8, i8, i8, f8, f8)")
def scale_up(stored: int, found: int, wanted: int, low: float, high: float) -> None:
    """From the counts of some numbers to those of all; the bins of the lowest and the highest are never empty."""
    factor, total, largest = wanted / found, 0, 0
    for place in range(HISTOGRAM_BINS):
        set_u32(stored, place, np.uint32(np.float64(get_u32(stored, place)) * factor + 0.5))
    _not_empty(stored, low)
    _not_empty(stored, high)
    for place in range(HISTOGRAM_BINS):
        total += np.int64(get_u32(stored, place))
        largest = place if get_u32(stored, place) > get_u32(stored, largest) else largest
    set_u32(stored, largest, np.uint32(np.int64(get_u32(stored, largest)) + wanted - total))


@kernel("UniTuple(i8, 3)(i8, b1, i8, i8, i8, i8, i8)")
def find(table: int, is_wide: bool, coarse: int, bottom: int, top: int, zeros: int, rank: int) -> tuple[int, int, int]:
    """Where the number of a rank (0 is the smallest) is: its key, how many numbers in its bin are smaller, how
    many there are in it. The key is -1 for zero."""
    sign = keys_per_sign(is_wide)
    for bin in range(top, bottom - 1, -1):
        count = np.int64(get_u32(coarse, MOST_COARSE + bin))
        if rank < count:
            for key in range(sign + (bin + 1) * PER_COARSE - 1, sign + bin * PER_COARSE - 1, -1):
                count = np.int64(get_u32(table, key) & COUNT_BITS)
                if rank < count:
                    return key, rank, count
                rank -= count
        rank -= count
    if rank < zeros:
        return -1, rank, zeros
    rank -= zeros
    for bin in range(bottom, top + 1):
        count = np.int64(get_u32(coarse, bin))
        if rank < count:
            for key in range(bin * PER_COARSE, (bin + 1) * PER_COARSE):
                count = np.int64(get_u32(table, key) & COUNT_BITS)
                if rank < count:
                    return key, rank, count
                rank -= count
        rank -= count
    return -1, 0, 1  # not reached: the rank is smaller than the number of numbers


@kernel("i8(i8, i8, i8)")
def _take_out(table: int, first: int, count: int) -> int:
    """Set some counters to zero; returns how many numbers were counted in them."""
    counted = np.uint32(0)
    for i in range(count):
        counted += get_u32(table, first + i) & COUNT_BITS
        set_u32(table, first + i, np.uint32(0))
    return np.int64(counted)


@kernel("i8(i8)")
def take_out_smallest(table: int) -> int:
    """Forget all float32 numbers that share their fine bin with zero; returns how many there were."""
    return _take_out(table, 0, 1) + _take_out(table, keys_per_sign(False), 1)


@kernel("i8(i8)")
def take_out_subnormal(table: int) -> int:
    """Forget all float32 numbers that have the lowest exponent; returns how many there were."""
    return _take_out(table, 0, 2 * PER_COARSE) + _take_out(table, keys_per_sign(False), 2 * PER_COARSE)


@kernel("i8(i8, i8)")
def take_out_zeros(table: int, zeros: int) -> int:
    """Forget float32 zeros; returns how many there were. Numbers below 1e-40, which are in the same fine bins, stay."""
    sign = keys_per_sign(False)
    plus = fewer(np.int64(get_u32(table, 0)), zeros)
    minus = fewer(np.int64(get_u32(table, sign)), zeros - plus)
    set_u32(table, 0, np.uint32(np.int64(get_u32(table, 0)) - plus))
    set_u32(table, sign, np.uint32(np.int64(get_u32(table, sign)) - minus))
    return plus + minus


@kernel("i8(i8)")
def count_odd(table: int) -> int:
    """How many float32 numbers that are not finite are in the table: those of the highest exponent."""
    sign = keys_per_sign(False)
    first, count = sign - 2 * PER_COARSE, 0
    for i in range(2 * PER_COARSE):
        count += np.int64(get_u32(table, first + i)) + np.int64(get_u32(table, sign + first + i))
    return count


@kernel("void(i8)")
def clear_all(table: int) -> None:
    """Forget all float32 numbers."""
    _take_out(table, 0, 2 * keys_per_sign(False) + ZERO_COUNTERS)


@kernel("void(i8, b1, i8, i8, i8, i8, i8)")
def clear(table: int, is_wide: bool, coarse: int, bottom: int, top: int, odd: int, counted: int) -> None:
    """Set all counters to zero; `odd` is how many numbers were not finite, `counted` how many are in the table.

    Only those in reach are looked at. If numbers are left then, somebody wrote to the tensor meanwhile: what was
    counted is not what was added up, and the rest can be anywhere.
    """
    sign = keys_per_sign(is_wide)
    for bin in range(bottom, top + 1):
        if get_u32(coarse, bin):
            counted -= _take_out(table, bin * PER_COARSE, PER_COARSE)
        if get_u32(coarse, MOST_COARSE + bin):
            counted -= _take_out(table, sign + bin * PER_COARSE, PER_COARSE)
    counted -= _take_out(table, 0, 1) + _take_out(table, sign, 1) + _take_out(table, 2 * sign, ZERO_COUNTERS)
    if odd > 0:  # they have the highest exponent
        last = sign - 2 * PER_COARSE
        counted -= _take_out(table, last, 2 * PER_COARSE) + _take_out(table, sign + last, 2 * PER_COARSE)
    if counted != 0:
        _take_out(table, 0, 2 * sign)

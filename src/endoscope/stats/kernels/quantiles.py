"""Quantiles by rank: exact for small tensors, within a fine bin (0.4 %) for large ones."""

from __future__ import annotations

import math

import numpy as np

from endoscope.schema.stats import QUANTILES
from endoscope.stats import layout as at
from endoscope.stats.kernels import histogram
from endoscope.stats.kernels.fill import numbers_at
from endoscope.stats.kernels.machine import (
    fewer,
    get_f32,
    get_f64,
    get_i64,
    get_u32,
    greater,
    kernel,
    lesser,
    set_f64,
    set_u32,
)

LEVELS = tuple(QUANTILES.values())
MARK = np.uint32(0x80000000)


@kernel("f8(i8, i8, b1, i8, i8)")
def _candidate(candidates: int, found: int, is_wide: bool, key: int, before: int) -> float:
    """The number that has so many smaller ones in its own bin."""
    first, last = 0, found  # the bin begins at the first number that is not below it
    is_negative = key >= histogram.keys_per_sign(is_wide)
    while first < last:
        middle = (first + last) // 2
        number = get_f64(candidates, middle)
        other = histogram.key_of(number, is_wide)
        below = number < 0.0 and other > key if is_negative else number < 0.0 or other < key
        if below:
            first = middle + 1
        else:
            last = middle
    return get_f64(candidates, first + before)


@kernel("f8(i8, i8, b1, b1, i8, i8, i8, i8, f8, f8)")
def _value(
    job: int,
    request: int,
    is_wide: bool,
    exact: bool,
    found: int,
    key: int,
    before: int,
    inside: int,
    low: float,
    high: float,
) -> float:
    """The number at a place in a bin."""
    if key < 0:
        return 0.0
    if exact:
        return _candidate(get_i64(job, at.CANDIDATES), found, is_wide, key, before)
    sign = histogram.keys_per_sign(is_wide)
    magnitude = key % sign
    start, end = histogram.lower_edge(magnitude, is_wide), histogram.lower_edge(magnitude + 1, is_wide)
    end = lesser(end, greater(high, -low))
    part = (before + 0.5) / inside
    value = start + part * (end - start) if key < sign else part * (end - start) - end
    if get_i64(request, at.IS_INTEGER):
        value = np.float64(math.floor(value + 0.5))
    return lesser(greater(value, low), high)


@kernel("void(i8, i8)")
def _sort(numbers: int, count: int) -> None:
    """Sort in place, by insertion with shrinking gaps: there are few, and often many equal ones."""
    for gap in (1750, 701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, count):
            number = get_f64(numbers, i)
            place = i
            while place >= gap and get_f64(numbers, place - gap) > number:
                set_f64(numbers, place, get_f64(numbers, place - gap))
                place -= gap
            set_f64(numbers, place, number)


@kernel("i8(i8, i8, b1, i8, i8, i8, i8, i8)")
def _collect(job: int, request: int, is_wide: bool, table: int, bottom: int, top: int, finite: int, zeros: int) -> int:
    """Copy all numbers from the bins that quantiles fall into, sorted; returns how many there are."""
    coarse = get_i64(job, at.COARSE)
    for level in range(len(LEVELS)):
        rank = np.int64(LEVELS[level] * (finite - 1))
        for neighbour in range(rank, fewer(rank + 2, finite)):
            key, _, _ = histogram.find(table, is_wide, coarse, bottom, top, zeros, neighbour)
            if key >= 0:
                set_u32(table, key, get_u32(table, key) | MARK)
    candidates = get_i64(job, at.CANDIDATES)
    size, scratch = get_i64(request, at.SAMPLE_SIZE), get_i64(job, at.ROWS)
    found = 0
    for sample in range(get_i64(request, at.SAMPLES)):
        address = numbers_at(job, request, sample, 0, size, scratch)
        for i in range(size):
            number = get_f64(address, i) if is_wide else np.float64(get_f32(address, i))
            if number != 0.0 and get_u32(table, histogram.key_of(number, is_wide)) >= MARK:
                set_f64(candidates, found, number)
                found += 1
    _sort(candidates, found)
    return found


@kernel("void(i8, i8, i8, i8, i8, i8, i8, i8, f8, f8)")
def write(
    job: int,
    request: int,
    row: int,
    table: int,
    bottom: int,
    top: int,
    finite: int,
    zeros: int,
    low: float,
    high: float,
) -> None:
    """Write all quantiles of a tensor; they follow the other numbers of its row."""
    is_wide = get_i64(request, at.CODE) >= at.FIRST_WIDE
    count = get_i64(request, at.SAMPLES) * get_i64(request, at.SAMPLE_SIZE)
    exact = count <= at.EXACT_UP_TO
    found = 0
    if exact:
        found = _collect(job, request, is_wide, table, bottom, top, finite, zeros)
    rows, numbers = get_i64(job, at.REQUEST_COUNT), get_i64(job, at.NUMBERS)
    coarse = get_i64(job, at.COARSE)
    for level in range(len(LEVELS)):
        position = LEVELS[level] * (finite - 1)
        rank = np.int64(position)
        part = position - rank
        value = np.nan
        if finite > 0:
            key, before, inside = histogram.find(table, is_wide, coarse, bottom, top, zeros, rank)
            value = _value(job, request, is_wide, exact, found, key, before, inside, low, high)
            if part > 0.0:
                if before + 1 < inside:
                    before += 1
                else:
                    key, before, inside = histogram.find(table, is_wide, coarse, bottom, top, zeros, rank + 1)
                after = _value(job, request, is_wide, exact, found, key, before, inside, low, high)
                value = value * (1.0 - part) + after * part if value != after else value
        set_f64(numbers, (7 + level) * rows + row, value)

"""Statistics of each unit over the batch."""

from __future__ import annotations

import math

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels import latest
from endoscope.stats.kernels import vectors as lanes
from endoscope.stats.kernels.machine import fewer, get_f32, get_f64, get_i64, greater, kernel, set_f32, set_f64
from endoscope.stats.kernels.piece import ODD, ORDINARY, sums_around

ZERO = np.float32(0.0)
EIGHTH = np.float32(0.125)
# Below this part of the squared mean, a variance is rounding: float32 numbers cannot differ by less.
ROUNDING = 1e-14


@kernel("void(i8, i8)")
def open_units(job: int, units: int) -> None:
    """Start all units of a tensor."""
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest, missing = get_i64(job, at.UNIT_LARGEST), get_i64(job, at.UNIT_MISSING)
    for unit in range(units):
        set_f64(sums, unit, 0.0)
    for unit in range(units):
        set_f64(squares, unit, 0.0)
    for unit in range(units):
        set_f32(largest, unit, np.float32(0.0))
    for unit in range(units):
        set_f64(missing, unit, 0.0)


@kernel("void(i8, i8, i8, f8)")
def _add_ordinary_doubles(job: int, row: int, units: int, scale: float) -> None:
    """Add one row of float64 numbers that are finite."""
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest = get_i64(job, at.UNIT_LARGEST)
    for unit in range(units):
        x = get_f64(row, unit)
        set_f64(sums, unit, get_f64(sums, unit) + x * scale)
        set_f64(squares, unit, get_f64(squares, unit) + (x * scale) * (x * scale))
        set_f32(largest, unit, greater(get_f32(largest, unit), abs(x)))


@kernel("void(i8, i8, i8, i8)")
def _add_ordinary_row(job: int, row: int, first: int, units: int) -> None:
    """Add one row of finite float32 numbers."""
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest = get_i64(job, at.UNIT_LARGEST)
    for unit in range(first, units):
        x = np.float64(get_f32(row, unit))
        set_f64(sums, unit, get_f64(sums, unit) + x)
        set_f64(squares, unit, get_f64(squares, unit) + x * x)
        set_f32(largest, unit, greater(get_f32(largest, unit), abs(x)))


@kernel("void(i8, i8, b1, i8, i8, f8)")
def _add_row(job: int, row: int, is_wide: bool, first: int, units: int, scale: float) -> None:
    """Add the numbers of one row that are finite."""
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest, missing = get_i64(job, at.UNIT_LARGEST), get_i64(job, at.UNIT_MISSING)
    for unit in range(first, units):
        x = get_f64(row, unit) if is_wide else np.float64(get_f32(row, unit))
        if abs(x) < np.inf:
            scaled = x * scale
            set_f64(sums, unit, get_f64(sums, unit) + scaled)
            set_f64(squares, unit, get_f64(squares, unit) + scaled * scaled)
            set_f32(largest, unit, greater(get_f32(largest, unit), abs(x)))
        else:
            set_f64(missing, unit, get_f64(missing, unit) + 1.0)


@kernel("void(i8, i8, i8, i8, i8)")
def _add_chunk(job: int, rows: int, stride: int, first: int, end: int) -> None:
    """Add some columns of eight rows of ordinary float32 numbers."""
    eighths, is_first = lanes.all_equal(EIGHTH), latest.groups_in(job, first) == 0
    for i in range(first, end, lanes.LANES):
        total, peaks = lanes.all_equal(ZERO), lanes.no_counts(np.int32(0))
        for row in range(at.ROWS_TOGETHER):
            numbers = lanes.load(rows + 4 * row * stride, i)
            total = lanes.add(total, numbers)
            peaks = lanes.higher(peaks, lanes.bits(lanes.magnitude(numbers)))
        mean, around = lanes.multiply(total, eighths), lanes.all_equal(ZERO)
        for row in range(at.ROWS_TOGETHER):
            around = lanes.add_square(around, lanes.subtract(lanes.load(rows + 4 * row * stride, i), mean))
        latest.add(job, i, is_first, mean, around, peaks)
    latest.end_group(job, first, end, end)


@kernel("void(i8, i8, i8, i8, i8, b1, i8, f8)")
def add_rows(job: int, rows: int, stride: int, count: int, length: int, is_wide: bool, kind: int, scale: float) -> None:
    """Add rows that have one number for each unit; eight rows of ordinary float32 numbers at once."""
    if kind == ODD or is_wide:
        for row in range(count):
            place = rows + (8 if is_wide else 4) * row * stride
            if kind == ORDINARY:
                _add_ordinary_doubles(job, place, length, scale)
            else:
                _add_row(job, place, is_wide, 0, length, scale)
        return
    first = 0
    if count == at.ROWS_TOGETHER and kind == ORDINARY:
        first = length - length % lanes.LANES
        for start in range(0, first, at.CHUNK):
            _add_chunk(job, rows, stride, start, fewer(start + at.CHUNK, first))
    for row in range(count):
        _add_ordinary_row(job, rows + 4 * row * stride, first, length)


@kernel("void(i8, i8, i8, i8, i8, i8, i8)")
def add_rest_of_rows(job: int, rows: int, stride: int, count: int, first: int, end: int, kind: int) -> None:
    """Add columns `first` to `end` of rows of float32 numbers, each for itself."""
    for row in range(count):
        if kind == ODD:
            _add_row(job, rows + 4 * row * stride, False, first, end, 1.0)
        else:
            _add_ordinary_row(job, rows + 4 * row * stride, first, end)


@kernel("void(i8, i8, i8)")
def fold(job: int, units: int, row: int) -> None:
    """All rows were added. In a long row every unit occurs several times: add them up."""
    latest.move_all(job, row)
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest, missing = get_i64(job, at.UNIT_LARGEST), get_i64(job, at.UNIT_MISSING)
    for place in range(units, row):
        unit = place % units
        set_f64(sums, unit, get_f64(sums, unit) + get_f64(sums, place))
        set_f64(squares, unit, get_f64(squares, unit) + get_f64(squares, place))
        set_f32(largest, unit, greater(get_f32(largest, unit), get_f32(largest, place)))
        set_f64(missing, unit, get_f64(missing, unit) + get_f64(missing, place))


@kernel("void(i8, i8, i8, f8, f8, f8, f8)")
def add_run(job: int, unit: int, length: int, finite: float, mean: float, around: float, largest: float) -> None:
    """Add a piece that belongs to one unit as a whole."""
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    highest, missing = get_i64(job, at.UNIT_LARGEST), get_i64(job, at.UNIT_MISSING)
    set_f64(sums, unit, get_f64(sums, unit) + finite * mean)
    set_f64(squares, unit, get_f64(squares, unit) + around + finite * mean * mean)
    set_f32(highest, unit, greater(get_f32(highest, unit), largest))
    set_f64(missing, unit, get_f64(missing, unit) + (length - finite))


@kernel("void(i8, i8, i8, i8)")
def _add_ordinary_run(job: int, unit: int, address: int, length: int) -> None:
    """Add a few ordinary float32 numbers that belong to one unit."""
    peaks = lanes.all_equal(np.float32(0.0))
    whole = length - length % lanes.LANES
    for i in range(0, whole, lanes.LANES):
        peaks = lanes.larger(peaks, lanes.magnitude(lanes.load(address, i)))
    largest = np.float64(lanes.highest(peaks))
    for i in range(whole, length):
        largest = greater(largest, abs(get_f32(address, i)))
    shift = np.float32(sums_around(address, length, np.float32(0.0))[0] / np.float32(length))
    s, q = sums_around(address, length, shift)
    offset = np.float64(s) / length
    mean, around = np.float64(shift) + offset, np.float64(q) - length * offset * offset
    add_run(job, unit, length, np.float64(length), mean, greater(around, 0.0), largest)


@kernel("void(i8, i8, i8, i8, b1, b1, f8)")
def add_short_run(job: int, unit: int, address: int, length: int, is_wide: bool, ordinary: bool, scale: float) -> None:
    """Add a few numbers that belong to one unit."""
    if ordinary and not is_wide:
        _add_ordinary_run(job, unit, address, length)
        return
    finite, s, q, largest = 0, 0.0, 0.0, 0.0
    for i in range(length):
        x = get_f64(address, i) if is_wide else np.float64(get_f32(address, i))
        if abs(x) < np.inf:
            finite += 1
            s += x * scale
            largest = greater(largest, abs(x))
    mean = s / finite if finite > 0 else 0.0
    for i in range(length):
        x = get_f64(address, i) if is_wide else np.float64(get_f32(address, i))
        if abs(x) < np.inf:
            d = x * scale - mean
            q += d * d
    add_run(job, unit, length, np.float64(finite), mean, q, largest)


@kernel("void(i8, i8, i8, f8, b1)")
def close_units(job: int, request: int, total: int, scale: float, complete: bool) -> None:
    """Write the statistics of all units; `complete` says that all numbers were finite.

    The columns are those of schema.stats.UNIT.
    """
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    largest, missing = get_i64(job, at.UNIT_LARGEST), get_i64(job, at.UNIT_MISSING)
    units, rows = get_i64(request, at.UNITS), get_i64(job, at.UNIT_TOTAL)
    means = get_i64(job, at.UNIT_TABLE) + 4 * get_i64(request, at.UNIT_AT)
    spreads, peaks = means + 4 * rows, means + 8 * rows
    each, back = 1.0 / total, 1.0 / scale
    for unit in range(units):
        if not complete:
            each = 1.0 / (total - get_f64(missing, unit))
        mean = get_f64(sums, unit) * each
        variance = get_f64(squares, unit) * each - mean * mean
        spread = math.sqrt(variance if variance > ROUNDING * mean * mean else 0.0)
        set_f32(means, unit, mean * back)
        set_f32(spreads, unit, spread * back)
        set_f32(peaks, unit, get_f32(largest, unit))
        if not complete and get_f64(missing, unit) == total:
            set_f32(means, unit, np.nan)
            set_f32(spreads, unit, np.nan)
            set_f32(peaks, unit, np.nan)

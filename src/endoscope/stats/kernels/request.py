"""One request from beginning to end.

measure ─► samples ─► pieces ─► piece.look, units ─► totals ─► histogram ─► quantiles
"""

from __future__ import annotations

import numpy as np

from endoscope.schema.stats import HISTOGRAM_BINS, ZERO_BIN
from endoscope.stats import layout as at
from endoscope.stats.kernels import histogram, piece, quantiles, rows, units
from endoscope.stats.kernels import state as total
from endoscope.stats.kernels import vectors as lanes
from endoscope.stats.kernels.fill import numbers_at
from endoscope.stats.kernels.machine import (
    double_of_bits,
    fewer,
    get_f32,
    get_f64,
    get_i64,
    get_u32,
    greater,
    increment,
    kernel,
    set_i64,
    set_u32,
)

# Within these bounds, squares of float64 numbers can be added up as they are.
HUGE = 1e145
TINY = 1e-145


@kernel("void(i8, i8, i8, i8)")
def _close(job: int, request: int, state: int, sample: int) -> None:
    first = get_i64(request, at.SAMPLE_ROW)
    total.close_sample(job, state, first + sample if first >= 0 else -1)


@kernel("Tuple((i8, f8, f8, f8, f8))(i8, i8, i8, i8, b1, f8)")
def _look(
    job: int, state: int, address: int, length: int, is_wide: bool, scale: float
) -> tuple[int, float, float, float, float]:
    """Add numbers to the totals and to the fine histogram; returns what `piece.look` does."""
    if not is_wide:
        return piece.look(job, state, address, length)
    table, zero = get_i64(job, at.FINE_WIDE), 2 * histogram.keys_per_sign(True)
    for i in range(length):
        number = get_f64(address, i)  # those that are not finite do no harm
        increment(table, histogram.key_of(number, True) if number != 0.0 else zero)
    return piece.look_at_doubles(state, address, length, scale)


@kernel("i8(i8)")
def _row_length(request: int) -> int:
    """Elements of a row: every unit once or, if there are few units, several times."""
    units = get_i64(request, at.UNITS)
    times = get_i64(request, at.SAMPLE_SIZE) // units  # that each unit occurs in a sample
    most = fewer(times, at.LONG_ROW // units)
    for repeat in range(most, most // 2, -1):
        if times % repeat == 0:
            return repeat * units
    return units * (most if most > 0 else 1)


@kernel("void(i8, i8, i8, b1, f8)")
def _walk_rows(job: int, request: int, state: int, is_wide: bool, scale: float) -> None:
    """Samples whose units come one after the other: eight rows are looked at, then added to the units at once."""
    row, size = _row_length(request), get_i64(request, at.SAMPLE_SIZE)
    sample_stride, samples = get_i64(request, at.SAMPLE_STRIDE), get_i64(request, at.SAMPLES)
    code = get_i64(request, at.CODE)
    in_place = get_i64(request, at.DIMS) == 0 and (code == at.FLOAT32 or code == at.FLOAT64)
    stride = sample_stride if in_place and row == size else row  # from row to row
    across = row == size or (size % row == 0 and (not in_place or sample_stride == size))  # also between samples
    scratch, item = get_i64(job, at.ROWS), 8 if is_wide else 4
    sample, start = 0, 0
    at_once = in_place and not is_wide and row % lanes.LANES == 0 and get_f64(state, total.EVERY) > 1
    while sample < samples:
        if at_once and size - start >= at.ROWS_TOGETHER * row:
            rows.add_rows(job, state, numbers_at(job, request, sample, start, 0, scratch), row, row)
            start += at.ROWS_TOGETHER * row
            if start == size:
                _close(job, request, state, sample)
                sample, start = sample + 1, 0
            continue
        kind, together, first, length = piece.ORDINARY, 0, scratch, row
        while sample < samples and together < at.ROWS_TOGETHER:
            if size - start < row and together > 0:
                break  # the short row at the end of a sample stands alone
            length = fewer(row, size - start)
            address = numbers_at(job, request, sample, start, length, scratch + item * row * together)
            first = address if together == 0 else first
            found = _look(job, state, address, length, is_wide, scale)[0]
            kind = found if found > kind else kind
            together += 1
            start += length
            if start == size:
                _close(job, request, state, sample)
                sample, start = sample + 1, 0
            if length < row or (start == 0 and not across):
                break
        units.add_rows(job, first, stride, together, length, is_wide, kind, scale)


@kernel("void(i8, i8, i8, b1, f8)")
def _walk_runs(job: int, request: int, state: int, is_wide: bool, scale: float) -> None:
    """Samples without units, or with all numbers of a unit together."""
    size = get_i64(request, at.SAMPLE_SIZE)
    has_units = get_i64(request, at.UNIT_KIND) == at.RUNS
    runs = get_i64(request, at.UNITS) if has_units else 1
    length = size // runs
    scratch = get_i64(job, at.ROWS)
    for sample in range(get_i64(request, at.SAMPLES)):
        for run in range(runs):
            for start in range(0, length, at.PIECE):
                count = fewer(at.PIECE, length - start)
                address = numbers_at(job, request, sample, run * length + start, count, scratch)
                _, finite, mean, around, largest = _look(job, state, address, count, is_wide, scale)
                if has_units:
                    units.add_run(job, run, count, finite, mean, around, largest)
        _close(job, request, state, sample)


@kernel("void(i8, i8, i8, b1, f8)")
def _walk_short_runs(job: int, request: int, state: int, is_wide: bool, scale: float) -> None:
    """The same for units that have few numbers in a sample: one look at several units."""
    runs = get_i64(request, at.UNITS)
    length = get_i64(request, at.SAMPLE_SIZE) // runs
    scratch, item = get_i64(job, at.ROWS), 8 if is_wide else 4
    at_once = at.PIECE // length
    for sample in range(get_i64(request, at.SAMPLES)):
        for first in range(0, runs, at_once):
            together = fewer(at_once, runs - first)
            address = numbers_at(job, request, sample, first * length, together * length, scratch)
            ordinary = _look(job, state, address, together * length, is_wide, scale)[0] == piece.ORDINARY
            for run in range(together):
                place = address + item * run * length
                units.add_short_run(job, first + run, place, length, is_wide, ordinary, scale)
        _close(job, request, state, sample)


@kernel("f8(i8, i8)")
def _scale(job: int, request: int) -> float:
    """A power of two that keeps squares of float64 numbers within bounds: nearly always 1."""
    code = get_i64(request, at.CODE)
    if code != at.FLOAT64 and code != at.COMPLEX128:
        return 1.0  # integers are neither that large nor that small
    infinite, largest_bits = np.int64(0x7FF) << 52, np.int64(0)  # magnitudes compare like integers
    size, scratch = get_i64(request, at.SAMPLE_SIZE), get_i64(job, at.ROWS)
    for sample in range(get_i64(request, at.SAMPLES)):
        for start in range(0, size, at.PIECE):
            count = fewer(at.PIECE, size - start)
            address = numbers_at(job, request, sample, start, count, scratch)
            for i in range(count):
                bits = get_i64(address, i) & np.int64(0x7FFFFFFFFFFFFFFF)
                bits = bits if bits < infinite else np.int64(0)
                largest_bits = bits if bits > largest_bits else largest_bits
    largest = double_of_bits(np.uint64(largest_bits))
    if largest > HUGE:
        return 2.0**-600
    if 0.0 < largest < TINY:
        return 2.0**600
    return 1.0


@kernel("i8(i8, i8, i8, i8)")
def _take_zeros_out(job: int, request: int, table: int, zeros: int) -> int:
    """Zeros share their fine bin with numbers below 1e-40. If there are any of those, they are counted again.

    If there are too few of both, the processor takes all subnormal numbers for zeros (torch.set_flush_denormal).
    Returns by how much the table then counts fewer numbers.
    """
    sign = histogram.keys_per_sign(False)
    both = histogram.take_out_smallest(table)
    if both < zeros:
        return both + histogram.take_out_subnormal(table)
    if both == zeros:
        return both
    size, scratch = get_i64(request, at.SAMPLE_SIZE), get_i64(job, at.ROWS)
    again = 0
    for sample in range(get_i64(request, at.SAMPLES)):
        for start in range(0, size, at.PIECE):
            count = fewer(at.PIECE, size - start)
            address = numbers_at(job, request, sample, start, count, scratch)
            for i in range(count):
                number = get_f32(address, i)
                key = histogram.key_of(number, False)
                if number != np.float32(0.0) and (key == 0 or key == sign):
                    increment(table, key)
                    again += 1
    return both - again


@kernel("void(i8, i8)")
def _trim(stored: int, ends: int) -> None:
    """Note which bins of a stored histogram are in use."""
    first, end = 0, HISTOGRAM_BINS
    while first < HISTOGRAM_BINS and get_u32(stored, first) == 0:
        first += 1
    while end > first and get_u32(stored, end - 1) == 0:
        end -= 1
    set_i64(ends, 0, first if first < end else 0)
    set_i64(ends, 1, end if first < end else 0)


@kernel("void(i8, i8, i8)")
def _count_all(job: int, request: int, table: int) -> None:
    """Count every number of a tensor of which only some were counted."""
    histogram.clear_all(table)
    size, scratch = get_i64(request, at.SAMPLE_SIZE), get_i64(job, at.ROWS)
    for sample in range(get_i64(request, at.SAMPLES)):
        for start in range(0, size, at.PIECE):
            count = fewer(at.PIECE, size - start)
            piece.tally_all(table, numbers_at(job, request, sample, start, count, scratch), count)


@kernel("UniTuple(i8, 2)(i8, i8, i8, i8, i8, i8)")
def _settle(job: int, request: int, state: int, table: int, odd: int, nonzero: int) -> tuple[int, int]:
    """Take zeros out of a table of float32 numbers. Returns how many numbers are left in it, and how many of them are
    finite; `nonzero` is how many these are in the whole tensor."""
    count = get_i64(request, at.SAMPLES) * get_i64(request, at.SAMPLE_SIZE)
    if get_f64(state, total.EVERY) == 1:
        return count - _take_zeros_out(job, request, table, np.int64(get_f64(state, total.PLAIN_ZEROS))), nonzero
    counted = np.int64(get_f64(state, total.COUNTED))
    counted -= histogram.take_out_zeros(table, np.int64(get_f64(state, total.PLAIN_ZEROS)))
    found = counted - (histogram.count_odd(table) if odd > 0 else 0)
    if found < at.FEW and found < nonzero:  # nearly all are zero
        _count_all(job, request, table)
        return count, nonzero
    return counted, found


@kernel("void(i8, i8, i8, i8, b1)")
def _finish_histogram(job: int, request: int, state: int, row: int, is_wide: bool) -> None:
    whole = state + 8 * total.WHOLE
    finite, zeros = np.int64(get_f64(whole, total.FINITE)), np.int64(get_f64(whole, total.ZEROS))
    odd = np.int64(get_f64(whole, total.NANS) + get_f64(whole, total.INFS))
    low, high = get_f64(whole, total.LOW), get_f64(whole, total.HIGH)
    table, coarse = get_i64(job, at.FINE_WIDE if is_wide else at.FINE), get_i64(job, at.COARSE)
    stored = get_i64(job, at.HISTOGRAMS) + 4 * HISTOGRAM_BINS * row
    counted, found = get_i64(request, at.SAMPLES) * get_i64(request, at.SAMPLE_SIZE), finite - zeros
    if not is_wide:
        counted, found = _settle(job, request, state, table, odd, found)
    bottom, top = histogram.read(table, is_wide, greater(high, -low), found, coarse, stored)
    ranked_zeros = zeros
    if found < finite - zeros:
        histogram.scale_up(stored, found, finite - zeros, low, high)
        ranked_zeros = np.int64(zeros * (found / (finite - zeros)) + 0.5)
    set_u32(stored, ZERO_BIN, zeros)
    _trim(stored, get_i64(job, at.HISTOGRAM_ENDS) + 16 * row)
    quantiles.write(job, request, row, table, bottom, top, found + ranked_zeros, ranked_zeros, low, high)
    histogram.clear(table, is_wide, coarse, bottom, top, odd, counted)


@kernel("void(i8, i8)")
def measure(job: int, row: int) -> None:
    """Everything about one tensor."""
    request = get_i64(job, at.REQUESTS) + 8 * at.REQUEST_FIELDS * row
    is_wide = get_i64(request, at.CODE) >= at.FIRST_WIDE
    scale = _scale(job, request) if is_wide else 1.0
    state = get_i64(job, at.STATE)
    count = get_i64(request, at.SAMPLES) * get_i64(request, at.SAMPLE_SIZE)
    every = at.WORTH if not is_wide and count >= at.WORTH * at.ENOUGH else 1
    while every > 1 and count >= 2 * every * at.ENOUGH:
        every *= 2
    total.open_request(state, scale, every)
    kind = get_i64(request, at.UNIT_KIND)
    if kind != at.NO_UNITS:
        units.open_units(job, get_i64(request, at.UNITS) if kind == at.RUNS else _row_length(request))
    if kind == at.COLUMNS:
        _walk_rows(job, request, state, is_wide, scale)
    elif kind == at.RUNS and get_i64(request, at.SAMPLE_SIZE) < at.SHORT_RUN * get_i64(request, at.UNITS):
        _walk_short_runs(job, request, state, is_wide, scale)
    else:
        _walk_runs(job, request, state, is_wide, scale)
    if kind != at.NO_UNITS:
        if kind == at.COLUMNS:
            units.fold(job, get_i64(request, at.UNITS), _row_length(request))
        complete = get_f64(state, total.WHOLE + total.FINITE) == count
        units.close_units(job, request, count // get_i64(request, at.UNITS), scale, complete)
    total.write_whole(job, state, row, count)
    _finish_histogram(job, request, state, row, is_wide)

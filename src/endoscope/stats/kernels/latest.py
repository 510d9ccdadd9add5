"""Columns of eight rows at a time, added up in float32 and now and then moved to the float64 sums of all rows.

eight rows ─► mean and squares of each column ─► add ─► after GROUPS of them, and at the end ─► move ─► units

Adding each group to float64 numbers would take as long as looking at its numbers. Squares are taken around the mean of
the first group, so that a column whose mean is large against its spread keeps its spread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from endoscope.stats import layout as at
from endoscope.stats.kernels import vectors as lanes
from endoscope.stats.kernels.machine import fewer, get_f32, get_f64, get_i64, kernel, set_f64, set_i64

GROUPS = 16  # more of them would round in one direction


@kernel("i8(i8, i8)")
def groups_in(job: int, first: int) -> int:
    """How many groups of the chunk that begins at this column are not yet moved."""
    return get_i64(get_i64(job, at.UNIT_GROUPS), first // at.CHUNK)


@kernel(types.void(types.int64, types.int64, types.boolean, lanes.Floats, lanes.Floats, lanes.Ints))
def add(job: int, column: int, is_first: bool, mean: Any, around: Any, peaks: Any) -> None:
    """Add one group; mean and squares of as many columns as there are lanes."""
    latest = get_i64(job, at.UNIT_LATEST)
    if is_first:
        lanes.put_columns(latest, column, mean, around)
    else:
        lanes.add_columns(latest, column, mean, around)
    lanes.raise_peaks(get_i64(job, at.UNIT_LARGEST), column, peaks)


@kernel("void(i8, i8, i8, i8)")
def _move(job: int, first: int, end: int, groups: int) -> None:
    """From a mean, the distances of others from it and the squares around it to sums of numbers and squares."""
    sums, squares = get_i64(job, at.UNIT_SUMS), get_i64(job, at.UNIT_SQUARES)
    shifts = get_i64(job, at.UNIT_LATEST)
    offsets, around = shifts + 4 * at.MOST_COLUMNS, shifts + 8 * at.MOST_COLUMNS
    for i in range(end - first):
        column = first + i
        shift, offset = np.float64(get_f32(shifts, column)), np.float64(get_f32(offsets, column))
        more = groups * shift
        set_f64(sums, column, get_f64(sums, column) + 8.0 * (more + offset))
        moved = 8.0 * shift * (more + 2.0 * offset) + np.float64(get_f32(around, column))
        set_f64(squares, column, get_f64(squares, column) + moved)


@kernel("void(i8, i8, i8, i8)")
def end_group(job: int, first: int, stopped: int, end: int) -> None:
    """A group of the columns of one chunk, `first` to `end`, was added; of those from `stopped` on it was not."""
    counts, chunk = get_i64(job, at.UNIT_GROUPS), first // at.CHUNK
    groups = get_i64(counts, chunk) + 1
    if groups == GROUPS or stopped < end:
        _move(job, first, stopped, groups)
        if groups > 1:
            _move(job, stopped, end, groups - 1)
        groups = 0
    set_i64(counts, chunk, groups)


@kernel("void(i8, i8)")
def move_all(job: int, columns: int) -> None:
    """There are no more groups. Of so many columns all but the last few were added up here: those that fill lanes."""
    columns -= columns % lanes.LANES
    for first in range(0, columns, at.CHUNK):
        groups = groups_in(job, first)
        if groups > 0:
            _move(job, first, fewer(first + at.CHUNK, columns), groups)
            set_i64(get_i64(job, at.UNIT_GROUPS), first // at.CHUNK, 0)

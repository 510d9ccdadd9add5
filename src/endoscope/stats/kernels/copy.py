"""Copies of memory that is not read again soon: they are written past the cache.

An ordinary store first reads the line that it is about to overwrite, and throws out another one that training may need.
"""

from __future__ import annotations

from endoscope.stats.kernels import vectors as lanes
from endoscope.stats.kernels.machine import AHEAD, fence, get_i64, get_u32, kernel, prefetch, set_u32

STEP = 16  # numbers in a line of the cache


@kernel("void(i8, i8, i8)")
def _copy(source: int, target: int, numbers: int) -> None:
    """Copy so many 32-bit numbers; the target begins at a line of the cache."""
    whole = numbers - numbers % STEP
    for i in range(0, whole, STEP):
        prefetch(source, 4 * i + AHEAD)
        for part in range(i, i + STEP, lanes.LANES):
            lanes.store_past_cache(target, part, lanes.load(source, part))
    for i in range(whole, numbers):
        set_u32(target, i, get_u32(source, i))


@kernel("void(i8, i8)")
def copy_all(table: int, count: int) -> None:
    """Copy what is listed in a table: source, target, how many numbers."""
    for i in range(count):
        _copy(get_i64(table, 3 * i), get_i64(table, 3 * i + 1), get_i64(table, 3 * i + 2))
    fence()  # such stores may otherwise be seen late by other processors

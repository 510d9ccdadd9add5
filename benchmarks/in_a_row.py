"""Times steps that differ from one another: what a recorder does now and then must count as often as it happens.

A recorder traces some steps as a whole (the 16th captured one, the 32nd, …) and only watches the others, so the median
of a few samples would leave the dear steps out. Here every side makes the same number of steps in a row, 128 after its
first 8, and *all* of them are timed, in blocks that take turns with those of the other sides:

    copy 1:  plain 9…16 │ recorded 9…16 │ recorded 17…24 │ plain 17…24 │ …        ratio of block 1, 2, …
    copy 2:  the same from the beginning, with new nets and a new recording       ratio of block 1, 2, …

Block k holds the same steps of every side and copy: the same numbers, the same batches, the same traced steps. Its
ratio is the median over the copies, which takes out what another process did to one of them, and the mean over the
blocks is what recording costs: traced steps count at the frequency they have.

The clock is the CPU time of all threads of the process. Each block ends when nothing is left in the background, so
what a writer does later is on the bill of the side that caused it. Garbage is collected before a block, off the clock.
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import measure
from step_clock import Trained

FIRST_STEPS = 8  # off the clock: the first ones of a run are not like the others
STEPS = 128
BLOCK_SECS = 0.15  # a block is at least so long
MOST_BLOCKS, FEWEST_BLOCKS = 16, 8

Copy = Callable[[], contextlib.AbstractContextManager[Mapping[str, Trained]]]


@dataclass
class Blocks:
    """CPU seconds of a step: ``secs[side][copy][block]``."""

    secs: dict[str, list[list[float]]] = field(default_factory=dict)

    def step_secs(self, side: str) -> float:
        return statistics.median(secs for copy in self.secs[side] for secs in copy)

    def ratio(self, side: str, to: str = "plain") -> float:
        """The mean over the blocks of the median over the copies."""
        return statistics.fmean(self._block_medians(self._ratios(side, to)))

    def error(self, side: str, to: str = "plain") -> float:
        """How far the ratio may be off: by what the copies differ, what their blocks differ by chance, or as much as
        `plain again` is off, which costs nothing and should be 1."""
        ratios = self._ratios(side, to)
        medians = self._block_medians(ratios)
        off = [[ratio - median for ratio, median in zip(copy, medians, strict=True)] for copy in ratios]
        of_copies = _error([statistics.median(copy) for copy in off])
        again = [ratio for copy in self._ratios("plain again", to) for ratio in copy]
        by_chance = _error([ratio - statistics.median(again) for ratio in again])
        return max(of_copies, by_chance, abs(self.ratio("plain again", to) - 1))

    def _ratios(self, side: str, to: str) -> list[list[float]]:
        pairs = zip(self.secs[side], self.secs[to], strict=True)
        return [[a / b for a, b in zip(ours, plain, strict=True)] for ours, plain in pairs]

    @staticmethod
    def _block_medians(ratios: list[list[float]]) -> list[float]:
        return [statistics.median(block) for block in zip(*ratios, strict=True)]


def _error(values: list[float]) -> float:
    """The standard error of a median, from the median distance of a value to it."""
    distance = statistics.median(abs(value) for value in values)
    return 1.4826 * 1.2533 * distance / math.sqrt(len(values))


def compare(copy: Copy, effort_secs: float, fewest: int, most: int, shape: tuple[int, int] | None = None) -> Blocks:
    """As many copies as the effort allows, each a new set of sides; `shape` is blocks of a side and steps of a block,
    if it is not to be found out."""
    blocks, start = Blocks(), time.process_time()
    for number in range(most):
        begun = time.process_time()
        with copy() as sides:
            for side, secs in _one_copy(sides, number, shape).items():
                blocks.secs.setdefault(side, []).append(secs)
        now = time.process_time()
        if number + 1 >= fewest and now - start + (now - begun) > effort_secs:
            break
    return blocks


def _one_copy(sides: Mapping[str, Trained], number: int, shape: tuple[int, int] | None) -> dict[str, list[float]]:
    first_secs = {name: _block(side, FIRST_STEPS) for name, side in sides.items()}
    count, steps = shape or _shape(first_secs["plain"])
    secs: dict[str, list[float]] = {name: [] for name in sides}
    for block in range(count):
        for name in measure.in_turn(list(sides), block + number):
            secs[name].append(_block(sides[name], steps))
    return secs


def _block(side: Trained, steps: int) -> float:
    """CPU seconds per step, until nothing is left in the background."""
    gc.collect()
    start = time.process_time()
    for _ in range(steps):
        side.step()
    side.settle()
    return (time.process_time() - start) / steps


def _shape(step_secs: float) -> tuple[int, int]:
    """Powers of two."""
    steps = STEPS // MOST_BLOCKS
    while steps * step_secs < BLOCK_SECS and STEPS // (2 * steps) >= FEWEST_BLOCKS:
        steps *= 2
    return STEPS // steps, steps

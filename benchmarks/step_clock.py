"""Times training steps that leave work to another thread: in turns, by two clocks at once.

    CPU   of all threads, until everything that was recorded is on disk: the work that recording costs
    wall  until the last step of the sample has ended: how much later the training arrives

    round 1:  plain plain plain │ recorded recorded recorded · written │ …
              └──── sample ───┘   └──────── wall ────────┘           │
                                  └─────────────── CPU ──────────────┘

A sample is several steps in a row, so that what the writer does for one step meets the next ones as in real training,
and a side leaves nothing to do behind its back while the next side is timed. As in `measure.py`, the order changes
every round, garbage is collected before a sample and off the clock, and ratios are formed inside a round. One more step
is made before the clock starts: the sides before it have left nothing of this one in the cache, and in a training
nobody's steps are in between.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import measure

SLOW_SECS = 1.0  # a side whose first step takes longer is not warmed up by a second one


def _nothing_left() -> None:
    pass


@dataclass(frozen=True)
class Trained:
    """One way of training."""

    step: Callable[[], object]
    settle: Callable[[], object] = _nothing_left  # waits until no work is left in the background


@dataclass(frozen=True)
class Timing:
    """The same rounds by both clocks."""

    cpu: measure.Comparison
    wall: measure.Comparison


def sample(side: Trained, steps: int) -> tuple[float, float]:
    """CPU and wall seconds per step."""
    gc.collect()
    side.step()
    side.settle()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        side.step()
    wall = time.perf_counter() - wall
    side.settle()
    return (time.process_time() - cpu) / steps, wall / steps


def compare(sides: Mapping[str, Trained], steps: int, effort: measure.Effort) -> Timing:
    """Warm every side up, then time all of them in turns for as many rounds as the effort allows."""
    for side in sides.values():
        if sample(side, 1)[0] < SLOW_SECS:
            sample(side, 1)
    names = list(sides)
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    start, number = time.process_time(), 0
    while number < effort.min_rounds or (
        number < effort.max_rounds and time.process_time() - start < effort.budget_secs
    ):
        for name in measure.in_turn(names, number):
            samples[name].append(sample(sides[name], steps))
        number += 1
    return _timing(samples)


def _timing(samples: Mapping[str, list[tuple[float, float]]]) -> Timing:
    cpu, wall = (
        measure.Comparison({name: tuple(pair[clock] for pair in pairs) for name, pairs in samples.items()})
        for clock in (0, 1)
    )
    return Timing(cpu, wall)

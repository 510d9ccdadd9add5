"""Side-by-side measurement: the same few callables again and again, in turns, in one process.

Absolute times on a shared machine say little. What is stable is the ratio of two callables that run right
after each other, so a round runs every side once and a ratio is formed inside each round:

    round 1:  raw  A  B          A/raw  B/raw  ┐
    round 2:  B  A  raw          A/raw  B/raw  ├─► the median of each column
    round 3:  A  B  raw          A/raw  B/raw  ┘

- The clock is the CPU time of this process (all its threads, user and system), which other processes disturb
  least; torch gets one thread.
- The order changes every round, so that no side always inherits the caches and the heap of the same other.
- The garbage collector stays on, because what a side allocates is part of its price. A full collection runs
  before each sample and off the clock, so that no side pays for another's garbage.
- The result of a call is alive until the clock has stopped and is freed off the clock.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Side = Callable[[], object]
NOISE = 0.03  # two sides that cost the same differ by up to this much on a shared machine


@dataclass(frozen=True)
class Effort:
    """How long one comparison may take."""

    budget_secs: float = 20.0  # CPU time for all rounds, the collections between samples included
    min_rounds: int = 9
    max_rounds: int = 25
    sample_secs: float = 0.02  # a side that is faster than this is called several times per sample


FULL = Effort()
QUICK = Effort(budget_secs=4.0, min_rounds=5, max_rounds=9)


@dataclass(frozen=True)
class Comparison:
    """The seconds of every side in every round: ``secs[side][round]``."""

    secs: Mapping[str, tuple[float, ...]]

    def median_secs(self, side: str) -> float:
        return statistics.median(self.secs[side])

    def ratios(self, side: str, to: str) -> list[float]:
        return [a / b for a, b in zip(self.secs[side], self.secs[to], strict=True)]

    def ratio(self, side: str, to: str) -> float:
        """How many times dearer ``side`` is than ``to``: the median over the rounds."""
        return statistics.median(self.ratios(side, to))

    def best_ratio(self, side: str, to: str) -> float:
        """Fastest round of ``side`` ÷ fastest of ``to``: noise only adds, so both are nearly free of it."""
        return min(self.secs[side]) / min(self.secs[to])

    def dearer(self, side: str, to: str) -> bool:
        """Whether ``side`` costs more than ``to`` beyond noise; the median and the best must agree."""
        return min(self.ratio(side, to), self.best_ratio(side, to)) > 1 + NOISE

    def error(self, side: str, to: str) -> float:
        """How far the median ratio may be off: its standard error, from the median distance of a round."""
        ratios, median = self.ratios(side, to), self.ratio(side, to)
        distance = statistics.median(abs(ratio - median) for ratio in ratios)
        # For a normal spread: 1.4826 turns that distance into a deviation, 1.2533 is the price of the median.
        return 1.4826 * 1.2533 * distance / math.sqrt(len(ratios))


def one_thread() -> None:
    """One torch thread, here and in subprocesses: a second one would share the core that the peer needs."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


def compare(sides: Mapping[str, Side], effort: Effort = FULL) -> Comparison:
    """Warm up every side, then time them all in turns for as many rounds as the effort allows."""
    calls = {name: _calls_per_sample(side, effort) for name, side in sides.items()}
    first, round_secs = _timed_round(sides, calls, list(sides))
    rounds = max(effort.min_rounds, min(effort.max_rounds, int(effort.budget_secs / round_secs)))
    samples: dict[str, list[float]] = {name: [first[name]] for name in sides}
    for number in range(1, rounds):
        for name, secs in _timed_round(sides, calls, in_turn(list(sides), number))[0].items():
            samples[name].append(secs)
    return Comparison({name: tuple(values) for name, values in samples.items()})


def runnable(sides: Mapping[str, Side]) -> tuple[dict[str, Side], dict[str, str]]:
    """The sides that work, and why the others do not: one that raises must not lose the rest."""
    working: dict[str, Side] = {}
    failures: dict[str, str] = {}
    for name, side in sides.items():
        try:
            side()
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            working[name] = side
    return working, failures


def sample(side: Side, calls: int) -> float:
    """Mean CPU seconds of one call, over ``calls`` calls."""
    gc.collect()
    total = 0.0
    for _ in range(calls):
        start = time.process_time()
        result = side()
        del result  # on the clock: what a call keeps must be let go as well, as a plain forward lets go of its own
        total += time.process_time() - start
    return total / calls


def _timed_round(
    sides: Mapping[str, Side], calls: Mapping[str, int], order: list[str]
) -> tuple[dict[str, float], float]:
    start = time.process_time()
    secs = {name: sample(sides[name], calls[name]) for name in order}
    return secs, time.process_time() - start


def _calls_per_sample(side: Side, effort: Effort) -> int:
    """Warm the side up and find how many calls fill a sample."""
    if sample(side, 1) > 50 * effort.sample_secs:
        return 1  # slow even with the cost of its first use: a second warm-up call would tell nothing new
    return max(1, math.ceil(effort.sample_secs / max(sample(side, 1), 1e-7)))


def in_turn(names: list[str], number: int) -> list[str]:
    """Rotated by one each round and turned round after a full turn, so that neighbours change."""
    turn, shift = divmod(number, len(names))
    rotated = names[shift:] + names[:shift]
    return rotated[::-1] if turn % 2 else rotated

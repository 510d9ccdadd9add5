"""What is usual for a series of numbers, and when one of them is not."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from dataclasses import dataclass, fields

from endoscope.errors import BadArgument
from endoscope.recording.arguments import nonnegative, whole

#: So many steps of one unusual stretch are kept. The first shows the cause, the next two where it leads.
STEPS_OF_A_STRETCH = 3
_MAD_TO_STD = 1.4826  # of a normal distribution


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on a value is unusual. Median and deviation are robust: a spike hardly moves them."""

    window_steps: int = 100  # what is remembered
    warmup_steps: int = 20  # nothing is unusual before so many steps are
    deviations: float = 6.0  # so many standard deviations above the median,
    relative_floor: float = 0.2  # and so many times the median above it,
    absolute_floor: float = 1e-6  # and so much above it

    def __post_init__(self) -> None:
        whole("window_steps", self.window_steps, 3)
        whole("warmup_steps", self.warmup_steps, 1)
        for name in ("deviations", "relative_floor", "absolute_floor"):
            nonnegative(name, getattr(self, name))
        if self.warmup_steps > self.window_steps:
            raise BadArgument(
                f"warmup_steps={self.warmup_steps} is more than window_steps={self.window_steps}, and no more steps "
                f"than those of the window are remembered. Use window_steps={self.warmup_steps} or more."
            )

    def exceeded(self, value: float, past: Window) -> bool:
        """Whether the value lies far above the earlier ones, or is not finite."""
        if not math.isfinite(value):
            return True
        if len(past) < self.warmup_steps:
            return False
        median = past.median()
        rise = value - median
        # The floors first: they cost less, and settle nearly every step.
        if rise <= self.absolute_floor or rise <= self.relative_floor * abs(median):
            return False
        return rise > self.deviations * _MAD_TO_STD * past.deviation()

    def __str__(self) -> str:
        """Only what differs from the defaults, as one would type it."""
        named = [(field.name, field.default, getattr(self, field.name)) for field in fields(self)]
        return "".join(f", {name}={value!r}" for name, default, value in named if value != default)


class Window:
    """The last values of a series, with their median and median absolute deviation at hand."""

    def __init__(self, size: int) -> None:
        self._order: deque[float] = deque(maxlen=size)
        self._sorted: list[float] = []

    def __len__(self) -> int:
        return len(self._order)

    def add(self, value: float) -> None:
        """Remember a finite value; the oldest makes room."""
        if len(self._order) == self._order.maxlen:
            del self._sorted[bisect_left(self._sorted, self._order[0])]
        self._order.append(value)
        insort(self._sorted, value)

    def median(self) -> float:
        return _middle(self._sorted)

    def deviation(self) -> float:
        """The median distance from the median."""
        median = self.median()
        split = bisect_right(self._sorted, median)
        below = [median - value for value in self._sorted[:split]]
        above = [value - median for value in self._sorted[split:]]
        return _middle(sorted(below + above))


def _middle(values: list[float]) -> float:
    half = len(values) // 2
    if len(values) % 2:
        return values[half]
    low, high = values[half - 1], values[half]
    return low + (high - low) / 2  # their sum could be too large


class Stretch:
    """Counts unusual steps that follow each other."""

    def __init__(self) -> None:
        self.steps = 0

    def keeps(self, unusual: bool) -> bool:
        """Whether this step is one of the first of an unusual stretch."""
        self.steps = self.steps + 1 if unusual else 0
        return 0 < self.steps <= STEPS_OF_A_STRETCH

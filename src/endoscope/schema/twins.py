"""The slow twin of every statistic: the same number once more, in plain Python.

Counts are given all elements, everything else the finite ones, of which there is at least one. The tests hold each
statistic against its twin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Twin = Callable[[Sequence[float]], float]


def count(numbers: Sequence[float]) -> int:
    return len(numbers)


def zeros(numbers: Sequence[float]) -> int:
    return sum(x == 0 for x in numbers)


def nans(numbers: Sequence[float]) -> int:
    return sum(math.isnan(x) for x in numbers)


def infs(numbers: Sequence[float]) -> int:
    return sum(math.isinf(x) for x in numbers)


def neg_infs(numbers: Sequence[float]) -> int:
    return sum(x == -math.inf for x in numbers)


def abs_max(numbers: Sequence[float]) -> float:
    return max(abs(x) for x in numbers)


def mean(numbers: Sequence[float]) -> float:
    unit = abs_max(numbers) or 1.0  # numbers are measured in this, so that no sum or square overflows or vanishes
    return unit * (math.fsum(x / unit for x in numbers) / len(numbers))


def std(numbers: Sequence[float]) -> float:
    unit = abs_max(numbers) or 1.0
    middle = math.fsum(x / unit for x in numbers) / len(numbers)
    return unit * math.sqrt(math.fsum((x / unit - middle) ** 2 for x in numbers) / len(numbers))


def abs_mean(numbers: Sequence[float]) -> float:
    return mean([abs(x) for x in numbers])


def norm(numbers: Sequence[float]) -> float:
    unit = abs_max(numbers) or 1.0
    return unit * math.sqrt(math.fsum((x / unit) ** 2 for x in numbers))


def quantile(numbers: Sequence[float], level: float) -> float:
    """numpy's linear definition."""
    ordered = sorted(numbers)
    position = level * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    part = position - below
    return ordered[below] * (1 - part) + ordered[above] * part

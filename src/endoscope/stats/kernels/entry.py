"""The one function that Python calls."""

from __future__ import annotations

from endoscope.stats.kernels.machine import get_i64, kernel
from endoscope.stats.kernels.request import measure


@kernel("void(i8, i8, i8)")
def measure_all(job: int, order: int, count: int) -> None:
    """Measure the requests whose numbers are listed at `order`."""
    for i in range(count):
        measure(job, get_i64(order, i))

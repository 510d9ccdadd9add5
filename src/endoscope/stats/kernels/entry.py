"""The one function that Python calls."""

from __future__ import annotations

from endoscope.stats import layout as at
from endoscope.stats.kernels.copy import copy_all
from endoscope.stats.kernels.crc import fold_message
from endoscope.stats.kernels.machine import get_i64, kernel
from endoscope.stats.kernels.request import measure


@kernel("void(i8, i8, i8)")
def begin(job: int, table: int, count: int) -> None:
    """Measure the requests whose numbers are listed in a table; or do something else with a table."""
    if job == at.COPY:
        copy_all(table, count)
    elif job == at.FOLD:
        fold_message(table)
    else:
        for i in range(count):
            measure(job, get_i64(table, i))

"""Requests as tables for the kernels, measured by one thread or two."""

from __future__ import annotations

import threading
from array import array
from typing import TYPE_CHECKING

import numpy as np

from endoscope.stats import layout as at

if TYPE_CHECKING:
    from endoscope.stats.answers import Answers
    from endoscope.stats.compiled import Kernels
    from endoscope.stats.elements import Element
    from endoscope.stats.geometry import Arrangement

WORTH_A_THREAD = 400_000  # elements; below that, starting a thread costs more than it saves
SMALLEST_LOAD = 4_000  # elements; a smaller request costs about as much


class Plan:
    """What is to be measured where, for one call of the kernels."""

    def __init__(self) -> None:
        self.rows: list[int] = []  # numbers of the requests to measure
        self.loads: list[int] = []  # how much work each of them is
        self._table = array("q")
        self._dims = array("q")

    def skip(self) -> None:
        """The next request is not for the kernels."""
        self._table.extend((0,) * at.REQUEST_FIELDS)

    def add(self, address: int, element: Element, how: Arrangement, sample_row: int, unit_at: int) -> None:
        """The next request is for the kernels."""
        dims_at = len(self._dims) // 2
        for dim in how.dims:
            self._dims.extend(dim)
        self.rows.append(len(self._table) // at.REQUEST_FIELDS)
        self.loads.append(how.samples * how.sample_size + SMALLEST_LOAD)
        self._table.extend(
            (
                address, element.code, element.lookup, element.is_integer,
                how.samples, how.sample_stride, how.sample_size, len(how.dims), dims_at,
                sample_row, how.unit_kind, how.units, unit_at,
            )
        )  # fmt: skip

    def run(self, kernels: Kernels, answers: Answers, threads: int) -> None:
        """Measure everything."""
        shares = self._shares() if threads > 1 else [self.rows]
        job = self._job(answers)
        helpers = [threading.Thread(target=_work, args=(kernels, job, share)) for share in shares[1:]]
        for helper in helpers:
            helper.start()
        _work(kernels, job, shares[0])
        for helper in helpers:
            helper.join()

    def _shares(self) -> list[list[int]]:
        """The requests in two lists of about the same load, or in one if there is little to do."""
        if sum(self.loads) < WORTH_A_THREAD:
            return [self.rows]
        shares: list[list[int]] = [[], []]
        totals = [0, 0]
        for load, row in sorted(zip(self.loads, self.rows, strict=True), reverse=True):
            lighter = totals[0] > totals[1]
            shares[lighter].append(row)
            totals[lighter] += load
        return [share for share in shares if share]

    def _job(self, answers: Answers) -> list[int]:
        """The fields of a job, up to the scratch memory that each thread has for itself."""
        return [
            self._table.buffer_info()[0],
            self._dims.buffer_info()[0],
            len(self._table) // at.REQUEST_FIELDS,
            answers.numbers.ctypes.data,
            answers.counts.ctypes.data,
            answers.histograms.ctypes.data,
            answers.samples.ctypes.data,
            answers.samples.shape[1],
            answers.units.ctypes.data,
            answers.units.shape[1],
        ]


def _work(kernels: Kernels, job: list[int], rows: list[int]) -> None:
    scratch = _Scratch.take()
    table, order = array("q", job + scratch.addresses), array("q", rows)
    kernels.measure_all(table.buffer_info()[0], order.buffer_info()[0], len(rows))
    scratch.give_back()


class _Scratch:
    """Memory for one running kernel; kept for the next, because all counters in it are zero again."""

    _idle: list[_Scratch] = []  # noqa: RUF012 (shared on purpose; append and pop are atomic)

    def __init__(self) -> None:
        self._memory = [np.zeros(size, dtype) for dtype, size in at.SCRATCH.values()]
        self.addresses = [memory.ctypes.data for memory in self._memory]

    @classmethod
    def take(cls) -> _Scratch:
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        self._idle.append(self)

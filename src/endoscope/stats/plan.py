"""Requests as tables for the kernels, measured by one thread or two."""

from __future__ import annotations

import threading
from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from endoscope.stats import layout as at

if TYPE_CHECKING:
    from endoscope.stats.answers import Answers
    from endoscope.stats.compiled import Kernels
    from endoscope.stats.elements import Element
    from endoscope.stats.geometry import Arrangement

WORTH_A_THREAD = 400_000  # elements; below that, starting a thread costs more than it saves
SMALLEST_LOAD = 4_000  # elements; a smaller request costs about as much


class Reading(NamedTuple):
    """How tensors of one shape and type are read: made once, then used for all of them."""

    how: Arrangement
    samples: int  # how many are measured one by one
    note: str  # what is left out, "" if nothing
    load: int
    fields: tuple[int, ...]  # of the table of requests, from CODE on
    dims: tuple[int, ...]


def reading_of(element: Element, how: Arrangement, samples: int, note: str) -> Reading:
    """Everything about a request but its address."""
    fields = (
        element.code, element.lookup, int(element.is_integer),
        how.samples, how.sample_stride, how.sample_size, len(how.dims), how.unit_kind, how.units,
    )  # fmt: skip
    dims = tuple(number for dim in how.dims for number in dim)
    return Reading(how, samples, note, how.samples * how.sample_size + SMALLEST_LOAD, fields, dims)


class Plan:
    """What is to be measured where, for one call of the kernels."""

    def __init__(self) -> None:
        self._rows: list[int] = []  # numbers of the requests that are for the kernels
        self._loads: list[int] = []
        self._fields: list[int] = []
        self._table = array("q")
        self._dims = array("q")
        self._count = 0

    def skip(self) -> None:
        """The next request is not for the kernels."""
        self._fields += (0,) * at.REQUEST_FIELDS
        self._count += 1

    def add(self, address: int, minus: int, reading: Reading, sample_row: int, unit_at: int) -> None:
        """The next request is for the kernels."""
        self._fields += (address, minus, sample_row, unit_at, len(self._dims) // 2, *reading.fields)
        if reading.dims:
            self._dims.extend(reading.dims)
        self._rows.append(self._count)
        self._loads.append(reading.load)
        self._count += 1

    def run(self, kernels: Kernels, answers: Answers, threads: int, tensors: object) -> None:
        """Measure everything.

        A second thread holds on to the tensors, this plan and the answers: it knows only their addresses, and may
        outlive this call when an interrupt ends it.
        """
        if not self._rows:
            return
        self._table = array("q", self._fields)
        job = self._job(answers)
        first, second = self._shares() if threads > 1 else (self._rows, [])
        helper = _started(kernels, job, second, (tensors, self, answers)) if second else None
        _work(kernels, job, first)
        if helper:
            helper.join()
        else:
            _work(kernels, job, second)

    def _shares(self) -> tuple[list[int], list[int]]:
        """The requests in two lists of about the same load; the second is empty if there is little to do."""
        if sum(self._loads) < WORTH_A_THREAD:
            return self._rows, []
        shares: tuple[list[int], list[int]] = ([], [])
        totals = [0, 0]
        for load, row in sorted(zip(self._loads, self._rows, strict=True), reverse=True):
            lighter = totals[0] > totals[1]
            shares[lighter].append(row)
            totals[lighter] += load
        return shares

    def _job(self, answers: Answers) -> list[int]:
        """The fields of a job, up to the scratch memory that each thread has for itself."""
        return [
            self._table.buffer_info()[0],
            self._dims.buffer_info()[0],
            self._count,
            answers.numbers.ctypes.data,
            answers.counts.ctypes.data,
            answers.histograms.ctypes.data,
            answers.histogram_ends.ctypes.data,
            answers.samples.ctypes.data,
            answers.samples.shape[1],
            answers.units.ctypes.data,
            answers.units.shape[1],
        ]


def _started(kernels: Kernels, job: list[int], rows: list[int], keep: object) -> threading.Thread | None:
    """A thread that measures some requests; None where there can be no more threads."""
    helper = threading.Thread(target=_work, args=(kernels, job, rows, keep), daemon=True)
    try:
        helper.start()
    except RuntimeError:  # too many of them, or the interpreter is about to end
        return None
    return helper


def _work(kernels: Kernels, job: list[int], rows: list[int], keep: object = None) -> None:
    if not rows:
        return
    scratch = Scratch.take()
    table, order = array("q", job + scratch.addresses), array("q", rows)
    kernels.measure_all(table.buffer_info()[0], order.buffer_info()[0], len(rows))
    scratch.give_back()


class Scratch:
    """Memory for one running kernel; kept for the next, because all counters in it are zero again."""

    _idle: list[Scratch] = []  # noqa: RUF012 (shared on purpose; append and pop are atomic)

    def __init__(self) -> None:
        self._memory = [np.zeros(size, dtype) for dtype, size in at.SCRATCH.values()]
        self.counters = self._memory[:2]  # zero between two jobs
        self.addresses = [memory.ctypes.data for memory in self._memory]

    @classmethod
    def take(cls) -> Scratch:
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        self._idle.append(self)

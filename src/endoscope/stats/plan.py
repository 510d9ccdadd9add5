"""Requests as tables for the kernels."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, NUMBERS, QUANTILES, SAMPLE, UNIT
from endoscope.stats import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from endoscope.stats.elements import Element
    from endoscope.stats.geometry import Arrangement

WORTH_A_THREAD = 400_000  # elements; below that, starting a thread costs more than it saves
MOST_PLANS = 64
SMALLEST_LOAD = 4_000  # elements; a smaller request costs about as much


class Reading(NamedTuple):
    """How tensors of one shape and type are read: made once, then used for all of them."""

    how: Arrangement
    strides: tuple[int, ...] | None  # None: contiguous, and the batch dimension is the first if there is one
    samples: int  # how many are measured one by one
    note: str  # what is left out, "" if nothing
    load: int
    fields: tuple[int, ...]  # of the table of requests, from CODE on
    dims: tuple[int, ...]


def reading_of(element: Element, how: Arrangement, strides: tuple[int, ...] | None, samples: int, note: str) -> Reading:
    """Everything about a request but its address."""
    fields = (
        element.code, element.lookup, int(element.is_integer),
        how.samples, how.sample_stride, how.sample_size, len(how.dims), how.unit_kind, how.units,
    )  # fmt: skip
    dims = tuple(number for dim in how.dims for number in dim)
    return Reading(how, strides, samples, note, how.samples * how.sample_size + SMALLEST_LOAD, fields, dims)


class Room(NamedTuple):
    """How the answers to some requests lie in one piece of memory."""

    size: int  # bytes
    parts: list[tuple[np.dtype[Any], tuple[int, int], int]]  # type, shape and place of each; see `Answers`

    @classmethod
    def for_answers(cls, requests: int, samples: int, units: int) -> Room:
        shapes: list[tuple[Any, tuple[int, int]]] = [
            (np.float64, (len(NUMBERS) + len(QUANTILES), requests)),
            (np.int64, (len(COUNTS), requests)),
            (np.int64, (requests, 2)),
            (np.uint32, (requests, HISTOGRAM_BINS)),
            (np.float32, (len(SAMPLE), samples)),
            (np.float32, (len(UNIT), units)),
        ]
        types = [(np.dtype(kind), shape) for kind, shape in shapes]
        *places, size = accumulate([kind.itemsize * math.prod(shape) for kind, shape in types], initial=0)
        return cls(size, [(kind, shape, place) for (kind, shape), place in zip(types, places, strict=True)])


class Plan:
    """Which requests are for the kernels, and where their answers go: everything but the addresses of the tensors.

    `readings` has one entry for each request, None for those that cannot be measured. `elsewhere` are the requests
    that are not for the kernels, although they can be measured; `copied` tells whose answer is that of another one, and
    `subtracted` from which requests the kernels subtract something. A plan `is_direct` if the kernels measure all of
    it, and `is_full` if they have something to say about each sample and unit: nothing is empty.
    """

    def __init__(
        self,
        readings: Sequence[Reading | None],
        elsewhere: Collection[int] = (),
        copied: tuple[tuple[int, int], ...] = (),
        subtracted: tuple[int, ...] = (),
    ) -> None:
        self.readings = readings
        self.elsewhere = tuple(elsewhere)
        self.copied = copied
        self.subtracted = frozenset(subtracted)
        self.is_direct = not elsewhere and None not in readings
        self.is_full = self.is_direct and all(reading and reading.load > SMALLEST_LOAD for reading in readings)
        self.notes = [(number, reading.note) for number, reading in enumerate(readings) if reading and reading.note]
        self.sample_counts = [reading.samples if reading else 0 for reading in readings]
        self.sample_starts = [0, *accumulate(self.sample_counts)]
        self.unit_starts = [0, *accumulate([reading.how.units if reading else 0 for reading in readings])]
        self.answers = Room.for_answers(len(readings), self.sample_starts[-1], self.unit_starts[-1])
        self.unit_offsets = np.array(self.unit_starts, np.int32)
        self.sample_request = np.repeat(np.arange(len(readings), dtype=np.int32), self.sample_counts)
        rows = np.arange(self.sample_starts[-1], dtype=np.int32)
        self.sample_index = rows - np.array(self.sample_starts, np.int32)[self.sample_request]
        self.unit_shape = [reading.how.unit_shape if reading else () for reading in readings]
        self.reordered = [number for number, reading in enumerate(readings) if reading and reading.how.unit_order]
        for shared in (self.unit_offsets, self.sample_request, self.sample_index):  # by all who use this plan
            shared.flags.writeable = False
        not_here = {*elsewhere, *[number for number, _ in copied]}
        is_here = [found is not None and number not in not_here for number, found in enumerate(readings)]
        self._rows = array("q", [number for number, here in enumerate(is_here) if here])
        self.rows_before = [0, *accumulate(is_here)]  # for each request, how many rows of the kernels are before it
        self._dims = array("q")
        self._fields = array("q", bytes(8 * at.REQUEST_FIELDS * len(readings)))
        for number in self._rows:
            self._add(number)
        self.tables = [self._fields.buffer_info()[0], self._dims.buffer_info()[0], len(readings)]  # first of a job
        self.rows_at = self._rows.buffer_info()[0]
        self._shares: dict[tuple[int, int], tuple[array[int], array[int]]] = {}

    def _add(self, number: int) -> None:
        reading = self.readings[number]
        assert reading is not None
        row = self.sample_starts[number] if reading.samples else -1
        fields = array("q", (number, row, self.unit_starts[number], len(self._dims) // 2, *reading.fields))
        self._fields[number * at.REQUEST_FIELDS : (number + 1) * at.REQUEST_FIELDS] = fields
        self._dims.extend(reading.dims)

    def shares(self, first: int, last: int) -> tuple[array[int], array[int]]:
        """Some rows in two lists of about the same load; the second is empty if there is little to do."""
        found = self._shares.get((first, last))
        if found is None:
            found = self._shares[first, last] = self._shared(self._rows[first:last])
        return found

    def _shared(self, rows: array[int]) -> tuple[array[int], array[int]]:
        loads = [(reading.load, row) for row in rows if (reading := self.readings[row])]
        shares = array("q"), array("q")
        if sum(load for load, _ in loads) < WORTH_A_THREAD:
            return rows, shares[1]
        totals = [0, 0]
        for load, row in sorted(loads, reverse=True):
            lighter = totals[0] > totals[1]
            shares[lighter].append(row)
            totals[lighter] += load
        return shares

    def first(self, count: int) -> Plan:
        """The plan for the first requests only."""
        elsewhere = tuple([number for number in self.elsewhere if number < count])
        copied = tuple([(number, other) for number, other in self.copied if number < count])
        subtracted = tuple([number for number in sorted(self.subtracted) if number < count])
        return plan_of(self.readings[:count], elsewhere, copied, subtracted)


_plans: dict[Any, Plan] = {}  # identities of the readings, and what is special -> the plan, which has those readings


def plan_of(
    readings: Sequence[Reading | None],
    elsewhere: tuple[int, ...] = (),
    copied: tuple[tuple[int, int], ...] = (),
    subtracted: tuple[int, ...] = (),
) -> Plan:
    """The plan for these readings: most steps ask for the same as the one before."""
    key = (*map(id, readings), elsewhere, copied, subtracted)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = Plan(readings, elsewhere, copied, subtracted)
    return plan


def together(plans: Sequence[Plan]) -> Plan:
    """One plan for the requests of all."""
    if len(plans) == 1:
        return plans[0]
    readings: list[Reading | None] = []
    elsewhere: list[int] = []
    copied: list[tuple[int, int]] = []
    subtracted: list[int] = []
    for plan in plans:
        before = len(readings)
        readings += plan.readings
        elsewhere += [before + number for number in plan.elsewhere]
        copied += [(before + number, before + other) for number, other in plan.copied]
        subtracted += [before + number for number in sorted(plan.subtracted)]
    return plan_of(readings, tuple(elsewhere), tuple(copied), tuple(subtracted))


def address_of(memory: NDArray[Any]) -> int:
    address: int = memory.__array_interface__["data"][0]
    return address


class Scratch:
    """Memory for one running kernel; kept for the next, because all counters in it are zero again."""

    _idle: list[Scratch] = []  # noqa: RUF012 (shared on purpose; append and pop are atomic)

    def __init__(self) -> None:
        self._memory = [np.zeros(size, dtype) for dtype, size in at.SCRATCH.values()]
        self.counters = self._memory[:2]  # zero between two jobs
        self.addresses = [address_of(memory) for memory in self._memory]

    @classmethod
    def take(cls) -> Scratch:
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        self._idle.append(self)

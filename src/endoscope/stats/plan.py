"""Requests as tables for the kernels."""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from endoscope.schema.stats import HISTOGRAM_BINS, SAMPLE, SWEPT, UNIT
from endoscope.stats.kernels import Source

if TYPE_CHECKING:
    from endoscope.stats.elements import Element
    from endoscope.stats.geometry import Arrangement

WORTH_A_THREAD = 400_000  # elements; below that, starting a thread costs more than it saves
MOST_PLANS = 64
SMALLEST_LOAD = 4_000  # elements; a smaller request costs about as much


class Reading(NamedTuple):
    """How tensors of one shape and type are read: made once, then used for all of them."""

    how: Arrangement
    samples: int  # how many are measured one by one
    note: str  # what is left out, "" if nothing
    load: int
    fields: tuple[int, ...]  # of a `Source`, from the third on
    dims: array[int]  # the kernels know its address


def reading_of(element: Element, how: Arrangement, samples: int, note: str) -> Reading:
    """Everything about a request but its address."""
    dims = array("q", [number for dim in how.dims for number in dim])
    fields = (
        *element, how.samples, how.sample_stride, how.sample_size, dims.buffer_info()[0], len(how.dims),
        how.unit_kind, how.units,
    )  # fmt: skip
    return Reading(how, samples, note, how.samples * how.sample_size + SMALLEST_LOAD, fields, dims)


class Plan:
    """Which requests are for the kernels, and where all answers go: everything but the addresses of the tensors.

    `readings` has one entry for each request, None for those that cannot be measured. `elsewhere` are the requests that
    are not for the kernels, although they can be measured; `copied` tells whose answer is that of another one.
    """

    def __init__(
        self, readings: Sequence[Reading | None], elsewhere: tuple[int, ...], copied: tuple[tuple[int, int], ...]
    ) -> None:
        self.readings, self.elsewhere, self.copied = readings, elsewhere, copied
        self.sample_counts = [reading.samples if reading else 0 for reading in readings]
        self.sample_starts = [0, *accumulate(self.sample_counts)]
        self.unit_starts = [0, *accumulate([reading.how.units if reading else 0 for reading in readings])]
        self.unit_offsets = np.array(self.unit_starts, np.int32)
        self.sample_request = np.repeat(np.arange(len(readings), dtype=np.int32), self.sample_counts)
        rows = np.arange(self.sample_starts[-1], dtype=np.int32)
        self.sample_index = rows - np.array(self.sample_starts, np.int32)[self.sample_request]
        self.unit_shape = [reading.how.unit_shape if reading else () for reading in readings]
        for shared in (self.unit_offsets, self.sample_request, self.sample_index):  # by all who use this plan
            shared.flags.writeable = False
        self.reordered = [number for number, reading in enumerate(readings) if reading and reading.how.unit_order]
        shapes: list[tuple[Any, tuple[int, int]]] = [
            (np.float64, (len(SWEPT), len(readings))), (np.int64, (len(readings), 2)),
            (np.uint32, (len(readings), HISTOGRAM_BINS)),
            (np.float32, (len(SAMPLE), self.sample_starts[-1])), (np.float32, (len(UNIT), self.unit_starts[-1])),
        ]  # fmt: skip
        types = [(np.dtype(kind), shape) for kind, shape in shapes]
        *places, self.answer_bytes = accumulate([kind.itemsize * math.prod(shape) for kind, shape in types], initial=0)
        #: Type, shape and place of each table of `Answers` in its memory.
        self.answer_tables = [(kind, shape, place) for (kind, shape), place in zip(types, places, strict=True)]
        others = {*elsewhere, *(number for number, _ in copied)}
        self.rows = array("q", [n for n, reading in enumerate(readings) if reading and n not in others])
        self.unwritten = sorted({*range(len(readings))}.difference(self.rows))  # by the kernels
        self._sources = (Source * len(readings))()
        for number in self.rows:
            reading = readings[number]
            assert reading is not None
            first_sample = self.sample_starts[number] if reading.samples else -1
            self._sources[number] = Source(first_sample, self.unit_starts[number], *reading.fields)
        self.sources_at = ctypes.addressof(self._sources)
        self._shares: tuple[array[int], array[int] | None] | None = None

    def shares(self) -> tuple[array[int], array[int] | None]:
        """The rows in two lists of about the same load; the second is None if there is little to do."""
        if self._shares is None:
            loads = sorted([(reading.load, row) for row in self.rows if (reading := self.readings[row])], reverse=True)
            rows = [row for _, row in loads]
            self._shares = self.rows, None
            if sum(load for load, _ in loads) >= WORTH_A_THREAD:  # the largest one and the next two, in turns
                first, second = sorted(rows[::4] + rows[3::4]), sorted(rows[1::4] + rows[2::4])
                self._shares = array("q", first), array("q", second)
        return self._shares


_plans: dict[Any, Plan] = {}  # identities of the readings, and what is special -> the plan, which has those readings


def plan_of(
    readings: Sequence[Reading | None], elsewhere: tuple[int, ...] = (), copied: tuple[tuple[int, int], ...] = ()
) -> Plan:
    """The plan for these readings: most steps ask for the same as the one before."""
    key = (*map(id, readings), elsewhere, copied)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = Plan(readings, elsewhere, copied)
    return plan


def together(plans: Sequence[Plan]) -> Plan:
    """One plan for the requests of all."""
    if len(plans) == 1:
        return plans[0]
    readings: list[Reading | None] = []
    elsewhere: list[int] = []
    copied: list[tuple[int, int]] = []
    for plan in plans:
        before = len(readings)
        readings += plan.readings
        elsewhere += [before + number for number in plan.elsewhere]
        copied += [(before + number, before + other) for number, other in plan.copied]
    return plan_of(readings, tuple(elsewhere), tuple(copied))

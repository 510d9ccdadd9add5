"""What came in earlier steps that were measured while they ran, and the rows that it got.

Most steps run like others. What a step shares with an earlier one is found by comparing what came, in order; nothing
about it is then worked out again, and all of it is measured by one plan: see `Meter`.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from endoscope.recording.batches import Batches
from endoscope.stats import Plan

SHARED_FROM = 50_000  # elements; a larger tensor with several names is measured once
MOST_COURSES = 32  # kept for steps to come

#: Shape and type of a tensor.
About = tuple[tuple[int, ...], torch.dtype]
#: The same, and the strides. No type: the tensor was overwritten before it could be measured; no strides: it has none.
Came = tuple[tuple[int, ...], torch.dtype | None, tuple[int, ...] | None]
#: What came: slot, whose it is ("value" or the gradient of a loss), what the user says of its batch dimension, and the
#: module call that it was computed in.
Arrival = tuple[int, str, int | None, int]
#: A slot, and whose -> the batch dimension and the row of each of its names.
Rows = dict[tuple[int, str], list[tuple[int | None, int]]]


class Course:
    """Arrivals of a step in order, and their rows."""

    __slots__ = ("_dims", "arrivals", "by_one_thread", "came", "ends", "plan", "rows", "sizes")

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.came: list[Came] = []  # one for each arrival, like the next
        self.ends: list[int] = []  # the row behind its own
        #: Row by row: number of the arrival, batch dimension, and the earlier row that is the same, if there is one.
        self.rows: list[tuple[int, int | None, int | None]] = []
        self.sizes: Any = None  # of the batches
        self.plan: Plan | None = None  # by which all rows of such a step were measured, also those of its end
        self.by_one_thread = False  # that is how the latest of them was measured
        self._dims: dict[int, list[int | None]] = {}  # slot -> batch dimension, once for each of its names

    def add(self, arrivals: list[Arrival], came: list[Came], batches: Batches) -> None:
        """What has come is worked out. Only rows that are added together can be the same."""
        first_row = len(self.rows)
        for arrival, about in zip(arrivals, came, strict=True):
            self._add(arrival, about, batches, first_row)

    def _add(self, arrival: Arrival, came: Came, batches: Batches, first_row: int) -> None:
        (slot, of, said, call), (shape, dtype, _) = arrival, came
        number, dims = len(self.arrivals), self._dims.setdefault(slot, [])
        self.arrivals.append(arrival)
        self.came.append(came)
        if of == "value":
            dim = batches.dim_of(shape, said, call)
            dims.append(dim)
            dims = [dim]
        for dim in dims if dtype is not None else ():
            same = self._same(number, dim, first_row) if math.prod(shape) >= SHARED_FROM else None
            self.rows.append((number, dim, same))
        self.ends.append(len(self.rows))

    def _same(self, number: int, dim: int | None, first_row: int) -> int | None:
        """The first of the latest rows that is of the same tensor."""
        place = self.arrivals[number][:2]
        for row, (other, batch_dim, _) in enumerate(self.rows[first_row:], first_row):
            if batch_dim == dim and self.arrivals[other][:2] == place:
                return row
        return None

    def until(self, count: int) -> Course:
        """The same up to some arrival, to go on otherwise."""
        course = Course()
        course.arrivals, course.came, course.ends = self.arrivals[:count], self.came[:count], self.ends[:count]
        course.rows = self.rows[: self.row_of(count)]
        for slot, of, *_ in course.arrivals:
            if of == "value":
                dims = course._dims.setdefault(slot, [])
                dims.append(self._dims[slot][len(dims)])
        return course

    def row_of(self, arrival: int) -> int:
        """The first row of an arrival, or the one behind the last."""
        return self.ends[arrival - 1] if arrival else 0

    def begins_with(self, arrivals: list[Arrival], came: list[Came], batches: Batches) -> bool:
        count = len(arrivals)
        return self.arrivals[:count] == arrivals and self.came[:count] == came and batches.begin_like(self.sizes)

    # ---- for steps that are looked at for the first time ------------------------------------------

    def rows_of_names(self) -> Rows:
        rows: Rows = {}
        for row, (number, dim, _) in enumerate(self.rows):
            rows.setdefault(self.arrivals[number][:2], []).append((dim, row))
        return rows

    def about(self) -> list[About]:
        """Row by row."""
        return [(shape, dtype) for shape, dtype, _ in (self.came[number] for number, _, _ in self.rows) if dtype]

    def shapes(self) -> dict[int, tuple[int, ...]]:
        """Slot -> shape of the value that was measured there."""
        told = zip(self.arrivals, self.came, strict=True)
        return {slot: shape for (slot, of, *_), (shape, dtype, _) in told if of == "value" and dtype is not None}


class Courses:
    """Those of earlier steps, the latest first."""

    def __init__(self) -> None:
        self.known: list[Course] = []

    def find(self, arrivals: list[Arrival], came: list[Came], batches: Batches) -> Course | None:
        """One that begins with what has come."""
        return next((course for course in self.known if course.begins_with(arrivals, came, batches)), None)

    def kept(self, course: Course, batches: Batches) -> Course:
        """An equal one if there is one already; it is the latest now."""
        sizes = batches.sizes()
        for known in self.known:
            if known is course or (known.sizes, known.arrivals, known.came) == (sizes, course.arrivals, course.came):
                course = known
                self.known.remove(known)
                break
        course.sizes = sizes
        self.known = [course, *self.known[: MOST_COURSES - 1]]
        return course

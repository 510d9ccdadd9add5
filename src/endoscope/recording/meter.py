"""Measures tensors while the step still runs, so that they need not be held until it ends.

    a module returns, a gradient arrives ─► arrival ─► a few megabytes together: a portion ─► stats.measure ─► let go

Numbers that were just computed are still in the cache of the processor, and memory that is let go can be used again for
what the step computes next: holding everything costs more than measuring it. But what is let go cannot be decided about
any more, so this is only for steps that will be recorded whatever happens in them; see `Capture.measure_early`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.regions import version_of
from endoscope.recording.batches import Batches
from endoscope.recording.hearing import StepRecorder
from endoscope.recording.raw import RawCollector
from endoscope.recording.structure import size_of
from endoscope.stats import Answers, Plan, Request, measure_part

SHARED_FROM = 50_000  # elements; a larger tensor with several names is measured once
TOGETHER = 16 * 2**20  # bytes that are measured at once: calls are dear, and more than this would leave the cache


#: Shape and type of a tensor.
About = tuple[tuple[int, ...], torch.dtype]
#: The same; no type where the tensor was overwritten before it could be measured.
Came = tuple[tuple[int, ...], torch.dtype | None]
#: What came: slot, whose it is ("value" or the gradient of a loss), what the user says of its batch dimension, and the
#: module call that it was computed in.
Arrival = tuple[int, str, int | None, int]
#: A slot, and whose -> the batch dimension and the row of each of its names.
Rows = dict[tuple[int, str], list[tuple[int | None, int]]]
MOST_PORTIONS = 128  # kept for steps to come


class Portion:
    """Rows of statistics that are measured together. Most steps are built like others, so theirs are kept."""

    __slots__ = ("about", "arrivals", "names", "plan", "rows", "shapes", "values")

    def __init__(self) -> None:
        #: Row by row: number of the arrival, batch dimension, and the earlier row that is the same, if there is one.
        self.arrivals: list[tuple[int, int | None, int | None]] = []
        self.about: list[About] = []  # row by row
        self.rows: Rows = {}
        self.names: dict[int, list[int | None]] = {}  # slot of a value -> batch dimension, once for each of its rows
        self.values: dict[int, tuple[int, ...]] = {}  # slot -> shape of its value
        self.shapes: list[Came] = []  # of each arrival
        self.plan: Plan | None = None  # by which it was measured


#: The portion before, sizes of batches, arrivals -> the portion that these make, if shapes are the same, too.
Portions = dict[tuple[Portion | None, Any, tuple[Arrival, ...]], Portion]


class Meter:
    """Rows of statistics in the order in which tensors came."""

    def __init__(self, recorder: StepRecorder, batches: Batches, raw: RawCollector, known: Portions) -> None:
        self._recorder = recorder
        self._batches = batches
        self._known = known
        self.raw = raw
        self.portions: list[Portion] = []
        self.parts: list[Answers] = []  # one for each portion but the last
        self.count = 0  # rows so far
        self.shapes: dict[int, tuple[int, ...]] = {}  # slot -> shape of what was measured there
        self.came_again: set[tuple[int, str]] = set()  # gradients of which only a part was measured
        self._gradients: set[tuple[int, str]] = set()
        self._names: dict[int, list[int | None]] = {}  # slot -> batch dimension of each of its rows
        self._slots: set[int] = set()  # values that are measured here
        self._came: list[Arrival] = []
        self._waiting: list[tuple[Tensor | None, int]] = []  # None: the value that the recorder holds; version
        self._bytes = 0
        self.last: list[Request] = []  # of a step that has ended: the rows behind `parts`, to be measured
        self.seconds = 0.0

    def value(self, slot: int, tensor: Tensor, said: int | None) -> None:
        """A value that the recorder holds has got a name."""
        self._slots.add(slot)
        call = self._recorder.nodes[self._recorder.slot_node[slot]][12]
        self._add((slot, "value", said, call), None, -1, tensor)

    def gradient(self, slot: int, of: str, gradient: Tensor) -> bool:
        """The whole gradient of a loss has arrived; False if it is to be held."""
        if slot not in self._slots:
            return False
        if (slot, of) in self._gradients:  # two passes without `retain_graph` meet in it: additions need no graph
            self.came_again.add((slot, of))
            return True
        self._gradients.add((slot, of))
        self._add((slot, of, None, -1), gradient, version_of(gradient), gradient)
        return True

    def has(self, slot: int) -> bool:
        return slot in self._slots

    def rows(self) -> Rows:
        """Of all portions."""
        rows: Rows = {}
        for portion in self.portions:
            for place, names in portion.rows.items():
                rows.setdefault(place, []).extend(names)
        return rows

    def about(self) -> list[About]:
        return [about for portion in self.portions for about in portion.about]

    def _add(self, arrival: Arrival, kept: Tensor | None, version: int, tensor: Tensor) -> None:
        self._came.append(arrival)
        self._waiting.append((kept, version))
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes >= TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Measure what waits, and let go of it."""
        started, first = time.perf_counter(), self.count
        requests = self._numbered()
        if requests:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                portion = self.portions[-1]
                answers = measure_and_keep(requests, self.raw, first, portion.plan)
                portion.plan = answers.plan
                self.parts.append(answers)
        self.seconds += time.perf_counter() - started

    def end(self) -> None:
        """The step has ended. What still waits is measured together with all the rest: calls are dear."""
        self.last = self._numbered()

    def _numbered(self) -> list[Request]:
        """What waits gets its rows and is let go of, but for what is to be measured now."""
        came, waiting = self._came, self._waiting
        self._came, self._waiting, self._bytes = [], [], 0
        with torch.no_grad(), torch._C.DisableTorchFunction():
            tensors: list[Tensor] = []
            shapes: list[Came] = []
            for (slot, *_), (gradient, version) in zip(came, waiting, strict=True):
                if gradient is None:
                    tensor = self._recorder.kept[slot]
                    is_there = self._recorder.is_unchanged(slot, tensor)
                else:
                    tensor = gradient
                    is_there = version_of(gradient) == version
                tensors.append(tensor)
                shapes.append((size_of(tensor), tensor.dtype if is_there else None))
        key = (self.portions[-1] if self.portions else None, self._batches.sizes(), tuple(came))
        portion = self._known.get(key)
        if portion is None or portion.shapes != shapes:
            portion = self._worked_out(came, shapes)
            if len(self._known) >= MOST_PORTIONS:
                self._known.clear()
            self._known[key] = portion
        self.portions.append(portion)
        self.count += len(portion.about)
        self._names.update(portion.names)
        self.shapes.update(portion.values)
        for slot, of, *_ in came:
            if of == "value":
                self._recorder.kept.pop(slot, None)
                self._recorder.kept_versions.pop(slot, None)
        return [Request(tensors[number], dim, same_as=other) for number, dim, other in portion.arrivals]

    def _worked_out(self, came: list[Arrival], shapes: list[Came]) -> Portion:
        """Rows of tensors that came in an order that was not seen before."""
        portion = Portion()
        portion.shapes = shapes
        for number, ((slot, of, said, call), (shape, dtype)) in enumerate(zip(came, shapes, strict=True)):
            dims = portion.names.get(slot) or self._names.get(slot) or []
            if of == "value":
                dim = self._batches.dim_of(shape, said, call)
                portion.names[slot] = [*dims, dim]
                dims = [dim]
            if dtype is None:
                continue
            if of == "value":
                portion.values[slot] = shape
            for dim in dims:
                names = portion.rows.setdefault((slot, of), [])
                same = [row - self.count for other, row in names if other == dim and math.prod(shape) >= SHARED_FROM]
                names.append((dim, self.count + len(portion.about)))
                portion.about.append((shape, dtype))
                portion.arrivals.append((number, dim, same[0] if same else None))
        return portion


def measure_and_keep(requests: Sequence[Request], raw: RawCollector, first: int, like: Plan | None) -> Answers:
    """Statistics of tensors, and raw values of those that could be measured; `first` is the row of the first one.

    `like` is the plan by which tensors of the same shapes and types were measured before, if they were.
    """
    answers = measure_part(requests, like=like)
    if raw.wants:
        refused = {number for number, _ in answers.gaps}
        for number, request in enumerate(requests):
            if number not in refused:
                raw.add(first + number, request.tensor, request.batch_dim, request.minus)
    return answers

"""Measures tensors while the step still runs, so that they need not be held until it ends.

    a module returns, a gradient arrives ─► add ─► a few megabytes together ─► stats.measure ─► let go

Numbers that were just computed are still in the cache of the processor, and memory that is let go can be used again for
what the step computes next: holding everything costs more than measuring it. But what is let go cannot be decided about
any more, so this is only for steps that will be recorded whatever happens in them; see `Capture.measure_early`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from endoscope.capture.regions import version_of
from endoscope.recording.batches import Batches
from endoscope.recording.hearing import StepRecorder
from endoscope.recording.raw import RawCollector
from endoscope.recording.structure import size_of
from endoscope.stats import Measured, Request, measure

SHARED_FROM = 50_000  # elements; a larger tensor with several names is measured once, and its row written for each
TOGETHER = 16 * 2**20  # bytes that are measured at once: calls are dear, and more than this would leave the cache


#: Shape and type of a tensor.
About = tuple[tuple[int, ...], torch.dtype]


class Place(NamedTuple):
    """Which tensor a row of statistics is of."""

    slot: int
    of: str
    batch_dim: int | None


class _Waiting(NamedTuple):
    place: Place
    tensor: Tensor | None  # None: the value that the recorder holds
    version: int


class Meter:
    """Rows of statistics in the order in which tensors came."""

    def __init__(self, recorder: StepRecorder, batches: Batches, raw: RawCollector) -> None:
        self._recorder = recorder
        self._batches = batches
        self.raw = raw
        self.rows: dict[tuple[int, str], list[tuple[int | None, int]]] = {}  # batch dimension and row of each name
        self.parts: list[Measured] = []
        self.about: list[About] = []  # row by row
        self.shapes: dict[int, tuple[int, ...]] = {}  # slot -> shape of what was measured there
        self.came_again: set[tuple[int, str]] = set()  # gradients of which only a part was measured
        self._gradients: set[tuple[int, str]] = set()
        self._names: dict[int, list[int | None]] = {}  # slot -> batch dimension, once for each of its names
        self._waiting: list[_Waiting] = []
        self._slots: set[int] = set()  # values that are held only to be measured
        self._bytes = 0
        self.last: list[Request] = []  # of a step that has ended: the rows behind `parts`, to be measured
        self.seconds = 0.0

    def value(self, slot: int, tensor: Tensor, said: int | None) -> None:
        """A value that the recorder holds has got a name."""
        call = self._recorder.nodes[self._recorder.slot_node[slot]][12]
        dim = self._batches.dim_of(size_of(tensor), said, call)
        self._slots.add(slot)
        names = self._names.setdefault(slot, [])
        if dim in names and tensor.numel() >= SHARED_FROM:
            return
        names.append(dim)
        self._add(_Waiting(Place(slot, "value", dim), None, -1), tensor)

    def gradient(self, slot: int, of: str, gradient: Tensor) -> bool:
        """The whole gradient of a loss has arrived; False if it is to be held."""
        names = self._names.get(slot)
        if names is None:
            return False
        if (slot, of) in self._gradients:  # two passes without `retain_graph` meet in it: additions need no graph
            self.came_again.add((slot, of))
            return True
        self._gradients.add((slot, of))
        for dim in names:
            self._add(_Waiting(Place(slot, of, dim), gradient, version_of(gradient)), gradient)
        return True

    def has(self, slot: int) -> bool:
        return slot in self._names

    def _add(self, entry: _Waiting, tensor: Tensor) -> None:
        self._waiting.append(entry)
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes >= TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Measure what waits, and let go of it."""
        started, first = time.perf_counter(), len(self.about)
        requests = self._numbered()
        if requests:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                self.parts.append(measure_and_keep(requests, self.raw, first))
        self.seconds += time.perf_counter() - started

    def end(self) -> None:
        """The step has ended. What still waits is measured together with all the rest: calls are dear."""
        self.last = self._numbered()

    def _numbered(self) -> list[Request]:
        """What waits gets its rows and is let go of, but for what is to be measured now."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        requests: list[Request] = []
        with torch.no_grad(), torch._C.DisableTorchFunction():
            for entry in waiting:
                tensor = self._unchanged(entry)
                if tensor is not None:
                    self._number(entry.place, tensor)
                    requests.append(Request(tensor, entry.place.batch_dim))
        for slot in self._slots:
            self._recorder.kept.pop(slot, None)
            self._recorder.kept_versions.pop(slot, None)
        self._slots.clear()
        return requests

    def _unchanged(self, entry: _Waiting) -> Tensor | None:
        if entry.tensor is None:
            return self._recorder.held_value(entry.place.slot)
        return entry.tensor.detach() if version_of(entry.tensor) == entry.version else None

    def _number(self, place: Place, tensor: Tensor) -> None:
        """The next row of statistics is of this tensor."""
        shape = size_of(tensor)
        self.rows.setdefault(place[:2], []).append((place.batch_dim, len(self.about)))
        self.about.append((shape, tensor.dtype))
        if place.of == "value":
            self.shapes[place.slot] = shape


def measure_and_keep(requests: Sequence[Request], raw: RawCollector, first: int) -> Measured:
    """Statistics of tensors, and raw values of those that could be measured; `first` is the row of the first one."""
    measured = measure(requests)
    if raw.wants:
        refused = {number for number, _ in measured.gaps}
        for number, request in enumerate(requests):
            if number not in refused:
                raw.add(first + number, request.tensor, request.batch_dim, request.minus)
    return measured

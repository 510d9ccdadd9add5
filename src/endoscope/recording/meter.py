"""Measures tensors while the step still runs, so that they need not be held until it ends.

    a module returns, a gradient arrives ─► arrival ─► enough together?
        ─ as in an earlier step ──► its plan: nothing but addresses is new ─► one piece of memory for the whole step
        └─ otherwise ─► worked out (`Course`) ─► stats.measure_part ─► joined with the rest at the end

Numbers that were just computed are still in the cache of the processor, and memory that is let go can be used again for
what the step computes next: holding everything costs more than measuring it. But what is let go cannot be decided about
any more, so this is only for steps that will be recorded whatever happens in them; see `Capture.measure_early`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from endoscope.capture.regions import version_of
from endoscope.recording.batches import Batches
from endoscope.recording.courses import Arrival, Came, Course, Courses
from endoscope.recording.hearing import StepRecorder
from endoscope.recording.raw import RawCollector
from endoscope.recording.structure import size_of
from endoscope.stats import Answers, Progress, Request, begin, measure_part, place_again

TOGETHER = 16 * 2**20  # bytes that are measured at once: calls are dear, and more than this would leave the cache
#: The same where a step runs like an earlier one, and calls are cheap: what is in the nearest cache. Not if two threads
#: share the work: starting the second one is dear.
AS_BEFORE = 2 * 2**20


class Meter:
    """Rows of statistics in the order in which tensors came."""

    def __init__(self, recorder: StepRecorder, batches: Batches, raw: RawCollector, known: Courses) -> None:
        self._recorder = recorder
        self._batches = batches
        self._known = known
        self.raw = raw
        self.course = Course()  # what has come so far begins like this, up to `_done`
        self._is_own = True  # the course is that of this step alone, so far
        self.progress: Progress | None = None  # of a step that runs like an earlier one
        self._parts: list[Answers] = []  # of one that does not, or not any more
        self.came_again: set[tuple[int, str]] = set()  # gradients of which only a part was measured
        self._gradients: set[tuple[int, str]] = set()
        self._slots: set[int] = set()  # values that are measured here
        self._done = 0  # arrivals that are measured
        self._came: list[Arrival] = []  # those that are not
        self._waiting: list[tuple[Tensor | None, int]] = []  # None: the value that the recorder holds; version
        self._bytes = 0
        self._enough = self._portion(bool(known.known) and known.known[0].by_one_thread)
        self.last: list[Tensor] = []  # of a step that has ended: what is still to be measured
        self.seconds = 0.0

    def _portion(self, cheap: bool) -> int:
        """Bytes to be measured at once; `cheap` if a call is. With raw values there is more to do for each tensor, and
        letting go of them one by one leaves holes in memory that nothing fits into: several megabytes in all."""
        return AS_BEFORE if cheap and not self.raw.wants else TOGETHER

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

    @property
    def shapes(self) -> dict[int, tuple[int, ...]]:
        """Slot -> shape of what was measured there."""
        return self.course.shapes()

    @property
    def count(self) -> int:
        """Rows of a step that has ended, but for those that are only known at its end."""
        return len(self.course.rows)

    def _add(self, arrival: Arrival, kept: Tensor | None, version: int, tensor: Tensor) -> None:
        self._came.append(arrival)
        self._waiting.append((kept, version))
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes >= self._enough:
            self.flush()

    def flush(self) -> None:
        """Measure what waits, and let go of it."""
        started = time.perf_counter()
        with torch._C.DisableTorchFunction():
            tensors = self._as_before()
            if tensors is None:
                self._measure(self._worked_out())
            else:
                self._run(tensors)
        self._let_go()
        self._done += len(self._came)
        self._came, self._waiting, self._bytes = [], [], 0
        self.seconds += time.perf_counter() - started

    def end(self) -> None:
        """The step has ended. What still waits is measured together with all the rest: calls are dear."""
        with torch._C.DisableTorchFunction():
            count = self._done + len(self._came)
            tensors = self._as_before(count)
            if tensors is None or count != len(self.course.arrivals):
                tensors = self._worked_out()
        self.last = tensors
        self._let_go()
        self._came, self._waiting, self._bytes = [], [], 0
        if count != len(self.course.arrivals):
            self.course = self.course.until(count)
        self.course = self._known.kept(self.course, self._batches)

    def _let_go(self) -> None:
        recorder = self._recorder
        for slot, of, _, _ in self._came:
            if of == "value":
                recorder.kept.pop(slot, None)
                recorder.kept_versions.pop(slot, None)

    # ---- a step that runs like an earlier one ----------------------------------------------------

    def _as_before(self, whole: int | None = None) -> list[Tensor] | None:
        """What waits, if it is what an earlier step would go on with; its addresses are noted.

        `whole` is how much has come in all, if no more will.
        """
        if self.progress is not None:
            found = self._placed(self.course)
        elif self._done:
            return None
        else:
            found = self._begun(whole)
        if found is None or self.progress is None:
            return None
        tensors, addresses = found
        course, done = self.course, self._done
        first, last = course.row_of(done), course.row_of(done + len(tensors))
        if last - first != len(tensors):
            addresses = [addresses[number - done] for number, _, _ in course.rows[first:last]]
        self.progress.place(first, addresses)
        return tensors

    def _begun(self, whole: int | None) -> tuple[list[Tensor], list[int]] | None:
        """The first that comes decides which step this one may be like."""
        for course in self._known.known:
            if course.plan is None or (whole is not None and whole != len(course.arrivals)):
                continue
            if (found := self._placed(course)) is not None:
                self.progress = begin(course.plan)
                if self.progress is not None:
                    self.course, self._is_own = course, False
                    course.by_one_thread = self.progress.threads == 1
                    self._enough = self._portion(course.by_one_thread)
                    return found
        return None

    def _placed(self, course: Course) -> tuple[list[Tensor], list[int]] | None:
        """What waits and where it lies, if all is as in that course."""
        came, done = self._came, self._done
        until = done + len(came)
        if course.arrivals[done:until] != came or not self._batches.begin_like(course.sizes):
            return None
        kept, versions = self._recorder.kept, self._recorder.kept_versions
        tensors, addresses = [], []
        try:
            for arrival, waiting, about in zip(came, self._waiting, course.came[done:until], strict=True):
                tensor, version = waiting
                if tensor is None:
                    tensor, version = kept[arrival[0]], versions.get(arrival[0], -1)
                if version >= 0 and tensor._version != version:
                    return None  # unless a write that was heard explains it
                shape, dtype, strides = about
                address = place_again(tensor, strides)
                if not address or tensor.dtype is not dtype or tensor.shape != shape:
                    return None
                tensors.append(tensor)
                addresses.append(address)
        except Exception:  # whatever is odd about a tensor is found out by asking for more
            return None
        return tensors, addresses

    def _run(self, tensors: list[Tensor]) -> None:
        assert self.progress is not None
        self.progress.run(self.course.row_of(self._done + len(tensors)), tensors)
        if self.raw.wants:
            self.keep_raw(tensors)

    def keep_raw(self, tensors: list[Tensor]) -> None:
        with torch.no_grad():
            for row, request in enumerate(self._requests(tensors), self.course.row_of(self._done)):
                self.raw.add(row, request.tensor, request.batch_dim)

    # ---- any step --------------------------------------------------------------------------------

    def given_up(self) -> tuple[list[Answers], list[Request]]:
        """Of a step that has ended and is not to be measured as before: what is, and what is not."""
        if self.progress is not None:
            self._parts.append(self.progress.first())
            self.progress, self._enough = None, TOGETHER
        return self._parts, self._requests(self.last)

    def _worked_out(self) -> list[Tensor]:
        """What waits; its rows are in the course afterwards."""
        self.given_up()
        self._enough = TOGETHER
        tensors: list[Tensor] = []
        came: list[Came] = []
        for (slot, *_), (gradient, version) in zip(self._came, self._waiting, strict=True):
            if gradient is None:
                tensor = self._recorder.kept[slot]
                is_there = self._recorder.is_unchanged(slot, tensor)
            else:
                tensor = gradient
                is_there = version_of(gradient) == version
            tensors.append(tensor)
            came.append((size_of(tensor), tensor.dtype if is_there else None, _strides(tensor)))
        if not self._is_known(came):
            if not self._is_own:
                self.course, self._is_own = self.course.until(self._done), True
            self.course.add(self._came, came, self._batches)
        return tensors

    def _is_known(self, came: list[Came]) -> bool:
        """Whether an earlier step had the same, although it could not be measured as before."""
        course, done = self.course, self._done
        if self._is_own and done:
            return False
        arrivals, came = course.arrivals[:done] + self._came, course.came[:done] + came
        if not self._is_own and course.begins_with(arrivals, came, self._batches):
            return True
        found = self._known.find(arrivals, came, self._batches)
        if found is not None:
            self.course, self._is_own = found, False
        return found is not None

    def _measure(self, tensors: list[Tensor]) -> None:
        requests = self._requests(tensors)
        if requests:
            with torch.no_grad():
                self._parts.append(measure_and_keep(requests, self.raw, self.course.row_of(self._done)))

    def _requests(self, tensors: list[Tensor]) -> list[Request]:
        """One for each row of those that come next."""
        course, done = self.course, self._done
        first, requests = course.row_of(done), []
        for number, dim, same in course.rows[first : course.row_of(done + len(tensors))]:
            other = None if same is None or same < first else same - first
            requests.append(Request(tensors[number - done], dim, same_as=other))
        return requests


def _strides(tensor: Tensor) -> tuple[int, ...] | None:
    try:
        return tensor.stride()
    except Exception:  # nested and sparse tensors have none
        return None


def measure_and_keep(requests: Sequence[Request], raw: RawCollector, first: int) -> Answers:
    """Statistics of tensors, and raw values of those that could be measured; `first` is the row of the first one."""
    answers = measure_part(requests)
    if raw.wants:
        refused = {number for number, _ in answers.gaps}
        for number, request in enumerate(requests):
            if number not in refused:
                raw.add(first + number, request.tensor, request.batch_dim, request.minus)
    return answers

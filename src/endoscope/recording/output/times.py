"""Where the time of steps goes, by the clock of the host: waiting for data, forward, backward, update.

    end of a step ─ data ─► forward begins ─► ends ─ backward ─► update begins ─► ends ─► the step ends
                                 ▲                      │
                                 └── micro-batches ─────┘

Steps are added up in blocks, which are the same in all processes of a job. A run of a million steps has some 3,000.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter as _clock

import torch

from endoscope.schema.recording import TimesRecord

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

BLOCKS = 256  # between a step number and its double


def block_of(number: int) -> int:
    """The number of the step with which its block begins."""
    length = 1 << max(0, (number // BLOCKS).bit_length() - 1)
    return number - number % length


class Times:
    """Of one run; each method looks at the clock once, in every step."""

    def __init__(self, emit: Callable[[TimesRecord], None]) -> None:
        self._emit = emit
        self._mark = 0.0  # what came last; 0: nothing that the time since may be counted from
        self._is_in_step = False
        self.data = self.forward = self.backward = self.update = 0.0  # of this step
        self._block = -1
        self._sums: dict[tuple[str, bool], list[float]] = {}  # type and whether captured -> steps, …, the longest

    def forward_begins(self) -> None:
        now = _clock()
        if self._mark:
            if self._is_in_step:
                self.backward += now - self._mark
            else:
                self.data += now - self._mark
        self._mark, self._is_in_step = now, True

    def forward_ends(self) -> None:
        if self._is_in_step:
            now = _clock()
            self.forward += now - self._mark
            self._mark = now

    def update_begins(self) -> None:
        if self._is_in_step:
            now = _clock()
            self.backward += now - self._mark
            self._mark = now

    def update_ends(self) -> None:
        if self._is_in_step:
            now = _clock()
            self.update += now - self._mark
            self._mark = now

    def interrupted(self) -> None:
        """The time since the last step was not spent waiting for data: a model was evaluated."""
        if not self._is_in_step:
            self._mark = 0.0

    def step_ends(self, number: int, type_: str, captured: bool, ours: float) -> None:
        """`ours` seconds of it were recording, since the last update."""
        block = block_of(number)
        if block != self._block:
            self.flush()
            self._block = block
        seconds = self.data + self.forward + self.backward + self.update
        sums = self._sums.setdefault((type_, captured), [0.0] * 7)
        for place, value in enumerate((1.0, seconds, self.data, self.forward, self.backward, self.update)):
            sums[place] += value
        sums[6] = max(sums[6], seconds)
        self.data = self.forward = self.backward = self.update = 0.0
        self._is_in_step = False
        if self._mark:
            self._mark += ours

    def flush(self) -> None:
        """Tell what there is of the block."""
        memory = peak_memory() if self._sums else 0
        for (type_, captured), sums in self._sums.items():
            steps, seconds, data, forward, backward, update, longest = sums
            self._emit(
                TimesRecord(
                    step=self._block, type=type_, captured=int(captured), steps=int(steps), seconds=seconds, data=data,
                    forward=forward, backward=backward, update=update, longest=longest, peak_memory=memory,
                )
            )  # fmt: skip
        self._sums.clear()


def peak_memory() -> int:
    """Bytes that the process has had at most: those of its device, or else of the host; 0 where nobody tells."""
    device = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    found = None if device is None else getattr(torch.get_device_module(device), "max_memory_allocated", None)
    if found is not None:
        return int(found())
    if resource is None:
        return 0
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(largest if sys.platform == "darwin" else largest * 1024)

"""Very many forward passes in one step, or very large ones: what comes beyond a limit is measured as it comes.

Nothing of it is held, so there are no raw values of it, and no late decision can ask for any. Gradients are complete.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from endoscope.capture.record.parts import here
from endoscope.recording.hooks.entries import Entry, dim_of
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.output.meter import Meter, Name, Row
from endoscope.recording.output.raw import Keep, RawCollector
from endoscope.schema.recording import GRADIENT, GapRecord

MOST_PASSES = 256  # of one node
MOST_BYTES = 2**30
TOO_MUCH = GapRecord(
    "",
    "value",
    f"a step has more than {MOST_PASSES} passes, or holds more than {MOST_BYTES >> 30} GB: further passes have "
    "statistics and gradients, but no raw values",
)


class Stream:
    """Measures tensors of one step one by one."""

    def __init__(self, batch_dim: int | None, placement: Callable[[Entry, Tensor | None], str]) -> None:
        self.meter = Meter(RawCollector(Keep.of(0), 0, []))
        self._batch_dim = batch_dim
        self._placement = placement

    def value(self, entry: Entry, tensor: Tensor) -> None:
        self._measure(entry, "value", tensor, self._placement(entry, None))

    def gradient(self, entry: Entry, loss: str, gradient: Tensor) -> None:
        self._measure(entry, GRADIENT + loss, gradient, self._placement(entry, gradient))

    def _measure(self, entry: Entry, of: str, tensor: Tensor, placement: str) -> None:
        name = Name(entry.node, entry.role, entry.pass_, entry.kind, entry.module)
        with quiet():
            dim = dim_of(entry, self._batch_dim)
            self.meter.measure([Row(name, of, here(tensor).detach(), dim, None, None, placement)])

"""What the hooks of models and optimizers need of the steps of a run: `Steps` is the only one there is."""

from __future__ import annotations

from typing import Protocol

from endoscope.recording.failures.shield import Shield
from endoscope.recording.output.times import Times
from endoscope.recording.steps.boundaries import Passes
from endoscope.recording.steps.names import Names
from endoscope.recording.steps.optimizers import Optimizers
from endoscope.recording.steps.step import Owner, Step
from endoscope.recording.steps.watch import Watch


class Driver(Owner, Protocol):
    """Begins steps and ends them."""

    open: Step | None
    next: int  # number of the next step
    closed: bool
    paused: bool
    trainer: int | None  # the thread in which optimizers step
    watches: list[Watch]
    names: Names
    optimizers: Optimizers
    passes: Passes
    times: Times

    @property
    def shield(self) -> Shield: ...

    @property
    def is_over(self) -> bool: ...

    def is_foreign(self) -> bool: ...
    def begin(self, step: Step) -> None: ...
    def finish(self, step: Step) -> None: ...
    def abandon(self, step: Step) -> None: ...
    def look_whether_skipped(self, step: Step) -> bool: ...
    def gap(self, node: str, reason: str, /) -> None: ...
    def say_once(self, sentence: str, /) -> None: ...

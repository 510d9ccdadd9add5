"""`Run(enabled=False)`: every word of a run is there, and none of them does anything."""

from __future__ import annotations

import contextlib
from typing import Any

from endoscope.markup.notebook import run_block
from endoscope.markup.tags import Markup
from endoscope.recording.steps.step import Step


class Silent:
    """Writes no file, hooks no model and starts no thread. `SilentRun` takes these methods before those of `Run`."""

    path = trial = ""

    def __init__(self, *_: Any, trial: str = "trial", **__: Any) -> None:
        self.closed = self.strict = False
        self.trial = trial

    def _block(self) -> Markup:
        return run_block(self.trial, "nothing is recorded (enabled=False)", "")

    def watch(self, model: Any, *_: Any, **__: Any) -> Any:
        return model

    def step(self, n: int | None = None, type: str | None = None) -> Step:
        return Step(_NoSteps(), n or 0, type, explicit=True)

    @property
    def current_step(self) -> Step:
        return self.step()

    def _nothing(self, *_: Any, **__: Any) -> None: ...

    pause = resume = metric = log = note = config = flush = _nothing

    def close(self) -> None:
        self.closed = True

    def __repr__(self) -> str:
        return f"<Run {self.trial!r}: not enabled>"


class _NoSteps:
    """Stands where a step expects the steps of a run."""

    def shield(self, _: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def _nothing(self, *_: Any) -> None: ...

    enter = leave = decided = report = _nothing

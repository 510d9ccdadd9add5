"""`Run(enabled=False)`: every word of a run is there, and none of them does anything."""

from __future__ import annotations

import contextlib
from typing import Any

from endoscope.recording.run import Run
from endoscope.recording.step import Step


class SilentRun(Run):
    """Writes no file, hooks no model and starts no thread."""

    def __init__(self, *_: Any, trial: str = "trial", **__: Any) -> None:
        self.closed = False
        self.strict = False
        self._trial = trial

    @property
    def path(self) -> str:
        return ""

    @property
    def trial(self) -> str:
        return self._trial

    def watch(self, model: Any, *_: Any, **__: Any) -> Any:
        return model

    def step(self, n: int | None = None, type: str | None = None) -> Step:
        return Step(_NO_STEPS, n or 0, type, explicit=True)

    @property
    def current_step(self) -> Step:
        return Step(_NO_STEPS, 0, None, explicit=False)

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def metric(self, name: str, value: Any) -> None: ...

    def note(self, text: str) -> None: ...

    def config(self, **settings: Any) -> None: ...

    def flush(self, timeout: float | None = None) -> None: ...

    def close(self) -> None:
        self.closed = True

    def __repr__(self) -> str:
        return f"<Run {self.trial!r}: not enabled>"


class _NoSteps:
    """Stands where a step expects the steps of a run."""

    def shield(self, _: str) -> Any:
        return contextlib.nullcontext()

    def enter(self, _: Step) -> None: ...

    def leave(self, _: Step) -> None: ...

    def decided(self, *_: Any) -> None: ...

    def report(self, *_: Any) -> None: ...


_NO_STEPS: Any = _NoSteps()

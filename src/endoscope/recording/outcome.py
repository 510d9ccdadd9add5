"""Whose error it is that was raised while an operation was heard: the traceback tells. Ours must not reach training."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from endoscope.recording.tracer import StepRecorder


#: How lines of ours look that call what is the user's or torch's.
_CALLS = ("func(*args", "original(", ".forward(", "function(given", "call_inside(", "body(")


def shielded(recorder: StepRecorder, hear: Callable[..., Any]) -> Callable[..., Any]:
    """If an error in `hear` is ours, the operation's own result is handed on, and the recorder stops hearing."""

    def shielded(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if recorder.given_up or recorder.resting:
            return func(*args, **(kwargs or {}))
        try:
            return hear(mode, func, types, args, kwargs)
        except Exception as error:
            done, out = outcome_of(error.__traceback__)
            if done is None:
                raise
            recorder.give_up(f"torch.{getattr(func, '__name__', func)}", error)
            return out if done else func(*args, **(kwargs or {}))

    return shielded


def outcome_of(trace: TracebackType | None) -> tuple[bool | None, Any]:
    """Whose error: None if the user's own operation raised; else whether it had run, and its result.

    Our innermost frame tells: if it stands on the line that calls the operation, the operation raised.
    """
    ours: list[TracebackType] = []
    while trace is not None:
        if "endoscope" in trace.tb_frame.f_globals.get("__name__", ""):
            ours.append(trace)
        trace = trace.tb_next
    last = ours[-1]
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno)
    if any(call in line for call in _CALLS):
        return None, None
    for entry in reversed(ours):
        values = entry.tb_frame.f_locals
        if "func" in values and "out" in values:
            return True, values["out"]
    return False, None

"""Whose error it is that was raised while an operation was heard: the traceback tells."""

from __future__ import annotations

import linecache
from types import TracebackType
from typing import Any


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
    if any(call in line for call in ("func(*args", "original(", "known.forward(", "call_inside(", "body(")):
        return None, None
    for entry in reversed(ours):
        values = entry.tb_frame.f_locals
        if "func" in values and "out" in values:
            return True, values["out"]
    return False, None

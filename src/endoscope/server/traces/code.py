"""The lines of code around an operation. Only files that the trace itself names are read, found by its operation."""

from __future__ import annotations

import linecache
import os
from typing import Any

from endoscope.server import wire

_AROUND = 8  # lines before and after


def code_of(op: Any, started: float) -> wire.TraceCode:
    """`started`: when the trace was taken, in seconds; what was changed later may have moved."""
    source = op.source
    if source is None:
        return _none("", 0, f"No line of your code made {op.label}.")
    is_cell = source.file.startswith("<") and source.file.endswith(">")  # linecache has it, and looks for no file
    if not source.file.endswith(".py") and not is_cell:
        # Somebody else's trace may name any file of this machine, also a device that never ends.
        return _none(
            source.file, source.line, f"{source.file} is no Python file: only files that end in .py are shown."
        )
    linecache.checkcache(source.file)
    lines = linecache.getlines(source.file)
    if not lines:
        return _none(source.file, source.line, f"The file {source.file} cannot be read here.")
    if source.line > len(lines):
        return _none(
            source.file, source.line, f"{source.file} has only {len(lines)} lines now: it is not what was traced."
        )
    first = max(1, source.line - _AROUND)
    note = ""
    if started and os.path.isfile(source.file) and os.path.getmtime(source.file) > started:
        note = "The file was changed after the trace was taken: lines may have moved."
    shown = [line.rstrip("\n")[:500] for line in lines[first - 1 : source.line + _AROUND]]
    return wire.TraceCode(
        file=source.file, line=source.line, function=source.function, first=first, lines=shown, problem=note
    )


def _none(file: str, line: int, problem: str) -> wire.TraceCode:
    return wire.TraceCode(file=file, line=line, function="", first=0, lines=[], problem=problem)

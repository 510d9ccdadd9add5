"""Find the user's line: the nearest frame that is neither torch nor Endoscope itself."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

import torch

from endoscope import errors
from endoscope.schema.ops import SourceLine

_TORCH = os.path.dirname(torch.__file__) + os.sep
_PACKAGE = os.path.dirname(errors.__file__)
_OURS = tuple(os.path.join(_PACKAGE, part) + os.sep for part in ("capture", "findings", "replay", "recording"))


class _InnerFiles(dict[str, bool]):
    """File name -> does it belong to torch or to us. Looking up a new name decides it."""

    def __missing__(self, filename: str) -> bool:
        inner = filename.startswith((_TORCH, *_OURS)) or filename.startswith("<@beartype")
        self[filename] = inner
        return inner


#: Shared by all traces; grows by one entry per source file ever met.
INNER_FILES = _InnerFiles()


class Position(NamedTuple):
    """Where in the user's code something happened; turned into a line only when somebody asks."""

    code: CodeType | None
    instruction: int

    @property
    def line(self) -> SourceLine | None:
        if self.code is None:
            return None
        line = self.code.co_firstlineno
        for start, stop, number in self.code.co_lines():
            if start <= self.instruction < stop and number is not None:
                line = number
                break
        return SourceLine(self.code.co_filename, line, self.code.co_qualname)


NO_POSITION = Position(None, -1)


def user_position(depth: int = 1) -> Position:
    """The nearest frame outside torch and Endoscope, looking from the caller's caller."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and INNER_FILES[frame.f_code.co_filename]:  # hot: `position_outside` without the call
        frame = frame.f_back
    return tuple.__new__(Position, (frame.f_code, frame.f_lasti)) if frame is not None else NO_POSITION


def position_outside(frame: FrameType | None) -> Position:
    """The same, looking from a frame that is known."""
    while frame is not None and INNER_FILES[frame.f_code.co_filename]:
        frame = frame.f_back
    return tuple.__new__(Position, (frame.f_code, frame.f_lasti)) if frame is not None else NO_POSITION


def user_callers(most: int = 20) -> tuple[tuple[CodeType, int], ...]:
    """Positions in the user's frames around the nearest one, innermost first."""
    found: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) <= most:
        if not INNER_FILES[frame.f_code.co_filename]:
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found[1:])


def line_of_error(error: BaseException) -> SourceLine | None:
    """The innermost line of the user's that an exception came through."""
    found, step = None, error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not INNER_FILES[code.co_filename]:
            found = SourceLine(code.co_filename, step.tb_lineno, code.co_qualname)
        step = step.tb_next
    return found

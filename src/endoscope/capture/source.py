"""Find the user's line: the nearest frame that is neither torch nor Endoscope itself."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

import torch

from endoscope.schema.ops import SourceLine

_TORCH = os.path.dirname(torch.__file__) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_OURS = tuple(os.path.join(_PACKAGE, part) + os.sep for part in ("capture", "findings", "replay", "recording"))


class _InnerFiles(dict[str, bool]):
    """File name -> does it belong to torch or to us. Looking up a new name decides it."""

    def __missing__(self, filename: str) -> bool:
        inner = filename.startswith((_TORCH, *_OURS)) or filename.startswith("<@beartype")
        self[filename] = inner
        return inner


#: Shared by all traces; grows by one entry per source file ever met.
INNER_FILES = _InnerFiles()


def user_frame(depth: int = 1) -> FrameType | None:
    """The nearest frame outside torch and Endoscope, looking from the caller's caller."""
    return _outside(sys._getframe(depth + 1))


def user_position(depth: int = 1) -> tuple[CodeType | None, int]:
    return position_outside(sys._getframe(depth))


def position_outside(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """The same, looking from a frame that is known."""
    frame = _outside(frame)
    return (frame.f_code, frame.f_lasti) if frame is not None else (None, -1)


def _outside(frame: FrameType | None) -> FrameType | None:
    while frame is not None and INNER_FILES[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def user_callers(most: int = 20) -> tuple[tuple[CodeType, int], ...]:
    """Positions in the user's frames around the nearest one, innermost first."""
    found: list[tuple[CodeType, int]] = []
    frame = user_frame(1)
    frame = frame.f_back if frame is not None else None
    while frame is not None and len(found) < most:
        if not INNER_FILES[frame.f_code.co_filename]:
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def source_line(code: CodeType | None, instruction: int) -> SourceLine | None:
    """Turn the raw position kept by the recorder into file, line and function."""
    if code is None:
        return None
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            line = number
            break
    return SourceLine(code.co_filename, line, code.co_qualname)

"""Find the user's line: the nearest frame that is neither torch nor Endoscope itself."""

from __future__ import annotations

import os
import sys
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import torch
import torch.nested

from endoscope import errors
from endoscope.capture.data.nodes import NO_POSITION, Position
from endoscope.schema.ops import SourceLine

_TORCH = os.path.dirname(torch.__file__) + os.sep
_PACKAGE = os.path.dirname(errors.__file__)
_OURS = tuple(os.path.join(_PACKAGE, part) + os.sep for part in ("capture", "findings", "replay", "recording"))


class _InnerFiles(dict[str, bool]):
    """File name -> does it belong to torch or to us. Looking up a new name decides it."""

    def __missing__(self, filename: str) -> bool:
        inner = filename.startswith((_TORCH, *_OURS, "<@beartype")) or filename.endswith("typing_extensions.py")
        self[filename] = inner
        return inner


#: Shared by all traces; grows by one entry per source file ever met.
INNER_FILES = _InnerFiles()


#: Functions of another library that stand in the place of torch's own, by the id of their code; see `find_wrappers`.
WRAPPERS: dict[int, CodeType] = {}
_SPACES = (
    torch, torch.Tensor, torch.nn.functional, torch.functional, torch.nn.init, torch.linalg, torch.fft, torch.special,
    torch.nested, torch.sparse, torch.nn.Module,
)  # fmt: skip


_LAYERS = [layer for layer in vars(torch.nn.modules).values() if isinstance(layer, type) and hasattr(layer, "forward")]
_forward = attrgetter("forward")
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_looked_at: list[list[Any]] = []  # what the names stood for the last time


def find_wrappers() -> None:
    """Look for names of torch that somebody has put a function of his own behind: it is no line of the user's."""
    values = [list(vars(space).values()) for space in _SPACES]
    values.append(list(map(_forward, _LAYERS)))
    if _is_known(values):
        return
    _looked_at[:] = values
    WRAPPERS.clear()
    for some in values:
        for value in some:
            _note_wrapper(value)


def _is_known(values: list[list[Any]]) -> bool:
    """Lists compare their elements by identity first, so this is the quickest way to see that nothing has changed."""
    try:
        return values == _looked_at
    except Exception:  # somebody has put a tensor there, which compares element by element
        return False


def _note_wrapper(value: Any) -> None:
    kind = value.__class__
    if kind is not FunctionType:
        if kind in _PLAIN_KINDS or kind.__module__.partition(".")[0] in ("torch", "builtins", "typing"):
            return
        value = vars(kind).get("__call__")
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    if code is not None and not INNER_FILES[code.co_filename]:
        if os.path.dirname(code.co_filename) != _STANDARD_LIBRARY:
            WRAPPERS[id(code)] = code


#: Of such things a name of torch usually stands for; nobody wraps a function in them.
_PLAIN_KINDS = (
    BuiltinFunctionType,
    type(torch.Tensor.add),
    ModuleType,
    type,
    int,
    float,
    str,
    bool,
    property,
    type(None),
)


def beyond_wrappers(frame: FrameType | None) -> FrameType | None:
    """The user's frame: whoever called the wrapper, where the frame is that of one, or of what one calls."""
    while frame is not None:
        outer: FrameType | None = frame
        while outer is not None and not INNER_FILES[outer.f_code.co_filename] and id(outer.f_code) not in WRAPPERS:
            outer = outer.f_back
        if outer is None or id(outer.f_code) not in WRAPPERS:
            return frame
        frame = outer.f_back
        while frame is not None and INNER_FILES[frame.f_code.co_filename]:
            frame = frame.f_back
    return None


def user_position(depth: int = 1) -> Position:
    """The nearest frame outside torch and Endoscope, looking from the caller's caller."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and INNER_FILES[frame.f_code.co_filename]:  # hot: `position_outside` without the call
        frame = frame.f_back
    if WRAPPERS:
        frame = beyond_wrappers(frame)
    return tuple.__new__(Position, (frame.f_code, frame.f_lasti)) if frame is not None else NO_POSITION


def position_outside(frame: FrameType | None) -> Position:
    """The same, looking from a frame that is known."""
    while frame is not None and INNER_FILES[frame.f_code.co_filename]:
        frame = frame.f_back
    if WRAPPERS:
        frame = beyond_wrappers(frame)
    return tuple.__new__(Position, (frame.f_code, frame.f_lasti)) if frame is not None else NO_POSITION


def user_callers(most: int = 20) -> tuple[tuple[CodeType, int], ...]:
    """Positions in the user's frames around the nearest one, innermost first."""
    found: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    if WRAPPERS:
        while frame is not None and INNER_FILES[frame.f_code.co_filename]:
            frame = frame.f_back
        frame = beyond_wrappers(frame)
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

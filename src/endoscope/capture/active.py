"""The recorders and `editing` blocks that are at work, by thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

#: Thread -> its recorders, outermost first. Empty where the thread is traced, but not just now.
ACTIVE: dict[int, list[Recorder]] = {}
#: Thread and id of a model -> the `editing` block around its calls.
BLOCKS: dict[tuple[int, int], Any] = {}
lock = threading.RLock()  # held by who changes any of it
_stack_depth = torch._C._len_torch_function_stack
_stack_at = torch._C._get_function_stack_at


def recorders_here() -> list[Recorder] | None:
    """The recorders of this thread, which have understood all that they heard; None if nothing is traced here."""
    recorders = ACTIVE.get(threading.get_ident()) or None
    for recorder in recorders or ():
        recorder.catch_up()
    return recorders


def lone_recorder() -> Recorder | None:
    """The recorder of this thread, if there is one, and it alone is told about functions."""
    recorders = ACTIVE.get(threading.get_ident()) or []
    alone = len(recorders) == 1 and _stack_depth() == 1 and _stack_at(0) is recorders[0]
    return recorders[0] if alone else None

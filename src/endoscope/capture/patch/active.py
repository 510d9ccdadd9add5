"""The recorders and `editing` blocks that are at work, by thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import torch

from endoscope.capture.record.recorder import Recorder


class EditsCalls(Protocol):
    """An `editing` block: calls of its model go through it."""

    model: torch.nn.Module
    changes: list[Any]
    busy: bool  # inside of such a call

    def run(self, call: Callable[..., Any], args: Any, kwargs: Any) -> Any: ...


#: Thread -> its recorders, outermost first. Empty where the thread is traced, but not just now.
ACTIVE: dict[int, list[Recorder]] = {}
#: Thread and id of a model -> the `editing` block around its calls.
BLOCKS: dict[tuple[int, int], EditsCalls] = {}


def recorders_here() -> list[Recorder] | None:
    """The recorders of this thread; None if nothing is traced here."""
    return ACTIVE.get(threading.get_ident()) or None

"""The recorders and `editing` blocks that are at work, by thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

#: Thread -> its recorders, outermost first. Empty where the thread is traced, but not just now.
ACTIVE: dict[int, list[Recorder]] = {}
#: Thread and id of a model -> the `editing` block around its calls.
BLOCKS: dict[tuple[int, int], Any] = {}
lock = threading.RLock()  # held by who changes any of it


def recorders_here() -> list[Recorder] | None:
    """The recorders of this thread; None if nothing is traced here."""
    return ACTIVE.get(threading.get_ident()) or None

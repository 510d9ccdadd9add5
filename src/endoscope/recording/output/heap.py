"""Memory that a recorded step gives back stays with the process, because the next one needs it again.

    values are held ─► let go all at once ─► malloc hands the memory to the system ─► page by page back in the next step

Getting a page back costs a microsecond or more: for a transformer one twentieth of the training step. So while
a run records, glibc is asked to keep what is freed, as it does with what a plain step frees bit by bit. When no run
records any more, it gives memory back as it does in every process that has once freed a large tensor.

Nothing is asked for where the user has said how malloc should behave, and where malloc is not that of glibc.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Mapping

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of settings, from malloc.h
_KEPT_BYTES = 2**31 - 1  # the most that can be said
# Where glibc's own thresholds arrive as soon as a block of this size has been freed.
_LARGEST_BLOCK = 32 * 2**20
_TRIMMED_FROM = 2 * _LARGEST_BLOCK

_lock = threading.Lock()
_keeping = 0  # runs that record


class Heap:
    """What one run asks for."""

    def __init__(self) -> None:
        self.keeps = False

    def keep(self) -> None:
        """From now on; once is enough."""
        if not self.keeps:
            self.keeps = True
            _count(+1)

    def let_go(self) -> None:
        """No more."""
        if self.keeps:
            self.keeps = False
            _count(-1)


def _count(change: int) -> None:
    global _keeping
    with _lock:
        before, _keeping = _keeping, _keeping + change
        if not before:
            _say(_KEPT_BYTES)
        elif not _keeping:
            _say(_TRIMMED_FROM)


def _say(trimmed_from: int) -> None:
    if sys.platform.startswith("linux") and not _user_decided(os.environ):
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.gnu_get_libc_version  # noqa: B018 (musl does not have it)
            library.mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)  # fixing the other one would fix this, where it is now
            library.mallopt(_TRIM_THRESHOLD, trimmed_from)


def _user_decided(environment: Mapping[str, str]) -> bool:
    return "glibc.malloc" in environment.get("GLIBC_TUNABLES", "") or any(
        name in environment for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")
    )

"""Whether somebody is writing a rank: its writer holds a lock on the folder, which ends with the process.

The lock is on the folder itself, so there is no file that a crash could leave behind. It is not taken along into
forked processes: those of a data loader may outlive a training that was killed. Windows, and some network file systems,
lock no folders: there nobody can tell whether a trial is still being written, and it is up to the user not to resume it
twice.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from pathlib import Path

from endoscope.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TRIES = 5  # whoever asks `is_held` holds the lock for a moment
_NEXT_TRY_SECS = 0.01
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """Held from when it is made until `release`, or until it is forgotten."""

    _descriptor = -1

    def __init__(self, folder: Path) -> None:
        for _ in range(_TRIES):
            is_taken, self._descriptor = _try_to_lock(folder)
            if not is_taken:
                break
            time.sleep(_NEXT_TRY_SECS)
        else:
            raise StoreError(
                f"{folder.parent} is still being written, by another process or by a run of this one that is not "
                "closed, so it cannot be resumed. Wait until that has ended, or record under another trial name."
            )
        _held.add(self)

    def release(self) -> None:
        """Others may write the folder now."""
        if self._descriptor >= 0 and fcntl is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also if some other process has it by inheritance
        self.let_go()

    def let_go(self) -> None:
        """Forget it here; who else has it by inheritance, above all the process that we were forked from, keeps it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.let_go()


def is_held(folder: Path) -> bool | None:
    """Whether somebody is writing a rank; None where that cannot be told."""
    is_taken, descriptor = _try_to_lock(folder)
    if descriptor >= 0:
        os.close(descriptor)
    return is_taken


def _try_to_lock(folder: Path) -> tuple[bool | None, int]:
    """Whether somebody else holds it (None: nobody can tell), and the folder as a descriptor if it is locked now."""
    if fcntl is None:
        return None, -1
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None, -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        return (True if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN) else None), -1
    return False, descriptor


def _after_fork() -> None:
    for lock in list(_held):
        lock.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""Making files survive a power failure, in a thread of its own.

A busy disk takes long for an fsync, and meanwhile finished steps must still reach their files: a process that is killed
loses what it has not written, never what it has not synced.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

from endoscope.store.files import AppendFile, sync_folder


class Unsynced(NamedTuple):
    """A file by a descriptor of our own, so that it may be closed meanwhile."""

    name: str
    descriptor: int


def handed_over(file: AppendFile, failures: list[str]) -> list[Unsynced]:
    """What there is to sync of a file. A failure must not look like one of the commit, which is done already."""
    try:
        descriptor = file.hand_over()
    except OSError as error:
        failures.append(_lost(file.name, error))
        return []
    return [] if descriptor is None else [Unsynced(file.name, descriptor)]


def _lost(name: str, error: OSError) -> str:
    return f"{name} may be incomplete after a power failure: {error}"


class Syncing:
    """At most one round at a time. What goes wrong stands in `failures`."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, data: list[Unsynced], folder: Path, journal: list[Unsynced]) -> None:
        """Data before the journal, so that after a power failure hardly a line names data that is not there."""
        thread = threading.Thread(target=self._sync, args=(data, folder, journal), daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError:  # the interpreter is about to end
            self._sync(data, folder, journal)

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _sync(self, data: list[Unsynced], folder: Path, journal: list[Unsynced]) -> None:
        self._sync_files(data)
        sync_folder(folder)
        self._sync_files(journal)

    def _sync_files(self, files: list[Unsynced]) -> None:
        for name, descriptor in files:
            try:
                os.fsync(descriptor)
            except OSError as error:
                self.failures.append(_lost(name, error))
            finally:
                os.close(descriptor)

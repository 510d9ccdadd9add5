"""Making files survive a power failure, in a thread of its own.

A busy disk takes long for an fsync, and meanwhile finished steps must still reach their files: a process that is killed
loses what it has not written, never what it has not synced.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path

from endoscope.store.files import sync, sync_folder


class Syncing:
    """At most one round at a time. What goes wrong stands in `failures`."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, data: Collection[Path], journal: Path) -> None:
        """Data before the journal, so that after a power failure hardly a line names data that is not there."""
        thread = threading.Thread(target=self._sync, args=(list(data), journal), daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError:  # the interpreter is about to end
            self._sync(data, journal)

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _sync(self, data: Collection[Path], journal: Path) -> None:
        for path in data:
            self._sync_file(path)
        sync_folder(journal.parent)
        self._sync_file(journal)

    def _sync_file(self, path: Path) -> None:
        try:
            sync(path)
        except OSError as error:
            self.failures.append(f"{path.name} may be incomplete after a power failure: {error}")

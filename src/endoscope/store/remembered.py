"""What was compared with its checksum before: a viewer that is started again need not read hundreds of megabytes.

    Remembered(folder) ─► known(file)   how much of it was found to be right, if it has not been touched since
                       ─► remember      when all of it was compared; `save` keeps it among the caches of the user

A file has not been touched as long as its size, its times of change and its place on the disk are what they were. Only
viewers look here, before anybody asks them: `endoscope.open` always compares.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from endoscope.schema.folders import user_cache
from endoscope.store.files import remove, write_whole

WORTH = 4 << 20  # bytes of a file; less is compared faster than it is looked up
_MOST_TRIALS = 300

State = list[int]


class Remembered:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = _place(folder)
        self._files: dict[str, tuple[State, int]] = {}
        self._is_new = False
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(self._path.read_bytes()) if self._path is not None else {}
            self._files = {str(file): (list(state), int(end)) for file, (state, end) in found.items()}

    def known(self, file: str, now: State) -> int:
        """So many bytes from the beginning were right; none if the file is no longer in the state it was in."""
        state, end = self._files.get(file, ([], 0))
        return end if state == now else 0

    def state(self, file: str) -> State:
        try:
            found = os.stat(self._folder / file)
        except OSError:
            return []
        return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev]

    def remember(self, file: str, before: State, end: int) -> None:
        """All of the file up to `end` is right; `before` is its state when the comparison began."""
        if end >= WORTH and before and before == self.state(file):
            self._files[file] = (before, end)
            self._is_new = True

    def save(self) -> None:
        """Where that cannot be done, the next viewer compares again."""
        if not self._is_new or self._path is None:
            return
        self._is_new = False
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, [json.dumps(self._files).encode()])
            others = sorted(self._path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for old in others[:-_MOST_TRIALS]:
                remove(old)


def _place(folder: Path) -> Path | None:
    name = hashlib.blake2b(os.fsencode(folder.absolute()), digest_size=16).hexdigest()
    try:
        return user_cache() / "checked" / f"{name}.json"
    except RuntimeError:  # nobody is at home
        return None

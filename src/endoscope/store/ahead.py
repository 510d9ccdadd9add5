"""Checksums are compared beside whatever else is going on, so that nobody has to wait for them.

    Ahead(trial)     before there is a reader: while numpy and pyarrow are imported, which takes as long
    check(...)       later, for tables that nobody has asked for yet

Nothing here needs numpy or pyarrow, no lock is held, and Python lets other threads run while it sums up bytes. What
does not fit its checksum is not reported here: the reader meets it again, and knows what to say about it.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable
from io import FileIO
from itertools import groupby
from pathlib import Path

from endoscope.errors import EndoscopeError
from endoscope.store import paths
from endoscope.store.chunks import Chunk
from endoscope.store.contents import Contents
from endoscope.store.files import Span
from endoscope.store.journal import JournalReader
from endoscope.store.remembered import Remembered

_FIRST = ("steps", "keys", "metrics", "stats")  # what a look at a trial begins with

Verified = set["Chunk | tuple[str, Span]"]


def check(folder: Path, chunks: Iterable[Chunk], verified: Verified) -> None:
    """Add the chunks that fit their checksums; `verified` may be in use meanwhile."""
    remembered = Remembered(folder)
    for file, several in groupby(chunks, key=lambda chunk: chunk.file):
        if Path(file).is_absolute() or ".." in Path(file).parts:
            continue
        of_file = [chunk for chunk in several if chunk.crc is not None]
        before = remembered.state(file)
        known = remembered.known(file, before)
        verified.update(chunk for chunk in of_file if chunk.end <= known)
        todo = [chunk for chunk in of_file if chunk not in verified]
        if not todo:
            continue
        try:
            with (folder / file).open("rb", buffering=0) as opened:
                _check(opened, todo, verified)
        except (OSError, ValueError):
            continue  # it has gone, or is empty
        if verified.issuperset(of_file):
            remembered.remember(file, before, of_file[-1].end)
    remembered.save()


def _check(opened: FileIO, chunks: Iterable[Chunk], verified: Verified) -> None:
    """Read, not mapped: a page that is touched for the first time costs more than the copy of its bytes."""
    buffer = bytearray()
    for chunk in chunks:
        size = chunk.end - chunk.start
        if len(buffer) < size:
            buffer = bytearray(size)
        with memoryview(buffer) as whole, whole[:size] as piece:
            opened.seek(chunk.start)
            if opened.readinto(piece) == size and zlib.crc32(piece) == chunk.crc:
                verified.add(chunk)


class Ahead:
    """The journal of a trial, read in a thread of its own, and then checksums of what it names."""

    def __init__(self, trial: Path, rank: int = 0) -> None:
        self.trial = trial
        self.verified: Verified = set()
        self._folder = paths.rank_folder(trial, rank)
        self._read: tuple[JournalReader, Contents] | None = None
        self._is_read = threading.Event()
        threading.Thread(target=self._run, name="endoscope-ahead", daemon=True).start()

    def take(self) -> tuple[JournalReader, Contents] | None:
        """The journal and what it says, to be carried on with; None if a reader had better look for itself."""
        self._is_read.wait()
        found, self._read = self._read, None
        return found

    def _run(self) -> None:
        chunks: list[Chunk] = []
        try:
            journal, contents = JournalReader(self._folder), Contents(self._folder)
            commits = journal.read()
            if commits is not None and not journal.damaged:
                contents.take_up(commits)
                chunks = [chunk for table in _FIRST for chunk in contents.chunks[table]]
                self._read = None if contents.misses_files else (journal, contents)
        except (EndoscopeError, OSError, ValueError, KeyError, TypeError):
            self._read = None
        finally:
            self._is_read.set()
        check(self._folder, chunks, self.verified)

"""Putting bytes into files so that a failure leaves nothing half-done that anybody would read.

AppendFile   append ─► … ─► settle     what was appended is part of the file from now on
                      └──► revert     it never was: a torn tail is cut off, at the latest before the next append
write_whole  a file that is there completely or not at all
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from endoscope.store.paths import UNFINISHED

Bytes = bytes | memoryview


class Span(NamedTuple):
    """Bytes of a file and their checksum."""

    start: int
    end: int
    crc: int


class AppendFile:
    """A file that only grows; used by one thread of one process."""

    def __init__(self, path: Path, size: int | None = None) -> None:
        """A new file; or one of which so many bytes stay, and what a crash has left behind them is cut off."""
        self.path = path
        self.size = size or 0  # what is settled
        self._written = self.size
        self._is_torn = False
        how = os.O_CREAT | os.O_EXCL if size is None else 0
        self._descriptor = os.open(path, how | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        if size is not None:
            self._cut_off()

    def append(self, data: Bytes) -> Span:
        """Write behind what was appended before; nobody may rely on it before `settle`."""
        if self._is_torn:
            self._cut_off()
        self._is_torn = True  # until settled: also when the next line fails half-way
        start = self._written
        write_all(self._descriptor, data)
        self._written += len(data)
        return Span(start, self._written, zlib.crc32(data))

    def settle(self) -> None:
        self.size = self._written
        self._is_torn = False

    def revert(self) -> None:
        """Forget what was appended since the last `settle`. The disk may refuse now; then it is done later."""
        try:
            self._cut_off()
        except OSError:
            self._is_torn = True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _cut_off(self) -> None:
        os.ftruncate(self._descriptor, self.size)
        os.lseek(self._descriptor, self.size, os.SEEK_SET)
        self._written = self.size
        self._is_torn = False


def write_whole(path: Path, data: Bytes) -> Span:
    """Write a file under another name and rename it, so that nobody meets a part of it."""
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with unfinished.open("wb", buffering=0) as file:
            write_all(file.fileno(), data)
        os.replace(unfinished, path)
    except BaseException:
        remove(unfinished)
        raise
    return Span(0, len(data), zlib.crc32(data))


def write_all(descriptor: int, data: Bytes) -> None:
    """Write all bytes. A disk that is nearly full takes a part of them, and raises at the next attempt."""
    waiting = memoryview(data).cast("B")
    while len(waiting):
        waiting = waiting[_write_some(descriptor, [waiting]) :]


def _write_some(descriptor: int, buffers: Sequence[Bytes]) -> int:
    """The one place where bytes go to the disk; tests put a full or a slow disk here."""
    return os.write(descriptor, buffers[0])


def remove(path: Path) -> None:
    """Remove a file if it is there and can be."""
    with contextlib.suppress(OSError):
        path.unlink()


def sync(path: Path) -> None:
    """Make a file survive a power failure; one that has gone meanwhile need not."""
    with contextlib.suppress(FileNotFoundError), path.open("r+b", buffering=0) as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make new and renamed files of a folder survive a power failure, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

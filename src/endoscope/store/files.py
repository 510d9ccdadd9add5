"""Putting bytes into files so that a failure leaves nothing half-done that anybody would read.

AppendFile   append ─► … ─► settle     what was appended is part of the file from now on
                      └──► revert     it never was: a torn tail is cut off, at the latest before the next append
write_whole  a file that is there completely or not at all
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from endoscope.store import direct
from endoscope.store.checksums import Bytes, checksum
from endoscope.store.paths import UNFINISHED

_MOST_BUFFERS = 512  # of one writev call; systems allow 1024
_CAN_WRITE_SEVERAL = hasattr(os, "writev")


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
        self.name = path.name
        self.size = size or 0  # what is settled
        self._written = self.size
        self._is_torn = False
        self.needs_sync = False
        how = os.O_CREAT | os.O_EXCL if size is None else 0
        self._descriptor = os.open(path, how | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        if size is not None:
            self._cut_off()

    def append(self, buffers: Sequence[Bytes]) -> Span:
        """Write behind what was appended before; nobody may rely on it before `settle`."""
        if self._is_torn:
            self._cut_off()
        self._is_torn = True  # until settled: also when the next line fails half-way
        start = self._written
        self._written += write_all(self._descriptor, buffers)
        return Span(start, self._written, checksum(buffers))

    def settle(self) -> None:
        self.needs_sync |= self._written > self.size
        self.size = self._written
        self._is_torn = False

    def revert(self) -> None:
        """Forget what was appended since the last `settle`. The disk may refuse now; then it is done later."""
        try:
            self._cut_off()
        except OSError:
            self._is_torn = True

    def sync(self) -> None:
        """Wait until what is settled would survive a power failure."""
        if self.needs_sync:
            os.fsync(self._descriptor)
            self.needs_sync = False

    def hand_over(self) -> int | None:
        """A descriptor for whoever syncs what is settled, and closes it then; None if there is nothing to do."""
        if not self.needs_sync:
            return None
        descriptor = os.dup(self._descriptor)
        self.needs_sync = False
        return descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _cut_off(self) -> None:
        os.ftruncate(self._descriptor, self.size)
        os.lseek(self._descriptor, self.size, os.SEEK_SET)
        self._written = self.size
        self._is_torn = False


def write_whole(path: Path, buffers: Sequence[Bytes], *, sync: bool = False) -> Span:
    """Write a file under another name and rename it, so that nobody meets a part of it."""
    unfinished = path.with_name(path.name + UNFINISHED)
    size = sum(map(len, buffers))
    try:
        crc = None if sync or size < direct.WORTH else direct.write(unfinished, buffers)
        if crc is None:
            _write_new(unfinished, buffers, sync)
        os.replace(unfinished, path)
    except BaseException:
        remove(unfinished)
        raise
    return Span(0, size, checksum(buffers) if crc is None else crc)


def _write_new(path: Path, buffers: Sequence[Bytes], sync: bool) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        write_all(descriptor, buffers)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, buffers: Sequence[Bytes]) -> int:
    """Write all bytes; returns how many these are.

    A disk that is nearly full takes a part of them, and raises at the next attempt.
    """
    size = sum(map(len, buffers))
    written = _write_some(descriptor, buffers[:_MOST_BUFFERS]) if size else 0
    if written < size:
        _write_rest(descriptor, buffers, written)
    return size


def _write_rest(descriptor: int, buffers: Sequence[Bytes], written: int) -> None:
    """What is left when so many bytes are written."""
    waiting = [memoryview(buffer).cast("B") for buffer in buffers]
    while True:
        done = 0
        while done < len(waiting) and written >= len(waiting[done]):
            written -= len(waiting[done])
            done += 1
        del waiting[:done]
        if not waiting:
            return
        waiting[0] = waiting[0][written:]
        written = _write_some(descriptor, waiting[:_MOST_BUFFERS])


def _write_some(descriptor: int, buffers: Sequence[Bytes]) -> int:
    if _CAN_WRITE_SEVERAL and len(buffers) > 1:
        return os.writev(descriptor, buffers)
    return os.write(descriptor, buffers[0])


def remove(path: Path) -> int:
    """Remove a file if it is there; returns how many bytes that frees."""
    try:
        size = path.stat().st_size
        path.unlink()
    except OSError:
        return 0
    return size


def sync_folder(folder: Path) -> None:
    """Make new and renamed files of a folder survive a power failure, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)

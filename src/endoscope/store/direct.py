"""Large files go to the disk past the page cache, where the system can do that.

A recording is written once and read rarely. Through the page cache it would push out what training reads again and
again, its data set above all, and every page that the cache grows by costs processor time.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from endoscope.store.checksums import Bytes, checksum

WORTH = 2**20  # bytes; smaller files are left to the cache
_CHUNK = 2 * 2**20
_BLOCK = 4096  # places in memory and in the file must be multiples of the disk's block
_CANNOT = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)

_own = threading.local()


def write(path: Path, buffers: Sequence[Bytes]) -> int | None:
    """Write a new file of exactly these bytes and return their checksum.

    None, with a part of it there at most, if it must be done otherwise.
    """
    flag = getattr(os, "O_DIRECT", 0)
    if not flag or not hasattr(os, "ftruncate"):
        return None
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | flag, 0o666)
    except OSError as error:
        _refused(error)
        return None
    try:
        crc = _write_chunks(descriptor, buffers)
        os.ftruncate(descriptor, sum(map(len, buffers)))  # the last block was filled up
        return crc
    except OSError as error:
        _refused(error)
        return None
    finally:
        os.close(descriptor)


def _refused(error: OSError) -> None:
    """Some file systems, those in memory or on a network, cannot; a full disk is everybody's problem."""
    if error.errno not in _CANNOT:
        raise error


def _write_chunks(descriptor: int, buffers: Sequence[Bytes]) -> int:
    """Returns the checksum, which is taken of each chunk while that is in the cache."""
    chunk, filled, crc = _staging(), 0, 0
    for buffer in buffers:
        waiting = memoryview(buffer).cast("B")
        while len(waiting):
            part = waiting[: _CHUNK - filled]
            chunk[filled : filled + len(part)] = part
            filled += len(part)
            waiting = waiting[len(part) :]
            if filled == _CHUNK:
                crc = checksum([chunk], crc)
                _write_all(descriptor, chunk)
                filled = 0
    if filled:
        crc = checksum([chunk[:filled]], crc)
        whole = -(-filled // _BLOCK) * _BLOCK
        chunk[filled:whole] = bytes(whole - filled)
        _write_all(descriptor, chunk[:whole])
    return crc


def _write_all(descriptor: int, chunk: memoryview) -> None:
    while len(chunk):
        chunk = chunk[os.write(descriptor, chunk) :]


def _staging() -> memoryview:
    """Memory at the beginning of a page; each thread keeps its own, because fresh pages are dear."""
    staging: memoryview | None = getattr(_own, "staging", None)
    if staging is None:
        staging = _own.staging = memoryview(mmap.mmap(-1, _CHUNK))
    return staging

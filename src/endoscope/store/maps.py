"""Files of a recording as memory, mapped when first needed and again when they have grown.

Only bytes below a committed end are looked at. These never change, and a writer never cuts a file below them, so a map
stays valid while the file grows. A file that was removed stays readable for those who had mapped it (on a network file
system: for those on the same machine).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple


class _Map(NamedTuple):
    data: memoryview
    identity: tuple[int, int]  # of the file: device and inode


class Maps:
    """File, relative to a folder -> its bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: dict[str, _Map] = {}

    def get(self, file: str, end: int) -> memoryview:
        """The bytes of a file, at least up to `end` if there are so many; raises OSError if there is no such file."""
        found = self._maps.get(file)
        if found is None or len(found.data) < end:
            if Path(file).is_absolute() or ".." in Path(file).parts:  # a recording may have been made to lead astray
                raise OSError(f"{file!r} leads out of the recording")
            found = self._maps[file] = _map(self._folder / file)
        return found.data

    @contextmanager
    def reading(self, file: str) -> Iterator[Callable[[int, int], bytes]]:
        """A function (size, start) -> bytes of a mapped file, for short pieces from many places.

        They are not taken out of the mapped memory: a single number in it brings in 64 KB around it, so a series would
        hold as much memory as there is in the file, and would take twice as long.
        """
        with self._opened(file) as descriptor:
            if descriptor is not None:
                yield partial(os.pread, descriptor)
            else:
                data = self._maps[file].data
                yield lambda size, start: bytes(data[start : start + size])

    @contextmanager
    def _opened(self, file: str) -> Iterator[int | None]:
        """A mapped file as a descriptor; None if it has gone, and only the map is left, or cannot be."""
        descriptor = None
        try:
            if hasattr(os, "pread"):
                descriptor = os.open(os.path.join(self._folder, file), os.O_RDONLY)
        except OSError:
            pass
        try:
            is_same = descriptor is not None and _identity(descriptor) == self._maps[file].identity
            yield descriptor if is_same else None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def release(self) -> None:
        """Give the memory of mapped files back; the system keeps what it likes, and maps what is read again."""
        for found in self._maps.values():
            mapped = found.data.obj
            if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def forget(self, file: str) -> None:
        self._maps.pop(file, None)


def _map(path: Path) -> _Map:
    with path.open("rb") as file:
        identity = _identity(file.fileno())
        if file.seek(0, os.SEEK_END) == 0:
            return _Map(memoryview(b""), identity)  # nothing cannot be mapped
        return _Map(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), identity)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino

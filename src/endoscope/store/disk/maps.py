"""Files of a recording as memory, mapped when first needed and again when they have grown.

Only bytes below a committed end are looked at. These never change, and a writer never cuts a file below them, so a map
stays valid while the file grows. A file that was removed stays readable for those who had mapped it (on a network file
system: for those on the same machine).
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path


class Maps:
    """File, relative to a folder -> its bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: dict[str, memoryview] = {}

    def get(self, file: str, end: int) -> memoryview:
        """The bytes of a file, at least up to `end` if there are so many; raises OSError if there is no such file."""
        found = self._maps.get(file)
        if found is None or len(found) < end:
            if Path(file).is_absolute() or ".." in Path(file).parts:  # a recording may have been made to lead astray
                raise OSError(f"{file!r} leads out of the recording")
            found = self._maps[file] = _map(self._folder / file)
        return found

    def release(self) -> None:
        """Give the memory of mapped files back; the system keeps what it likes, and maps what is read again."""
        for found in self._maps.values():
            if isinstance(found.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                found.obj.madvise(mmap.MADV_DONTNEED)

    def forget(self, file: str) -> None:
        self._maps.pop(file, None)


def _map(path: Path) -> memoryview:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return memoryview(b"")  # nothing cannot be mapped
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError as error:  # it is being cut off at this moment
            raise OSError(str(error)) from error

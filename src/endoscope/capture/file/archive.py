"""One file of named parts: a zip without compression, so that a part can be read where it lies.

Every part ends with the checksum of zip. Small parts are checked when they are read; the values, which are read one by
one, have checksums of their own (`values.py`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from endoscope.errors import BadArgument, NotATrace, StoreError

FORMAT = 1  # what the parts mean; `store/TRACE_FORMAT.md`
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a part: the lengths of its name and of what follows the name
_MOST_BYTES = 1 << 34  # of a part that is read whole; a damaged number must not ask for all memory


class Archive:
    """A file that can be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self._parts = {info.filename: info for info in archive.infolist()}
        except FileNotFoundError:
            raise NotATrace(f"There is no file {path}.") from None
        except IsADirectoryError:
            raise NotATrace(
                f"{path} is a folder, and a trace is one file. If it is a recording: endoscope.open({str(path)!r})."
            ) from None
        except PermissionError as error:
            raise NotATrace(f"{path} cannot be read: {error.strerror}.") from None
        except (zipfile.BadZipFile, OSError, ValueError, struct.error, NotImplementedError, UnicodeError) as error:
            raise self.damaged(f"it is no zip file, or its end is missing ({error})") from None

    def damaged(self, why: str) -> NotATrace:
        return NotATrace(
            f"{self.path} is not a trace, or it is damaged: {why}. Save the trace again, or copy it again."
        )

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read(self, name: str) -> bytes:
        """A whole part; checked."""
        start, size = self.place(name)
        if size > _MOST_BYTES:
            raise self.damaged(f"{name} says that it has {size} bytes")
        data = self.bytes_at(start, size)
        if zlib.crc32(data) != self._parts[name].CRC:
            raise self.damaged(f"the checksum of {name} does not fit")
        return data

    def place(self, name: str) -> tuple[int, int]:
        """Where a part begins in the file, and how many bytes it has."""
        info = self._parts.get(name)
        if info is None:
            raise self.damaged(f"{name} is missing")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise self.damaged(f"{name} is compressed, which parts of a trace are not")
        lengths = self.bytes_at(info.header_offset, _LOCAL_HEADER.size)
        start = info.header_offset + _LOCAL_HEADER.size + sum(_LOCAL_HEADER.unpack(lengths))
        return start, info.file_size

    def bytes_at(self, start: int, size: int) -> bytes:
        try:
            with open(self.path, "rb") as file:
                file.seek(start)
                data = file.read(size)
        except (OSError, ValueError, OverflowError) as error:
            raise NotATrace(f"{self.path} cannot be read any more: {error}.") from None
        if len(data) != size:
            raise self.damaged("it ends too early")
        return data


class Writer:
    """A file that is being written; parts come one after the other."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def write(self, name: str, data: bytes) -> None:
        with self.part(name) as file:
            file.write(data)

    def part(self, name: str) -> IO[bytes]:
        return self._archive.open(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True)


def place_for(path: str | os.PathLike[str]) -> Path:
    """Where a file may be written; says what is wrong otherwise."""
    place = Path(path).expanduser()
    if place.is_dir():
        raise BadArgument(f"{place} is a folder. Type the name of a file in it: {place / 'x.trace'}, for example.")
    if not place.parent.is_dir():
        raise BadArgument(f"The folder {place.parent} does not exist; create it before writing into it.")
    return place


def copied(source: Path, path: str | os.PathLike[str]) -> Path:
    """A trace that was loaded, saved again."""
    place = place_for(path)
    if not (place.exists() and place.samefile(source)):
        with _replacing(place) as unfinished:
            shutil.copyfile(source, unfinished)
    return place


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Writer]:
    with _replacing(path) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        yield Writer(archive)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """The file is there when all of it is written, and what stood there before stays until then."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")  # another rank may write the same path
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}. Nothing was changed there.") from error
    finally:
        unfinished.unlink(missing_ok=True)

"""`save=endoscope.to_folder(path)`: values go to disk as they are made, so a model may be larger than memory.

A value is written the moment it exists, so nothing that happens later can change it, and nothing but its place is kept.
What cannot be written (a sparse tensor, say) is held in memory instead.
"""

from __future__ import annotations

import os
import zlib
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.file.written import CannotWrite, Piece, as_piece
from endoscope.capture.record.keeping import ToFolder
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.regions import unwrapped
from endoscope.capture.record.values import TensorStore
from endoscope.errors import BadArgument, NotATrace, StoreError

VALUES = "values.bin"


class Place(NamedTuple):
    """Where a value lies."""

    start: int
    size: int
    dtype: torch.dtype
    shape: torch.Size
    strides: tuple[int, ...] | None
    crc: int


def to_folder(path: str | os.PathLike[str]) -> ToFolder:
    """For `save=`: keep the values of a trace in this folder instead of memory, for models that are larger than that.

    The trace reads a value when it is asked for. The folder is needed as long as the trace is; `trace.save()` makes
    one file of all.
    """
    return ToFolder(path)


class FolderKeeper:
    """Writes every value and holds none."""

    idle = names_modules = False

    def __init__(self, folder: ToFolder) -> None:
        self.types: dict[str, bool] = {}  # of no type it is known that nothing is kept
        self.recorder: Recorder
        self.places: dict[int, Place] = {}
        self.file = folder.path / VALUES
        self._end = 0
        self._out: IO[bytes] | None = None  # opened with the first value
        if self.file.exists():
            raise BadArgument(
                f"{self.file} is there already: the values of another trace. Type another folder, or remove that one."
            )

    def wants(self, node: int, slot: int, tensor: Tensor) -> bool:
        """False: nothing need be held."""
        if slot in self.places:
            return False
        try:
            whole = unwrapped(tensor)  # inside of `vmap`, with its batch; of a distributed one, the part that is here
            piece = as_piece(whole)
            data = piece.bytes()
        except CannotWrite:
            return True
        self._write(data)
        size = len(data)
        self.places[slot] = Place(self._end, size, piece.dtype, whole.shape, piece.strides, zlib.crc32(data))
        self._end += size
        return False

    def _write(self, data: Any) -> None:
        try:
            if self._out is None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._out = self.file.open("xb")
            self._out.write(data)
        except OSError as error:
            raise StoreError(
                f"{self.file} cannot be written: {error.strerror or error}. Free some space, or type another folder."
            ) from error

    def flush(self) -> None:
        """The trace is looked at while it runs."""
        if self._out is not None and not self._out.closed:
            self._out.flush()

    def place(self, call: int) -> str:
        return "no"

    def module_ended(self, call: int) -> None: ...

    def settle(self, trace: Any) -> None:
        if self._out is None:
            return
        try:
            self._out.close()
        except OSError as error:  # what was buffered is written now
            raise StoreError(f"{self.file} cannot be written: {error.strerror or error}. Free some space.") from error

    def values(self, recorder: Recorder) -> TensorStore:
        return FolderValues(recorder, self)


class FolderValues(TensorStore):
    """Reads what the keeper has written."""

    def __init__(self, recorder: Recorder, keeper: FolderKeeper) -> None:
        super().__init__(recorder)
        self._file = keeper.file
        self._places = keeper.places
        self._flush = keeper.flush

    def tensor(self, slot: int) -> Tensor:
        place = self._places.get(slot)
        if place is None:
            return super().tensor(slot)
        if not place.size:
            return torch.empty(place.shape, dtype=place.dtype)
        data = self._read(place)
        flat = torch.frombuffer(data, dtype=torch.uint8).view(place.dtype)
        return flat.reshape(place.shape) if place.strides is None else flat.as_strided(place.shape, place.strides)

    def piece(self, slot: int) -> Piece | None:
        """To be written elsewhere without being held."""
        place = self._places.get(slot)
        if place is None:
            return None
        elements = place.size // place.dtype.itemsize
        return Piece(place.dtype, (elements,), place.strides, None, lambda: self._read(place), tuple(place.shape))

    def _read(self, place: Place) -> bytearray:
        self._flush()
        try:
            with self._file.open("rb") as file:
                file.seek(place.start)
                data = bytearray(file.read(place.size))
        except OSError as error:
            raise NotATrace(f"{self._file}, which holds the values of this trace, cannot be read: {error}.") from None
        if zlib.crc32(data) != place.crc:
            raise NotATrace(f"{self._file}, which holds the values of this trace, is damaged.")
        return data

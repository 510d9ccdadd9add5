"""One segment of a table: where the columns of its chunks begin, and how numbers of many chunks are read at once.

    few numbers of each chunk            one short read per chunk
    the same column again and again      read whole, a few megabytes at a time, and kept: no reads at all

Whoever walks through a thousand tensors asks for the same few columns a thousand times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

MOST_KEPT_BYTES = 56_000_000
_MOST_AT_ONCE_BYTES = 3_000_000  # are read whole on top of what was asked for: a few milliseconds


class Part(NamedTuple):
    """A run of rows in one buffer of chunks that have the same tensors."""

    layout: int
    buffer: int  # which of the chunk's
    kind: np.dtype
    rows: int  # so many numbers are in the buffer
    first: int  # the run
    many: int


class Kept:
    """Columns that were read whole, up to a number of bytes; those that were asked for last stay."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, int, int], np.ndarray] = OrderedDict()
        self.bytes = 0
        self._asked: set[str] = set()  # columns that were asked for before: once is no habit
        self._allowed = 0

    def begin(self, column: str) -> None:
        """Somebody asks for a column of all segments."""
        self._allowed = _MOST_AT_ONCE_BYTES if column in self._asked else 0
        self._asked.add(column)

    def get(self, key: tuple[str, int, int]) -> np.ndarray | None:
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def allows(self, size: int) -> bool:
        """Whether a column of so many bytes may be read whole now."""
        if size > self._allowed:
            return False
        self._allowed -= size
        return True

    def put(self, key: tuple[str, int, int], values: np.ndarray) -> None:
        before = self._found.pop(key, None)
        self.bytes += values.nbytes - (before.nbytes if before is not None else 0)
        self._found[key] = values
        while self.bytes > MOST_KEPT_BYTES:
            self.bytes -= self._found.popitem(last=False)[1].nbytes


@dataclass(slots=True)
class Segment:
    """One file, and the chunks in it."""

    file: str
    reading: Callable[[], AbstractContextManager[Callable[[int, int], bytes]]]  # (size, start) -> bytes
    places: dict[str, tuple[int, ...]]
    types: dict[str, pa.DataType]
    kept: Kept
    ordinals: list[int] = field(default_factory=list)
    buffers: list[np.ndarray] = field(default_factory=list)  # chunk -> where its buffers begin
    of_layout: dict[int, list[int]] = field(default_factory=dict)  # layout -> chunks
    _stacked: np.ndarray | None = None

    def starts(self, chunks: Sequence[int], buffer: int) -> np.ndarray:
        """Where one of the buffers begins in each of some chunks."""
        if self._stacked is None or len(self._stacked) < len(self.buffers):
            self._stacked = np.array(self.buffers)
        return self._stacked[chunks, buffer]

    def ordinals_of(self, chunks: Sequence[int]) -> np.ndarray:
        return np.array([self.ordinals[chunk] for chunk in chunks], np.int64)

    def rows(self, part: Part) -> np.ndarray:
        """The run of rows of every chunk of the layout, [chunks, rows]."""
        chunks, key = self.of_layout[part.layout], (self.file, part.layout, part.buffer)
        whole = self.kept.get(key)
        known = 0 if whole is None else len(whole)
        if known < len(chunks) and self.kept.allows((len(chunks) - known) * part.rows * part.kind.itemsize):
            new = self.read(self.starts(chunks[known:], part.buffer), part.kind, part.rows)
            whole = new if whole is None else np.concatenate([whole, new])
            self.kept.put(key, whole)
            known = len(chunks)
        end = part.first + part.many
        if whole is not None and known == len(chunks):
            return whole[:, part.first : end]
        starts = self.starts(chunks[known:], part.buffer) + part.first * part.kind.itemsize
        rest = self.read(starts, part.kind, part.many)
        return rest if whole is None else np.concatenate([whole[:, part.first : end], rest])

    def read(self, starts: np.ndarray, kind: np.dtype, count: int) -> np.ndarray:
        """So many numbers from each of some places, [places, count]."""
        size = count * kind.itemsize
        return np.frombuffer(self._bytes_at(starts.tolist(), [size] * len(starts)), kind).reshape(len(starts), count)

    def read_lists(self, starts: np.ndarray, lengths: np.ndarray, kind: np.dtype) -> np.ndarray:
        """Lists of different lengths, one after the other."""
        return np.frombuffer(self._bytes_at(starts.tolist(), (lengths * kind.itemsize).tolist()), kind)

    def _bytes_at(self, starts: list[int], sizes: list[int]) -> bytes:
        with self.reading() as read:
            return b"".join([read(size, start) for size, start in zip(sizes, starts, strict=True)])

"""Numbers of one table over all steps, taken straight out of the segments.

    keys ─► rows in each layout ─► places in the files ─► one short read for each step

Steps of one kind have the same tensors in the same order. The list of their keys, a layout, is kept once, so the row of
a tensor is looked up once per layout and not once per step. After that a series over a thousand steps reads a thousand
numbers and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.store import layout
from endoscope.store.chunks import Chunk
from endoscope.store.maps import Maps


class Column(NamedTuple):
    """Numbers, and the recorded steps that they are from."""

    ordinals: np.ndarray  # int64
    values: np.ndarray


class Block(NamedTuple):
    """One column of several steps that have the same tensors."""

    ordinals: np.ndarray  # int64
    keys: np.ndarray  # of the tensors, in the order of the file
    values: np.ndarray  # [steps, tensors]


class Lists(NamedTuple):
    """One list per step: where its numbers lie."""

    ordinals: np.ndarray
    files: np.ndarray  # which file
    starts: np.ndarray  # byte of the first number
    lengths: np.ndarray


@dataclass(slots=True)
class _Segment:
    """One mapped file, and the chunks in it."""

    data: np.ndarray  # uint8
    opened: Callable[[], AbstractContextManager[int | None]]  # the same file, to be read from
    places: dict[str, tuple[int, ...]]
    types: dict[str, pa.DataType]
    ordinals: list[int] = field(default_factory=list)
    buffers: list[np.ndarray] = field(default_factory=list)  # chunk -> where its buffers begin
    of_layout: dict[int, list[int]] = field(default_factory=dict)  # layout -> chunks
    _stacked: np.ndarray | None = None

    def view(self, kind: np.dtype) -> np.ndarray:
        return self.data[: len(self.data) // 8 * 8].view(kind)

    def starts(self, chunks: list[int], buffer: int) -> np.ndarray:
        """Where one of the buffers begins in each of some chunks."""
        if self._stacked is None or len(self._stacked) < len(self.buffers):
            self._stacked = np.array(self.buffers)
        return self._stacked[chunks, buffer]

    def ordinals_of(self, chunks: list[int]) -> np.ndarray:
        return np.array([self.ordinals[chunk] for chunk in chunks], np.int64)

    def read(self, starts: np.ndarray, kind: np.dtype, count: int) -> np.ndarray:
        """So many numbers from each of some places, [places, count].

        Not taken out of the mapped memory: a single number in it brings in 64 KB around it, so a series would hold as
        much memory as there is in the file, and would take twice as long.
        """
        size = count * kind.itemsize
        with self.opened() as file:
            if file is None:
                data = b"".join([self.data[start : start + size].tobytes() for start in starts.tolist()])
            else:
                data = b"".join([os.pread(file, size, start) for start in starts.tolist()])
        return np.frombuffer(data, kind).reshape(len(starts), count)


class Columns:
    """All chunks of one of the tables that belong to steps."""

    def __init__(self) -> None:
        self._segments: dict[str, _Segment] = {}
        self._layouts: dict[bytes, int] = {}  # bytes of the key column -> number of the layout
        self._keys: list[np.ndarray] = []  # number of the layout -> keys

    def add(self, chunk: Chunk, maps: Maps, schema: pa.Schema) -> None:
        """Take up one chunk; raises ValueError if it is no record batch with keys."""
        segment, data = self._segments.get(chunk.file), maps.get(chunk.file, chunk.end)
        if segment is None:
            types = {column.name: column.type for column in schema}
            segment = _Segment(_bytes(data), partial(maps.opened, chunk.file), layout.buffer_places(schema), types)
            self._segments[chunk.file] = segment
        elif len(segment.data) < chunk.end:
            segment.data = _bytes(data)
        batch = layout.batch_in(data, chunk.start)
        if batch.end > chunk.end or "key" not in segment.places:
            raise ValueError("not a chunk of this table")
        start = int(batch.buffers[segment.places["key"][0]])
        keys = bytes(data[start : start + 4 * batch.rows])
        number = self._layouts.setdefault(keys, len(self._layouts))
        if number == len(self._keys):
            self._keys.append(np.frombuffer(keys, "<i4"))
        ordinal = chunk.ordinal
        if ordinal < 0 and batch.rows:
            ordinal = int(segment.view(np.dtype("<i4"))[int(batch.buffers[segment.places["ordinal"][0]]) // 4])
        segment.ordinals.append(ordinal)
        segment.of_layout.setdefault(number, []).append(len(segment.buffers))
        segment.buffers.append(batch.buffers)

    def numbers(self, column: str, keys: Collection[int]) -> Column:
        """A plain column for all rows of some keys; a segment without the column has no rows."""
        ordinals, values = [np.empty(0, np.int64)], [np.empty(0)]
        for block in self.blocks(column, keys):
            ordinals.append(np.repeat(block.ordinals, len(block.keys)))
            values.append(block.values.ravel())
        return _in_order(Column(np.concatenate(ordinals), np.concatenate(values)))

    def blocks(self, column: str, keys: Collection[int]) -> Iterator[Block]:
        """The same, one block for the steps of one layout in one file."""
        for segment, _, layout_number, chunks, rows in self._groups(column, keys):
            kind = np.dtype(segment.types[column].to_pandas_dtype())
            first = int(rows[0])
            starts = segment.starts(chunks, segment.places[column][0]) + first * kind.itemsize
            values = segment.read(starts, kind, int(rows[-1]) + 1 - first)
            if values.shape[1] != len(rows):
                values = values[:, rows - first]
            yield Block(segment.ordinals_of(chunks), self._keys[layout_number][rows], values)

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        """The same for a column of lists: where the lists are."""
        found = [Lists(*(np.empty(0, np.int64) for _ in range(4)))]
        for segment, number, _, chunks, rows in self._groups(column, keys):
            width = np.dtype(segment.types[column].value_type.to_pandas_dtype()).itemsize
            at, values = (segment.starts(chunks, place) for place in segment.places[column])
            first = int(rows[0])
            offsets = segment.read(at + 4 * first, np.dtype("<i4"), int(rows[-1]) + 2 - first).astype(np.int64)
            begins, ends = offsets[:, rows - first], offsets[:, rows - first + 1]
            starts, lengths = (values[:, None] + begins * width).ravel(), (ends - begins).ravel()
            ordinals = np.repeat(segment.ordinals_of(chunks), len(rows))
            found.append(Lists(ordinals, np.full(len(starts), number), starts, lengths))
        joined = Lists(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        order = np.argsort(joined.ordinals, kind="stable")
        return Lists(*(part[order] for part in joined))

    def elements(self, column: str, lists: Lists, positions: np.ndarray) -> np.ndarray:
        """One number of each list, as float64; NaN where the list is too short."""
        values = np.full(len(lists.starts), np.nan)
        for segment, kind, chosen in self._files_of(column, lists):
            chosen = chosen & (positions >= 0) & (positions < lists.lengths)
            values[chosen] = segment.read(lists.starts[chosen] + positions[chosen] * kind.itemsize, kind, 1)[:, 0]
        return values

    def contents(self, column: str, lists: Lists) -> np.ndarray:
        """All numbers of all lists, one list after the other, as float64."""
        ends = np.cumsum(lists.lengths)
        values = np.empty(int(ends[-1]) if len(ends) else 0)
        for segment, kind, chosen in self._files_of(column, lists):
            for length in np.unique(lists.lengths[chosen]).tolist():
                same = np.flatnonzero(chosen & (lists.lengths == length))
                places = (ends[same] - length)[:, None] + np.arange(length)
                values[places] = segment.read(lists.starts[same], kind, length)
        return values

    def _files_of(self, column: str, lists: Lists) -> Iterator[tuple[_Segment, np.dtype, np.ndarray]]:
        """(segment, type of the numbers, which of the lists lie in it)."""
        segments = list(self._segments.values())
        for number in np.unique(lists.files).tolist():
            kind = np.dtype(segments[number].types[column].value_type.to_pandas_dtype())
            yield segments[number], kind, lists.files == number

    def _groups(self, column: str, keys: Collection[int]) -> Iterator[tuple[_Segment, int, int, list[int], np.ndarray]]:
        """(segment, its number, number of a layout, chunks of that layout, rows of the keys in it)."""
        largest = max((int(found.max(initial=0)) for found in self._keys), default=0)
        wanted = np.zeros(largest + 1, dtype=bool)
        wanted[[key for key in keys if key <= largest]] = True
        rows = [np.flatnonzero(wanted[found]) for found in self._keys]
        for number, segment in enumerate(self._segments.values()):
            if column not in segment.places:
                continue
            for layout_number, chunks in segment.of_layout.items():
                if len(rows[layout_number]):
                    yield segment, number, layout_number, chunks, rows[layout_number]


def _in_order(column: Column) -> Column:
    if np.all(column.ordinals[1:] >= column.ordinals[:-1]):
        return column
    order = np.argsort(column.ordinals, kind="stable")
    return Column(column.ordinals[order], column.values[order])


def _bytes(data: memoryview) -> np.ndarray:
    return np.frombuffer(data, np.uint8)

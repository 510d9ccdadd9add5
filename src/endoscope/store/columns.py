"""Numbers of one table over all steps, taken straight out of the mapped segments.

    keys ─► rows in each layout ─► places in the files ─► one gather

Steps of one kind have the same tensors in the same order. The list of their keys, a layout, is kept once, so the row of
a tensor is looked up once per layout and not once per step. After that a series over a thousand steps reads a thousand
numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.store import layout
from endoscope.store.chunks import Chunk


class Column(NamedTuple):
    """Numbers, and the recorded steps that they are from."""

    ordinals: np.ndarray  # int64
    values: np.ndarray


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


class Columns:
    """All chunks of one of the tables that belong to steps."""

    def __init__(self) -> None:
        self._segments: dict[str, _Segment] = {}
        self._layouts: dict[bytes, int] = {}  # bytes of the key column -> number of the layout
        self._keys: list[np.ndarray] = []  # number of the layout -> keys

    def add(self, chunk: Chunk, data: memoryview, schema: pa.Schema) -> None:
        """Take up one chunk; raises ValueError if it is no record batch with keys."""
        segment = self._segments.get(chunk.file)
        if segment is None:
            types = {column.name: column.type for column in schema}
            segment = _Segment(_bytes(data), layout.buffer_places(schema), types)
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
        for segment, _, chunks, rows in self._groups(column, keys):
            kind = np.dtype(segment.types[column].to_pandas_dtype())
            starts = segment.starts(chunks, segment.places[column][0])
            places = starts[:, None] // kind.itemsize + rows
            values.append(segment.view(kind)[places.ravel()])
            ordinals.append(_repeat(segment, chunks, rows))
        return _in_order(Column(np.concatenate(ordinals), np.concatenate(values)))

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        """The same for a column of lists: where the lists are."""
        found = [Lists(*(np.empty(0, np.int64) for _ in range(4)))]
        for segment, number, chunks, rows in self._groups(column, keys):
            width = np.dtype(segment.types[column].value_type.to_pandas_dtype()).itemsize
            at, values = (segment.starts(chunks, place)[:, None] for place in segment.places[column])
            offsets = segment.view(np.dtype("<i4"))
            first, last = offsets[at // 4 + rows].astype(np.int64), offsets[at // 4 + rows + 1]
            starts, lengths = (values + first * width).ravel(), (last - first).ravel()
            found.append(Lists(_repeat(segment, chunks, rows), np.full(len(starts), number), starts, lengths))
        joined = Lists(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        order = np.argsort(joined.ordinals, kind="stable")
        return Lists(*(part[order] for part in joined))

    def elements(self, column: str, lists: Lists, positions: np.ndarray) -> np.ndarray:
        """One number of each list, as float64; NaN where the list is too short."""
        values = np.full(len(lists.starts), np.nan)
        segments = list(self._segments.values())
        for number in np.unique(lists.files):
            segment = segments[number]
            kind = np.dtype(segment.types[column].value_type.to_pandas_dtype())
            chosen = (lists.files == number) & (positions >= 0) & (positions < lists.lengths)
            values[chosen] = segment.view(kind)[lists.starts[chosen] // kind.itemsize + positions[chosen]]
        return values

    def _groups(self, column: str, keys: Collection[int]) -> Iterator[tuple[_Segment, int, list[int], np.ndarray]]:
        """(segment, its number, chunks of one layout, rows of the keys in that layout)."""
        largest = max((int(found.max(initial=0)) for found in self._keys), default=0)
        wanted = np.zeros(largest + 1, dtype=bool)
        wanted[[key for key in keys if key <= largest]] = True
        rows = [np.flatnonzero(wanted[found]) for found in self._keys]
        for number, segment in enumerate(self._segments.values()):
            if column not in segment.places:
                continue
            for layout_number, chunks in segment.of_layout.items():
                if len(rows[layout_number]):
                    yield segment, number, chunks, rows[layout_number]


def _repeat(segment: _Segment, chunks: list[int], rows: np.ndarray) -> np.ndarray:
    return np.repeat(np.array([segment.ordinals[chunk] for chunk in chunks], np.int64), len(rows))


def _in_order(column: Column) -> Column:
    if np.all(column.ordinals[1:] >= column.ordinals[:-1]):
        return column
    order = np.argsort(column.ordinals, kind="stable")
    return Column(column.ordinals[order], column.values[order])


def _bytes(data: memoryview) -> np.ndarray:
    return np.frombuffer(data, np.uint8)

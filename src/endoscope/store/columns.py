"""Numbers of one table over all steps, taken straight out of the segments.

    keys ─► rows in each layout ─► places in the files ─► one short read for each step (column_reads.py)

Steps of one kind have the same tensors in the same order. The list of their keys, a layout, is kept once, so the row of
a tensor is looked up once per layout and not once per step. After that a series over a thousand steps reads a thousand
numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.store import layout
from endoscope.store.chunks import Chunk
from endoscope.store.column_reads import MOST_KEPT_BYTES, Kept, Part, Segment
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


class Columns:
    """All chunks of one of the tables that belong to steps."""

    def __init__(self) -> None:
        self._segments: dict[str, Segment] = {}
        self._layouts: dict[bytes, int] = {}  # bytes of the key column -> number of the layout
        self._keys: list[np.ndarray] = []  # number of the layout -> keys
        self._last: tuple[bytes, int] = (b"", -1)  # the layout that came last
        self._kept = Kept()

    def add(self, chunks: Sequence[Chunk], maps: Maps, schema: pa.Schema) -> None:
        """Take up chunks of one file; raises ValueError if one is no record batch with keys."""
        file, end = chunks[0].file, max(chunk.end for chunk in chunks)
        data = maps.get(file, end)
        segment = self._segments.get(file)
        if segment is None:
            types = {column.name: column.type for column in schema}
            places, reading = layout.buffer_places(schema), partial(maps.reading, file)
            segment = self._segments[file] = Segment(file, reading, places, types, self._kept)
        if "key" not in segment.places:
            raise ValueError("not a chunk of this table")
        with maps.reading(file) as read:
            batches = layout.batches_in(data, [chunk.start for chunk in chunks], read)
            for chunk, batch in zip(chunks, batches, strict=True):
                if batch.end > chunk.end:
                    raise ValueError("not a chunk of this table")
                self._add(segment, chunk, batch, read)

    def _add(self, segment: Segment, chunk: Chunk, batch: layout.BatchLayout, read: layout.Read) -> None:
        number = self._layout(read(4 * batch.rows, int(batch.buffers[segment.places["key"][0]])))
        ordinal = chunk.ordinal
        if ordinal < 0 and batch.rows:
            first = read(4, int(batch.buffers[segment.places["ordinal"][0]]))
            ordinal = int.from_bytes(first, "little", signed=True)
        segment.ordinals.append(ordinal)
        segment.of_layout.setdefault(number, []).append(len(segment.buffers))
        segment.buffers.append(batch.buffers)

    def _layout(self, keys: bytes) -> int:
        """Its number. Nearly always it is that of the step before: then there is nothing to be looked up."""
        if keys != self._last[0] or self._last[1] < 0:
            number = self._layouts.setdefault(keys, len(self._layouts))
            if number == len(self._keys):
                self._keys.append(np.frombuffer(keys, "<i4"))
            self._last = (keys, number)
        return self._last[1]

    def numbers(self, column: str, keys: Collection[int]) -> Column:
        """A plain column for all rows of some keys; a segment without the column has no rows."""
        ordinals, values = [np.empty(0, np.int64)], [np.empty(0)]
        for block in self.blocks(column, keys):
            ordinals.append(np.repeat(block.ordinals, len(block.keys)))
            values.append(block.values.ravel())
        return _in_order(Column(np.concatenate(ordinals), np.concatenate(values)))

    def keep(self, column: str) -> bool:
        """Read some megabytes of a column before somebody asks for it; returns whether there is more to be read."""
        before = self._kept.bytes
        self._kept.begin(column)
        for segment, _, number, rows in self._groups(column, [int(keys[0]) for keys in self._keys if len(keys)]):
            is_list = len(segment.places[column]) > 1
            kind = np.dtype("<i4") if is_list else np.dtype(segment.types[column].to_pandas_dtype())
            part = Part(number, segment.places[column][0], kind, len(self._keys[number]) + is_list, int(rows[0]), 1)
            segment.rows(part)
        return before < self._kept.bytes < MOST_KEPT_BYTES * 0.8

    def blocks(self, column: str, keys: Collection[int]) -> Iterator[Block]:
        """The same, one block for the steps of one layout in one file."""
        for segment, _, number, rows in self._groups(column, keys):
            kind = np.dtype(segment.types[column].to_pandas_dtype())
            first, count = int(rows[0]), int(rows[-1]) + 1 - int(rows[0])
            part = Part(number, segment.places[column][0], kind, len(self._keys[number]), first, count)
            values = segment.rows(part)
            if count != len(rows):
                values = values[:, rows - first]
            yield Block(segment.ordinals_of(segment.of_layout[number]), self._keys[number][rows], values)

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        """The same for a column of lists: where the lists are."""
        found = [Lists(*(np.empty(0, np.int64) for _ in range(4)))]
        for segment, file, number, rows in self._groups(column, keys):
            width = np.dtype(segment.types[column].value_type.to_pandas_dtype()).itemsize
            at, begin = segment.places[column]
            first, count = int(rows[0]), int(rows[-1]) + 2 - int(rows[0])
            part = Part(number, at, np.dtype("<i4"), len(self._keys[number]) + 1, first, count)
            offsets = segment.rows(part).astype(np.int64)
            begins, ends = offsets[:, rows - first], offsets[:, rows - first + 1]
            chunks = segment.of_layout[number]
            values = segment.starts(chunks, begin)
            starts, lengths = (values[:, None] + begins * width).ravel(), (ends - begins).ravel()
            ordinals = np.repeat(segment.ordinals_of(chunks), len(rows))
            found.append(Lists(ordinals, np.full(len(starts), file), starts, lengths))
        joined = Lists(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        if np.all(joined.ordinals[1:] >= joined.ordinals[:-1]):
            return joined
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
        """All numbers of all lists, one list after the other, as they are stored."""
        segments, found = list(self._segments.values()), []
        kind = np.dtype(np.float64)
        ends = [*(np.flatnonzero(np.diff(lists.files)) + 1).tolist(), len(lists.files)]
        for start, end in zip([0, *ends], ends, strict=False):  # lists that follow each other lie in one file
            if start == end:
                continue
            segment = segments[int(lists.files[start])]
            kind = np.dtype(segment.types[column].value_type.to_pandas_dtype())
            found.append(segment.read_lists(lists.starts[start:end], lists.lengths[start:end], kind))
        return np.concatenate(found) if found else np.empty(0, kind)

    def _files_of(self, column: str, lists: Lists) -> Iterator[tuple[Segment, np.dtype, np.ndarray]]:
        """(segment, type of the numbers, which of the lists lie in it)."""
        segments = list(self._segments.values())
        for number in np.unique(lists.files).tolist():
            kind = np.dtype(segments[number].types[column].value_type.to_pandas_dtype())
            yield segments[number], kind, lists.files == number

    def _groups(self, column: str, keys: Collection[int]) -> Iterator[tuple[Segment, int, int, np.ndarray]]:
        """(segment, its number, number of a layout, rows of the keys in it)."""
        largest = max((int(found.max(initial=0)) for found in self._keys), default=0)
        wanted = np.zeros(largest + 1, dtype=bool)
        wanted[[key for key in keys if key <= largest]] = True
        rows = [np.flatnonzero(wanted[found]) for found in self._keys]
        self._kept.begin(column)
        for number, segment in enumerate(self._segments.values()):
            if column not in segment.places:
                continue
            for layout_number in segment.of_layout:
                if len(rows[layout_number]):
                    yield segment, number, layout_number, rows[layout_number]


def _in_order(column: Column) -> Column:
    if np.all(column.ordinals[1:] >= column.ordinals[:-1]):
        return column
    order = np.argsort(column.ordinals, kind="stable")
    return Column(column.ordinals[order], column.values[order])

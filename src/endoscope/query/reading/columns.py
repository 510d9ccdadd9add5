"""Numbers of one table over all steps, straight out of the mapped record batches.

    keys ─► rows in each layout ─► one number, or one list, of every batch

Steps of one kind have the same tensors in the same order. The list of their keys, a layout, is kept once, so the row of
a tensor is looked up once per layout and not once per step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.store.reader import RankReader
from endoscope.store.streams import to_numpy


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
    """One list per step, and the recorded steps that they are from."""

    ordinals: np.ndarray
    values: list[np.ndarray]

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(one) for one in self.values], np.int64)

    def elements(self, positions: np.ndarray) -> np.ndarray:
        """One number of each list, as float64; NaN where the list is too short."""
        chosen = zip(self.values, positions.tolist(), strict=True)
        return np.array([one[place] if 0 <= place < len(one) else np.nan for one, place in chosen], np.float64)


class Flat(NamedTuple):
    """Columns of lists of all tensors of one step, each one list after the other; and plain columns beside them."""

    ordinal: int
    keys: np.ndarray
    lengths: np.ndarray  # of the lists, the same in all columns
    values: list[np.ndarray]
    plain: list[np.ndarray]


class Layout:
    """The steps that have the same tensors in the same order."""

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        self.ordinals: list[int] = []
        self._batches: list[pa.RecordBatch] = []
        self._arrays: dict[str, list[np.ndarray]] = {}  # column -> of each batch; views of mapped memory

    def add(self, ordinal: int, batch: pa.RecordBatch) -> None:
        self.ordinals.append(ordinal)
        self._batches.append(batch)

    def arrays(self, column: str) -> list[np.ndarray]:
        """The column of each batch."""
        known = self._arrays.setdefault(column, [])
        known += [_numbers(batch, column) for batch in self._batches[len(known) :]]
        return known

    def lists(self, column: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """(offsets, values) of each batch."""
        offsets, values = (self._arrays.setdefault(f"{column} {part}", []) for part in ("offsets", "values"))
        for batch in self._batches[len(values) :]:
            found = batch.column(column)
            offsets.append(to_numpy(found.offsets))
            values.append(to_numpy(found.values))
        return list(zip(offsets, values, strict=True))


class Columns:
    """All batches of one of the tables that belong to steps; grows when there are more."""

    def __init__(self, reader: RankReader, table: str) -> None:
        self._reader, self._table = reader, table
        self._begin()

    def _begin(self) -> None:
        self._generation, self._taken = self._reader.generation, 0
        self._layouts: dict[bytes, Layout] = {}

    def update(self) -> Columns:
        """Take up what the reader has found since the last time."""
        batches, chunks = self._reader.batches(self._table), self._reader.good(self._table)
        if self._generation != self._reader.generation:
            self._begin()
        for batch, chunk in zip(batches[self._taken :], chunks[self._taken :], strict=True):
            keys = batch.column("key")
            packed = to_numpy(keys).tobytes()
            if packed not in self._layouts:
                self._layouts[packed] = Layout(np.frombuffer(packed, np.int32))
            self._layouts[packed].add(chunk.ordinal, batch)
        self._taken = len(batches)
        return self

    @property
    def layouts(self) -> list[Layout]:
        """Which tensors there are at which steps."""
        return list(self._layouts.values())

    def numbers(self, column: str, keys: Collection[int]) -> Column:
        """A plain column for all rows of some keys."""
        ordinals, values = [np.empty(0, np.int64)], [np.empty(0)]
        for block in self.blocks(column, keys):
            ordinals.append(np.repeat(block.ordinals, len(block.keys)))
            values.append(block.values.ravel())
        found = Column(np.concatenate(ordinals), np.concatenate(values))
        order = _order(found.ordinals)
        return found if order is None else Column(found.ordinals[order], found.values[order])

    def blocks(self, column: str, keys: Collection[int]) -> Iterator[Block]:
        """The same, one block for the steps of one layout."""
        for layout, rows in self._rows(keys):
            ordinals, arrays = np.array(layout.ordinals, np.int64), layout.arrays(column)
            if len(rows) == len(layout.keys):
                values = np.stack(arrays)
            elif len(rows) == 1:
                row = int(rows[0])
                values = np.array([array[row] for array in arrays])[:, None]
            else:
                values = np.stack([array[rows] for array in arrays])
            yield Block(ordinals, layout.keys[rows], values)

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        """The same for a column of lists."""
        ordinals: list[int] = []
        values: list[np.ndarray] = []
        for layout, rows in self._rows(keys):
            chosen = rows.tolist()
            for ordinal, (offsets, inner) in zip(layout.ordinals, layout.lists(column), strict=True):
                ordinals += [ordinal] * len(chosen)
                values += [inner[offsets[row] : offsets[row + 1]] for row in chosen]
        found = np.array(ordinals, np.int64)
        order = _order(found)
        return Lists(found, values) if order is None else Lists(found[order], [values[n] for n in order.tolist()])

    def flat(self, columns: Collection[str], keys: Collection[int], plain: Collection[str] = ()) -> Iterator[Flat]:
        """Columns of lists, one step after the other: for whoever wants a number from every list of every tensor."""
        for layout, rows in self._rows(keys):
            lists = [layout.lists(column) for column in columns]
            beside = [layout.arrays(column) for column in plain]
            offsets = lengths = chosen = np.empty(0, np.int64)
            for step, ordinal in enumerate(layout.ordinals):
                if not np.array_equal(lists[0][step][0], offsets):  # mostly the same as at the step before
                    offsets = lists[0][step][0]
                    lengths, chosen = _places(offsets, rows)
                found = [values[step][1][chosen] for values in lists]
                yield Flat(ordinal, layout.keys[rows], lengths, found, [column[step][rows] for column in beside])

    def _rows(self, keys: Collection[int]) -> Iterator[tuple[Layout, np.ndarray]]:
        wanted = list(keys)
        for layout in self._layouts.values():
            rows = np.flatnonzero(np.isin(layout.keys, wanted))
            if len(rows):
                yield layout, rows


def _numbers(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """NaN if the writer did not know the column yet; a count has nulls then."""
    column = batch.column(name) if name in batch.schema.names else None
    return np.full(len(batch), np.nan) if column is None or column.null_count else to_numpy(column)


def _places(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the lists of some rows: how long they are, and where their numbers stand."""
    lengths = (offsets[1:] - offsets[:-1])[rows]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return lengths, np.repeat(offsets[:-1][rows], lengths) + within


def _order(ordinals: np.ndarray) -> np.ndarray | None:
    """Into the order of the steps; None if they are in it."""
    return None if np.all(ordinals[1:] >= ordinals[:-1]) else np.argsort(ordinals, kind="stable")

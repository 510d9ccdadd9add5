"""Statistics of every sample of a whole batch: those of the ranks, one behind the other.

The samples of the first rank come first, then those of the next that had others. Where a sample is divided among ranks,
its statistics are put together like those of a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from endoscope.query.ranks.columns import WholeColumns
from endoscope.query.ranks.groups import NOT_THERE, Group
from endoscope.query.ranks.parts import Parts, merged
from endoscope.query.ranks.placement import Arrangement, Piece
from endoscope.query.reading.columns import Lists
from endoscope.schema.stats import BUILT_IN, SAMPLE

_STATISTICS = {one.name: one for one in BUILT_IN}
_SAME = 1e-5  # they are stored in single precision


class Slice(NamedTuple):
    """The samples of one tensor that one rank has measured."""

    place: int  # of the rank in the group
    rank: int
    step: int  # place of the step in the layout of the rank
    start: int  # in the rank's flattened lists
    stop: int


class Batch(NamedTuple):
    """The samples of one data-parallel rank, divided among some ranks."""

    slices: Sequence[Slice]
    share: Sequence[int]  # elements of a sample that each of them has
    first: int  # number of its first sample in the whole batch


class SampleColumns(WholeColumns):
    """The lists of `samples` of all ranks together."""

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        found = sorted(self._all(column, keys), key=lambda one: one[0])
        return Lists(np.array([one[0] for one in found], np.int64), [one[1] for one in found])

    def _all(self, column: str, keys: Collection[int]) -> Iterator[tuple[int, np.ndarray]]:
        wanted = list(keys)
        for group in self._groups:
            for tensor in np.flatnonzero(np.isin(group.tensors.keys, wanted)).tolist():
                for step, ordinal in enumerate(group.ordinals):
                    batches = batches_of(group, tensor, step)
                    values = None if batches is None else values_of(group, batches, column)
                    if values is not None:
                        yield ordinal, values


def rows_of(group: Group, step: int) -> tuple[np.ndarray, dict[str, list[np.ndarray]]]:
    """(keys, columns) of all tensors of a step that have samples; `rank` says on which each sample was."""
    keys: list[int] = []
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("sample", "rank", *SAMPLE)}
    for tensor, key in enumerate(group.tensors.keys.tolist()):
        batches = batches_of(group, tensor, step)
        found = None if batches is None else {name: values_of(group, batches, name) for name in columns}
        if found is not None and all(values is not None for values in found.values()):
            keys.append(key)
            for name, values in found.items():
                assert values is not None
                columns[name].append(values)
    return np.array(keys, np.int32), columns


def batches_of(group: Group, tensor: int, step: int) -> list[Batch] | None:
    """Where the samples of a tensor lie; None if they make up no whole."""
    tensors = group.tensors
    arrangement = tensors.arrangements[tensor]
    dim = arrangement.key.batch_dim
    if arrangement.reason or tensors.missing[tensor]:
        return None
    place_of = {rank: place for place, rank in enumerate(tensors.ranks)}
    found: list[Batch] = []
    first = 0
    for pieces in by_batch(arrangement):
        slices = [[_slice(group, tensor, step, place_of[rank]) for rank in piece.ranks] for piece in pieces]
        lengths = [[(one.start, one.length) for one in map(_Interval._make, piece.intervals[dim])]
                   if piece.intervals else [(0, piece.shape[dim])] for piece in pieces]  # fmt: skip
        if not _agree(group, slices):
            return None
        along = [sum(length for _, length in one) for one in lengths]
        if all(one == pieces[0].shape[dim] for one in along):
            found.append(Batch([one[0] for one in slices], [_share(piece, dim) for piece in pieces], first))
        elif all(len(one) <= 1 for one in lengths) and all(_is_divided_along(piece, dim) for piece in pieces):
            for piece, own, intervals in zip(pieces, slices, lengths, strict=True):
                if intervals:
                    found.append(Batch([own[0]], [_share(piece, dim)], first + intervals[0][0]))
        else:
            return None
        first += pieces[0].shape[dim]
    return found


class _Interval(NamedTuple):
    start: int
    length: int


def by_batch(arrangement: Arrangement) -> list[list[Piece]]:
    """The pieces of each batch."""
    found: dict[int, list[Piece]] = {}
    for piece in arrangement.pieces:
        found.setdefault(piece.batch, []).append(piece)
    return [found[number] for number in sorted(found)]


def values_of(group: Group, batches: Sequence[Batch], column: str) -> np.ndarray | None:
    """One number for each sample; None if the ranks of a batch have measured different ones."""
    found: list[np.ndarray] = []
    for batch in batches:
        samples = [_values(group, one, "sample") for one in batch.slices]
        if any(not np.array_equal(samples[0], other) for other in samples[1:]):
            return None
        if column == "rank":
            found.append(np.full(len(samples[0]), batch.slices[0].rank, np.int32))
        elif column == "sample":
            found.append((samples[0] + batch.first).astype(np.int32))
        elif len(batch.slices) == 1:
            found.append(_values(group, batch.slices[0], column))
        else:
            found.append(_merged(group, batch, column))
    return np.concatenate(found) if found else None


def _merged(group: Group, batch: Batch, column: str) -> np.ndarray:
    def read(name: str) -> np.ndarray:
        if name == "count":
            sizes = [np.full(one.stop - one.start, share) for one, share in zip(batch.slices, batch.share, strict=True)]
            return np.stack(sizes)
        return np.stack([_values(group, one, name) for one in batch.slices])

    values = merged(_STATISTICS[column], Parts(read))
    assert values is not None, column  # all statistics of samples merge
    return values.astype(np.float32)


def _values(group: Group, one: Slice, column: str) -> np.ndarray:
    _, values = group.layouts[one.place].lists(column)[one.step]
    return values[one.start : one.stop]


def _slice(group: Group, tensor: int, step: int, place: int) -> Slice:
    row, at = int(group.tensors.rows[place, tensor]), group.places[step][place]
    assert row != NOT_THERE
    offsets, _ = group.layouts[place].lists("sample")[at]
    return Slice(place, group.tensors.ranks[place], at, int(offsets[row]), int(offsets[row + 1]))


def _agree(group: Group, slices: Sequence[Sequence[Slice]]) -> bool:
    """Whether ranks that have the same samples say the same of them."""
    for first, *others in slices:
        mine = _values(group, first, "norm")
        for other in others:
            theirs = _values(group, other, "norm")
            if len(mine) != len(theirs) or not np.allclose(mine, theirs, rtol=_SAME, atol=0, equal_nan=True):
                return False
    return True


def _share(piece: Piece, dim: int) -> int:
    """Elements of one sample that lie in a piece."""
    sizes = piece.shape if piece.intervals is None else [sum(n for _, n in one) for one in piece.intervals]
    return math.prod(size for axis, size in enumerate(sizes) if axis != dim)


def _is_divided_along(piece: Piece, dim: int) -> bool:
    """Whether a piece has all of the samples that it has."""
    sizes = [sum(n for _, n in one) for one in piece.intervals or ()]
    return all(size == whole for axis, (size, whole) in enumerate(zip(sizes, piece.shape, strict=True)) if axis != dim)

"""Raw values of whole tensors: batches side by side, shards in their places, summands added up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from endoscope.query.ranks.groups import Group
from endoscope.query.ranks.placement import Arrangement, Piece, places_in
from endoscope.query.ranks.samples import by_batch
from endoscope.query.reading.values import RawOfStep

_SUMS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "sum": lambda summands: np.asarray(summands.sum(axis=0)),
    "avg": lambda summands: np.asarray(summands.mean(axis=0)),
    "max": lambda summands: np.asarray(summands.max(axis=0)),
    "min": lambda summands: np.asarray(summands.min(axis=0)),
    "product": lambda summands: np.asarray(summands.prod(axis=0)),
}


class _Kept(NamedTuple):
    """What one rank has kept of a piece."""

    piece: Piece
    file: RawOfStep
    key: int  # its number on that rank


class _Batch(NamedTuple):
    """What the ranks that have the same samples have kept of a tensor."""

    kept: Sequence[_Kept]
    samples: list[int] | None  # which of these samples all of them have kept; None: the tensor is kept whole


class WholeRaw:
    """The raw values of one step, under the keys of the whole; a tensor is put together when it is asked for."""

    def __init__(self, group: Group, files: Sequence[RawOfStep | None]) -> None:
        """`files` is what each rank of the group has kept."""
        self.entries: dict[int, tuple[Arrangement, list[_Batch]]] = {}
        self.samples: dict[int, list[int]] = {}
        tensors = group.tensors
        place_of = {rank: place for place, rank in enumerate(tensors.ranks)}
        for column, arrangement in enumerate(tensors.arrangements):
            if tensors.missing[column] or not arrangement.pieces or (arrangement.reason and not arrangement.sum_of):
                continue

            def find(piece: Piece, column: int = column) -> _Kept | None:
                for place in (place_of[rank] for rank in piece.ranks):
                    file, key = files[place], int(group.layouts[place].keys[tensors.rows[place, column]])
                    if file is not None and key in file.entries:
                        return _Kept(piece, file, key)
                return None

            batches = [_batch([find(piece) for piece in pieces], arrangement) for pieces in by_batch(arrangement)]
            there = [batch for batch in batches if batch is not None]
            if len(there) < len(batches) or len({batch.samples is None for batch in there}) > 1:
                continue
            key = int(tensors.keys[column])
            self.entries[key] = (arrangement, there)
            if there[0].samples is not None:
                self.samples[key] = _numbered(there, arrangement.key.batch_dim)

    def array(self, key: int, position: int | None = None) -> np.ndarray:
        """The tensor, or one of the samples in it."""
        arrangement, batches = self.entries[key]
        parts = [_put_together(batch, arrangement) for batch in batches]
        dim = 0 if key in self.samples else arrangement.key.batch_dim
        if len(parts) == 1:
            values = parts[0]
        else:
            values = np.concatenate(parts, axis=dim) if dim in range(parts[0].ndim) else np.stack(parts)
        return np.asarray(values if position is None else values[position])


def kept_in(group: Group, kept: Sequence[Collection[int]]) -> list[int]:
    """Keys of the tensors of which every piece was kept by a rank, going by the numbers that each rank has kept."""
    tensors = group.tensors
    places = [group.layouts[place].keys.tolist() for place in range(len(tensors.ranks))]
    place_of = {rank: place for place, rank in enumerate(tensors.ranks)}
    here = [set(numbers) for numbers in kept]
    found = []
    for column, arrangement in enumerate(tensors.arrangements):
        if tensors.missing[column] or (arrangement.reason and not arrangement.sum_of):
            continue
        asked = [[place_of[rank] for rank in piece.ranks] for piece in arrangement.pieces]
        if all(any(places[at][tensors.rows[at, column]] in here[at] for at in ranks) for ranks in asked) and asked:
            found.append(int(tensors.keys[column]))
    return found


def _batch(kept: Sequence[_Kept | None], arrangement: Arrangement) -> _Batch | None:
    """None if something is not there, or does not go together."""
    there = [one for one in kept if one is not None]
    if len(there) < len(kept) or (arrangement.sum_of and arrangement.sum_of not in _SUMS):
        return None
    chosen = [one.file.samples.get(one.key) for one in there]
    if all(samples is None for samples in chosen):
        return _Batch(there, None)
    dim = arrangement.key.batch_dim
    divided = any(one.piece.intervals and _lengths(one.piece)[dim] != one.piece.shape[dim] for one in there)
    if divided or any(samples is None for samples in chosen):
        return None
    return _Batch(there, [sample for sample in chosen[0] or () if all(sample in (other or ()) for other in chosen)])


def _numbered(batches: Sequence[_Batch], dim: int) -> list[int]:
    """The samples of all batches, one behind the other."""
    found, first = [], 0
    for batch in batches:
        found += [first + sample for sample in batch.samples or ()]
        first += batch.kept[0].piece.shape[dim]
    return found


def _put_together(batch: _Batch, arrangement: Arrangement) -> np.ndarray:
    summands: dict[int, list[_Kept]] = {}
    for one in batch.kept:
        summands.setdefault(one.piece.summand, []).append(one)
    found = [_of_shards(kept, batch.samples, arrangement.key.batch_dim) for kept in summands.values()]
    return _SUMS[arrangement.sum_of](np.stack(found)) if arrangement.sum_of else found[0]


def _of_shards(kept: Sequence[_Kept], samples: list[int] | None, dim: int) -> np.ndarray:
    """The shards of one tensor in their places; samples lie along dimension 0, and are none of its dimensions."""
    whole: np.ndarray | None = None
    for piece, file, key in kept:
        values = file.array(key)
        if samples is not None:
            values = values[[file.samples[key].index(sample) for sample in samples]]
        if piece.intervals is None:
            return values
        axes = [axis for axis in range(len(piece.shape)) if samples is None or axis != dim]
        at = [places_in(piece.intervals[axis]) for axis in axes]
        sizes = [piece.shape[axis] for axis in axes]
        if samples is not None:
            at, sizes = [np.arange(len(samples)), *at], [len(samples), *sizes]
        whole = np.zeros(sizes, values.dtype) if whole is None else whole
        whole[np.ix_(*at)] = values
    assert whole is not None
    return whole


def _lengths(piece: Piece) -> list[int]:
    return [sum(length for _, length in one) for one in piece.intervals or ()]

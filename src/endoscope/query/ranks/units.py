"""Statistics of every unit over a whole batch.

Over the samples of several ranks they are put together like those of a tensor. Where units are divided among ranks,
each rank has some of them. What the units are depends on the shape of the tensor (schema/units.py): where the whole
would have others than its parts, there is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from endoscope.query.ranks.columns import WholeColumns
from endoscope.query.ranks.groups import Group
from endoscope.query.ranks.parts import Parts, merged
from endoscope.query.ranks.placement import Piece, places_in
from endoscope.query.ranks.samples import by_batch
from endoscope.query.reading.columns import Lists
from endoscope.schema.stats import BUILT_IN, UNIT, Statistic
from endoscope.schema.units import unit_axes

_STATISTICS = {one.name: one for one in BUILT_IN}
_SAME = 1e-5  # they are stored in single precision

#: (ordinal, key) of tensors with elements that are not finite: how many a unit has of these is not recorded.
NotFinite = Collection[tuple[int, int]]


class _Part(NamedTuple):
    """Units of some samples."""

    values: dict[str, np.ndarray]
    elements: int  # that each unit has


class UnitColumns(WholeColumns):
    """The lists of `units` of all ranks together."""

    def __init__(self, find: Callable[[str], Statistic], not_finite: Callable[[], NotFinite]) -> None:
        super().__init__(find)
        self._not_finite = not_finite

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        found = sorted(self._all(column, keys), key=lambda one: one[0])
        return Lists(np.array([one[0] for one in found], np.int64), [one[1] for one in found])

    def _all(self, column: str, keys: Collection[int]) -> Iterator[tuple[int, np.ndarray]]:
        wanted, not_finite = list(keys), self._not_finite()
        for group in self._groups:
            for tensor in np.flatnonzero(np.isin(group.tensors.keys, wanted)).tolist():
                for step, ordinal in enumerate(group.ordinals):
                    found = units_of(group, tensor, step, not_finite)
                    if found is not None:
                        shape = np.array(next(iter(found.values())).shape, np.int32)
                        yield ordinal, shape if column == "unit_shape" else found[column].reshape(-1)


def rows_of(group: Group, step: int, not_finite: NotFinite) -> tuple[np.ndarray, dict[str, list[np.ndarray]]]:
    """(keys, columns) of all tensors of a step that have units."""
    keys: list[int] = []
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("unit_shape", *UNIT)}
    for tensor, key in enumerate(group.tensors.keys.tolist()):
        found = units_of(group, tensor, step, not_finite)
        if found is not None:
            keys.append(key)
            columns["unit_shape"].append(np.array(next(iter(found.values())).shape, np.int32))
            for name in UNIT:
                columns[name].append(found[name].reshape(-1))
    return np.array(keys, np.int32), columns


def units_of(group: Group, tensor: int, step: int, not_finite: NotFinite) -> dict[str, np.ndarray] | None:
    """Statistic -> array in the shape of the units; None if they make up no whole."""
    tensors = group.tensors
    arrangement = tensors.arrangements[tensor]
    if arrangement.reason or tensors.missing[tensor]:
        return None
    place_of = {rank: place for place, rank in enumerate(tensors.ranks)}
    parts: list[_Part] = []
    for pieces in by_batch(arrangement):
        read = [[_read(group, tensor, step, place_of[rank]) for rank in piece.ranks] for piece in pieces]
        if not all(_agree(replicas) for replicas in read):
            return None
        found = _of_batch(pieces, [replicas[0] for replicas in read], arrangement.key.batch_dim)
        if found is None:
            return None
        parts += found
    merged_units = _merged(parts)
    if merged_units is not None and len(parts) > 1:
        if (group.ordinals[step], int(tensors.keys[tensor])) in not_finite:
            gone = np.full_like(merged_units["abs_max"], np.nan)
            return {**merged_units, "mean": gone, "std": gone}
    return merged_units


def _of_batch(pieces: Sequence[Piece], read: Sequence[dict[str, np.ndarray]], dim: int) -> list[_Part] | None:
    """The units of the same samples: one part, or several that have other elements of the same units."""
    shape = pieces[0].shape
    axes = unit_axes(shape, dim)
    local = [_lengths(piece) for piece in pieces]
    if not axes or any(unit_axes(sizes, dim) != axes for sizes in local):
        return None
    elements = [math.prod(n for axis, n in enumerate(sizes) if axis not in axes) for sizes in local]
    if all(sizes[axis] == shape[axis] for sizes in local for axis in axes):
        return [_Part(one, n) for one, n in zip(read, elements, strict=True)]
    if any(n != math.prod(size for axis, size in enumerate(shape) if axis not in axes) for n in elements):
        return None  # divided along the units and along what they are measured over
    whole = {name: np.full([shape[axis] for axis in axes], np.nan, np.float32) for name in UNIT}
    for piece, own in zip(pieces, read, strict=True):
        assert piece.intervals is not None
        at = [places_in(piece.intervals[axis]) for axis in axes]
        for name in UNIT:
            whole[name][np.ix_(*at)] = own[name]
    return [_Part(whole, elements[0])]


def _merged(parts: Sequence[_Part]) -> dict[str, np.ndarray] | None:
    if len(parts) == 1:
        return parts[0].values
    shapes = {part.values[UNIT[0]].shape for part in parts}
    if len(shapes) > 1:
        return None

    def read(name: str) -> np.ndarray:
        if name == "count":
            return np.stack([np.full(next(iter(shapes)), float(part.elements)) for part in parts])
        if name in ("nans", "infs"):
            return np.zeros((len(parts), *next(iter(shapes))))
        return np.stack([part.values[name] for part in parts])

    found = {}
    for name in UNIT:
        values = merged(_STATISTICS[name], Parts(read))
        assert values is not None, name  # all statistics of units merge
        found[name] = values.astype(np.float32)
    return found


def _read(group: Group, tensor: int, step: int, place: int) -> dict[str, np.ndarray]:
    row, at = int(group.tensors.rows[place, tensor]), group.places[step][place]
    layout = group.layouts[place]
    found = {}
    for name in ("unit_shape", *UNIT):
        offsets, values = layout.lists(name)[at]
        found[name] = values[offsets[row] : offsets[row + 1]]
    shape = found.pop("unit_shape").tolist()
    return {name: values.reshape(shape) for name, values in found.items()}


def _agree(replicas: Sequence[dict[str, np.ndarray]]) -> bool:
    first = replicas[0]["abs_max"]
    return all(
        other["abs_max"].shape == first.shape
        and np.allclose(first, other["abs_max"], rtol=_SAME, atol=0, equal_nan=True)
        for other in replicas[1:]
    )


def _lengths(piece: Piece) -> tuple[int, ...]:
    return piece.shape if piece.intervals is None else tuple(sum(n for _, n in one) for one in piece.intervals)

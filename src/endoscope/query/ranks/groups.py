"""Which rows of which ranks make up which tensors, for all steps that have the same ones.

steps whose ranks have the same tensors in the same order ─► one group
(node, role, pass, of) ─► its row on each rank ─► arrangement ─► the number of a key of the whole
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.query.ranks.placement import Arrangement, Piece, arrange
from endoscope.query.ranks.sources import Source
from endoscope.query.ranks.steps import Counted
from endoscope.query.reading.columns import Layout
from endoscope.schema.recording import Key
from endoscope.store.membership import Membership

Identity = tuple[str, str, int, str]  # node, role, pass, of: the same on all ranks
NOT_THERE = -1


def identity_of(key: Key) -> Identity:
    return key.node, key.role, key.pass_, key.of


@dataclass(frozen=True)
class Tensors:
    """The tensors of a group. Arrays have one row for each rank that is there, and one column for each tensor."""

    ranks: tuple[int, ...]
    keys: np.ndarray  # int32: numbers of the whole's keys
    rows: np.ndarray  # which row of the rank it is; NOT_THERE
    leaders: np.ndarray  # place of the rank whose piece is the same, and is asked; NOT_THERE
    arrangements: Sequence[Arrangement]
    missing: Sequence[tuple[int, ...]]  # ranks that should have it, and do not

    @property
    def leads(self) -> np.ndarray:
        """bool[ranks, tensors]: whose numbers are put together."""
        return np.asarray(self.leaders == np.arange(len(self.ranks))[:, None])

    @property
    def is_whole(self) -> np.ndarray:
        """Whether nothing is missing, and the pieces make up a whole."""
        return np.array(
            [not one.reason and not gone for one, gone in zip(self.arrangements, self.missing, strict=True)], bool
        )

    def rank_of(self, place: int) -> int:
        return self.ranks[place]


@dataclass
class Group:
    """Steps that have the same tensors on the same ranks."""

    tensors: Tensors
    layouts: Sequence[Layout]  # of each rank
    ordinals: list[int] = field(default_factory=list)  # of the whole's steps
    places: list[list[int]] = field(default_factory=list)  # for each step: its place in the layout of each rank

    def alone(self, place: int, batches: Sequence[pa.RecordBatch]) -> Group:
        """The same tensors at one of the steps, read from the record batch of each rank."""
        layouts = []
        for known, batch in zip(self.layouts, batches, strict=True):
            layouts.append(Layout(known.keys))
            layouts[-1].add(self.ordinals[place], batch)
        return Group(self.tensors, layouts, [self.ordinals[place]], [[0] * len(layouts)])


class Wholes:
    """The keys of the whole: numbers that stay the same while more is recorded."""

    def __init__(self) -> None:
        self.by_number: dict[int, Key] = {}
        self._numbers: dict[Key, int] = {}
        self.begin()

    def begin(self) -> None:
        """What the ranks have is looked at anew."""
        self._complete: dict[Identity, int] = {}
        self.why_not: dict[Identity, tuple[str, tuple[int, ...]]] = {}  # reason, ranks: of what has no whole at all
        self.shapeless: set[int] = set()  # keys whose shape is not that of a whole
        self.arrangements: dict[Identity, Arrangement] = {}  # where most ranks were there

    def number_of(self, arrangement: Arrangement, is_complete: bool) -> int:
        """Of a tensor of which something is missing, the number that it has where nothing is."""
        identity = identity_of(arrangement.key)
        if not is_complete and identity in self._complete:
            return self._complete[identity]
        self.arrangements.setdefault(identity, arrangement)
        number = self._numbers.setdefault(arrangement.key, len(self._numbers))
        self.by_number[number] = arrangement.key
        if is_complete:
            self._complete.setdefault(identity, number)
        if arrangement.reason or not is_complete:
            self.shapeless.add(number)
        if arrangement.reason:
            self.why_not.setdefault(identity, (arrangement.reason, arrangement.ranks))
        return number


class Grouping:
    """Sorts the steps of a table into groups."""

    def __init__(self, wholes: Wholes, members: Mapping[int, Membership], *, is_whole: bool) -> None:
        self._wholes = wholes
        self._members = members
        self._is_whole = is_whole  # else of one rank: each tensor is what the rank has
        self._arranged: dict[tuple[Any, ...], Arrangement] = {}  # most tensors are the same in many groups

    def groups(
        self,
        parts: Mapping[int, Mapping[int, Counted]],
        layouts: Mapping[Source, Sequence[Layout]],
        holders: Mapping[Identity, Collection[int]],
    ) -> list[Group]:
        """`holders` are the ranks that have ever had a tensor."""
        place_of = {
            source: {ordinal: (layout, place) for layout in known for place, ordinal in enumerate(layout.ordinals)}
            for source, known in layouts.items()
        }
        found: dict[tuple[tuple[int, int], ...], Group] = {}
        # Steps that all ranks have come first: they say what the whole is.
        for ordinal, counted in sorted(parts.items(), key=lambda one: (-len(one[1]), one[0])):
            here = [
                (rank, one.source, *place_of[one.source][one.step.ordinal])
                for rank, one in sorted(counted.items())
                if one.step.ordinal in place_of.get(one.source, ())
            ]
            if not here:
                continue
            signature = tuple((rank, id(layout)) for rank, _, layout, _ in here)
            group = found.get(signature)
            if group is None:
                tensors = self._tensors({rank: (source, layout) for rank, source, layout, _ in here}, holders)
                group = found[signature] = Group(tensors, [layout for _, _, layout, _ in here])
            group.ordinals.append(ordinal)
            group.places.append([place for *_, place in here])
        return list(found.values())

    def _tensors(
        self, here: Mapping[int, tuple[Source, Layout]], holders: Mapping[Identity, Collection[int]]
    ) -> Tensors:
        ranks = tuple(here)
        found: dict[Identity, dict[int, tuple[int, Key]]] = {}  # rank's place -> row, key
        for place, (source, layout) in enumerate(here.values()):
            by_number = source.recording.tables.keys.by_number
            for row, number in enumerate(layout.keys.tolist()):
                key = by_number.get(number)  # None: its name is lost to damage
                if key is not None:
                    found.setdefault(identity_of(key), {}).setdefault(place, (row, key))
        arrangements = [self._arrange(identity, rows, ranks, holders) for identity, rows in found.items()]
        tensors = Tensors(
            ranks,
            np.empty(len(found), np.int32),
            np.full((len(ranks), len(found)), NOT_THERE, np.int64),
            np.full((len(ranks), len(found)), NOT_THERE, np.int64),
            arrangements,
            [tuple(sorted(set(one.ranks) - {ranks[place] for place in rows})) for one, rows in
             zip(arrangements, found.values(), strict=True)],
        )  # fmt: skip
        place_of = {rank: place for place, rank in enumerate(ranks)}
        for column, rows in enumerate(found.values()):
            arrangement = arrangements[column]
            tensors.keys[column] = self._wholes.number_of(arrangement, not tensors.missing[column])
            for place, (row, _) in rows.items():
                tensors.rows[place, column] = row
            for piece in arrangement.pieces:
                places = [place_of[rank] for rank in piece.ranks if rank in place_of]
                tensors.leaders[places, column] = places[0] if places else NOT_THERE
        return tensors

    def _arrange(
        self,
        identity: Identity,
        rows: Mapping[int, tuple[int, Key]],
        ranks: Sequence[int],
        holders: Mapping[Identity, Collection[int]],
    ) -> Arrangement:
        keys = {ranks[place]: key for place, (_, key) in rows.items()}
        if not self._is_whole:
            rank, key = next(iter(keys.items()))
            return Arrangement(key, (rank,), (Piece((rank,), key.shape),))
        about = (tuple((rank, key.shape, key.placement) for rank, key in keys.items()), identity)
        if about not in self._arranged:
            self._arranged[about] = arrange(keys, self._members, tuple(sorted(holders[identity])))
        return self._arranged[about]


def batches_of(groups: Sequence[Group]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Ordinal -> the ranks that had other samples, each with how many."""
    for group in groups:
        joined = next((one for one in group.tensors.arrangements if _is_joined(one)), None)
        if joined is not None:
            dim = joined.key.batch_dim
            leaders = {piece.batch: piece for piece in reversed(joined.pieces)}
            batches = [(leaders[number].ranks[0], leaders[number].shape[dim]) for number in sorted(leaders)]
        else:
            batches = [(group.tensors.ranks[0], 0)]
        for ordinal in group.ordinals:
            yield ordinal, batches


def _is_joined(arrangement: Arrangement) -> bool:
    dim = arrangement.key.batch_dim
    pieces = arrangement.pieces
    return not arrangement.reason and bool(pieces) and dim in range(len(pieces[0].shape)) and pieces[-1].batch > 0

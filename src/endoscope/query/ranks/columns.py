"""Statistics of whole tensors over all steps, put together from those of the ranks when they are asked for.

keys of the whole ─► rows of each rank, at all steps of a group ─► replicas once, parts put together ─► numbers
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from endoscope.query.ranks import histograms, reasons
from endoscope.query.ranks.groups import NOT_THERE, Group
from endoscope.query.ranks.parts import Parts, merged
from endoscope.query.reading.columns import Block, Column, Columns, Layout, Lists
from endoscope.schema.stats import HISTOGRAM_BINS, Statistic

_CELLS_AT_ONCE = 1_000_000  # numbers of ranks that are held at the same time
#: Replicas have the same bits; so much their statistics may differ where the processors of their machines do.
_SAME = 1e-6


class Piece(NamedTuple):
    """Some tensors at some steps of a group."""

    group: Group
    columns: np.ndarray  # places of the tensors in the group
    steps: range  # places of the steps in the group


class WholeColumns(Columns):
    """The numbers of `stats` of all ranks together."""

    def __init__(self, find: Callable[[str], Statistic]) -> None:
        self._find = find
        self._groups: list[Group] = []

    def take(self, groups: Sequence[Group]) -> None:
        self._groups = list(groups)

    def update(self) -> WholeColumns:
        return self

    @property
    def layouts(self) -> list[Layout]:
        found = []
        for group in self._groups:
            layout = Layout(group.tensors.keys)
            layout.ordinals = group.ordinals
            found.append(layout)
        return found

    def blocks(self, column: str, keys: Collection[int]) -> Iterator[Block]:
        for piece in self._pieces(keys):
            ordinals = np.array([piece.group.ordinals[n] for n in piece.steps], np.int64)
            yield Block(ordinals, piece.group.tensors.keys[piece.columns], self.of(piece, column))

    def numbers(self, column: str, keys: Collection[int]) -> Column:
        if column != "hist_first":
            return super().numbers(column, keys)
        found = self._histograms(keys)
        return Column(np.array([one[0] for one in found], np.int64), np.array([one[1] for one in found], np.float64))

    def lists(self, column: str, keys: Collection[int]) -> Lists:
        """Of histograms only; other tables have other lists."""
        found = self._histograms(keys)
        return Lists(np.array([one[0] for one in found], np.int64), [one[2] for one in found])

    def _pieces(self, keys: Collection[int]) -> Iterator[Piece]:
        wanted = list(keys)
        for group in self._groups:
            columns = np.flatnonzero(np.isin(group.tensors.keys, wanted))
            if not len(columns):
                continue
            # A histogram has as many numbers as many ranks.
            at_once = max(1, _CELLS_AT_ONCE // (len(columns) * max(len(group.tensors.ranks), HISTOGRAM_BINS)))
            for start in range(0, len(group.ordinals), at_once):
                yield Piece(group, columns, range(start, min(start + at_once, len(group.ordinals))))

    def of(self, piece: Piece, column: str) -> np.ndarray:
        """float64[steps, tensors]: NaN where there is no whole."""
        tensors = piece.group.tensors
        leads = tensors.leads[:, None, piece.columns]
        own = _read(piece, column)
        found = _only(own, leads)
        several = np.count_nonzero(leads, axis=0)[0] > 1
        if several.any():
            found[:, several] = self._merged(
                Piece(piece.group, piece.columns[several], piece.steps), leads[:, :, several], column
            )
        found[:, ~tensors.is_whole[piece.columns]] = np.nan
        found[~_agree(own, tensors.leaders[:, piece.columns])] = np.nan
        return found

    def _merged(self, piece: Piece, leads: np.ndarray, column: str) -> np.ndarray:
        def read(name: str) -> np.ndarray:
            return np.where(leads, _read(piece, name), np.nan)

        statistic, parts = self._find(column), Parts(read)
        if statistic.level is not None:
            low, high = parts.min(parts["min"]), parts.max(parts["max"])
            return histograms.quantile(_dense(piece, leads[:, 0]), statistic.level, low, high)
        found = merged(statistic, parts)
        return np.full((len(piece.steps), len(piece.columns)), np.nan) if found is None else found

    def histograms_of(self, piece: Piece) -> np.ndarray:
        """int64[steps, tensors, bins]: nothing is counted where there is no whole."""
        summed = _dense(piece, piece.group.tensors.leads[:, piece.columns])
        summed[~self.agree(piece)] = 0
        summed[:, ~piece.group.tensors.is_whole[piece.columns]] = 0
        return summed

    def agree(self, piece: Piece) -> np.ndarray:
        """bool[steps, tensors]: whether ranks that should have the same tensor have one of the same norm."""
        return _agree(_read(piece, "norm"), piece.group.tensors.leaders[:, piece.columns])

    def why_not(self, column: str, keys: Collection[int]) -> dict[int, str]:
        """Ordinal -> why a tensor has no whole at the step; empty where it has one."""
        found: dict[int, str] = {}
        for piece in self._pieces(keys):
            tensors = piece.group.tensors
            agree = _agree(_read(piece, column), tensors.leaders[:, piece.columns])
            for place, at in enumerate(piece.columns.tolist()):
                why = reasons.of(tensors.arrangements[at], tensors.missing[at])
                if not why and len(tensors.arrangements[at].pieces) > 1 and not self._merges(column):
                    why = reasons.NO_MERGE
                for step, same in zip(piece.steps, agree[:, place].tolist(), strict=True):
                    found[piece.group.ordinals[step]] = why or ("" if same else reasons.DISAGREE)
        return found

    def ranks_with(self, keys: Collection[int]) -> tuple[int, ...]:
        """The ranks that have a tensor, or a part of it."""
        found: set[int] = set()
        for group in self._groups:
            at = np.flatnonzero(np.isin(group.tensors.keys, list(keys)))
            places = np.flatnonzero((group.tensors.rows[:, at] != NOT_THERE).any(axis=1))
            found |= {group.tensors.ranks[place] for place in places.tolist()}
        return tuple(sorted(found))

    def are_in_parts(self, keys: Collection[int]) -> bool:
        """Whether a tensor is put together from several parts at any step."""
        wanted = list(keys)
        return any((group.tensors.leads.sum(axis=0) > 1)[np.isin(group.tensors.keys, wanted)].any()
                   for group in self._groups)  # fmt: skip

    def _merges(self, column: str) -> bool:
        statistic = self._find(column)
        return statistic.merge is not None or statistic.level is not None

    def _histograms(self, keys: Collection[int]) -> list[tuple[int, int, np.ndarray]]:
        """(ordinal, first bin, counts) in the order of the steps; what is no whole is left out."""
        found: list[tuple[int, int, np.ndarray]] = []
        for piece in self._pieces(keys):
            summed = self.histograms_of(piece)
            is_there = piece.group.tensors.is_whole[piece.columns] & self.agree(piece)
            for place, step in enumerate(piece.steps):
                for column in np.flatnonzero(is_there[place]).tolist():
                    found.append((piece.group.ordinals[step], *histograms.trimmed(summed[place, column])))
        return sorted(found, key=lambda one: one[0])


def _read(piece: Piece, column: str) -> np.ndarray:
    """float64[ranks, steps, tensors]: as each rank has recorded it; NaN where it has not."""
    group = piece.group
    found = np.full((len(group.layouts), len(piece.steps), len(piece.columns)), np.nan)
    for place, layout in enumerate(group.layouts):
        rows = group.tensors.rows[place, piece.columns]
        there = np.flatnonzero(rows != NOT_THERE)
        if len(there):
            arrays = layout.arrays(column)
            chosen = [arrays[group.places[step][place]] for step in piece.steps]
            if len(there) == 1:
                row = int(rows[there[0]])
                found[place, :, there[0]] = [array[row] for array in chosen]
            else:
                found[place][:, there] = np.stack([array[rows[there]] for array in chosen])
    return found


def _only(own: np.ndarray, leads: np.ndarray) -> np.ndarray:
    """Of the one rank that leads."""
    first = np.argmax(leads[:, 0], axis=0)
    return np.array(np.take_along_axis(own, first[None, None, :], 0)[0])


def _agree(own: np.ndarray, leaders: np.ndarray) -> np.ndarray:
    """bool[steps, tensors]: whether all ranks that have the same piece say the same of it."""
    good = np.ones(own.shape[1:], bool)
    for place in range(len(own)):
        follows = np.flatnonzero((leaders[place] != place) & (leaders[place] != NOT_THERE))
        if len(follows):
            mine, theirs = own[place][:, follows], own[leaders[place, follows], :, follows].T
            good[:, follows] &= np.isclose(mine, theirs, rtol=_SAME, atol=0, equal_nan=True)
    return good


def _dense(piece: Piece, leads: np.ndarray) -> np.ndarray:
    """int64[steps, tensors, bins]: the histograms of all pieces, added up."""
    group = piece.group
    found = np.zeros((len(piece.steps), len(piece.columns), HISTOGRAM_BINS), np.int64)
    for place, layout in enumerate(group.layouts):
        columns = np.flatnonzero(leads[place] & (group.tensors.rows[place, piece.columns] != NOT_THERE))
        if not len(columns):
            continue
        rows = group.tensors.rows[place, piece.columns[columns]]
        first, lists = layout.arrays("hist_first"), layout.lists("hist")
        for n, step in enumerate(piece.steps):
            at = group.places[step][place]
            found[n, columns] += histograms.dense(first[at], *lists[at], rows)
    return found

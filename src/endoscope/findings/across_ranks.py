"""What the ranks of a job have recorded, side by side: for the checks that compare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from endoscope.findings.facts import Facts
from endoscope.findings.rows import Rows, Tensor
from endoscope.query.ranks.placement import Arrangement
from endoscope.query.ranks.tables import WholeTables

#: Where a rank has recorded what: the rows of values, of parameters, …
Pick = Callable[[Facts], Rows]


class Replicas(NamedTuple):
    """A tensor that should be the same on some ranks."""

    tensor: Tensor
    ranks: tuple[int, ...]


def replicas(facts: Facts, rows: Rows) -> Iterator[Replicas]:
    """The tensors that several ranks should have in common, going by how they are placed."""
    for tensor, arrangement in _arranged(facts, rows):
        for piece in arrangement.pieces:
            if len(piece.ranks) > 1:
                yield Replicas(tensor, piece.ranks)


def batches(facts: Facts, rows: Rows) -> Iterator[tuple[Tensor, tuple[int, ...]]]:
    """The tensors that are of other samples on some ranks, with one rank for each of these."""
    for tensor, arrangement in _arranged(facts, rows):
        leaders = {piece.batch: piece.ranks[0] for piece in reversed(arrangement.pieces)}
        if len(leaders) > 1:
            yield tensor, tuple(leaders[number] for number in sorted(leaders))


def on_rank(facts: Facts, rank: int, pick: Pick, tensor: Tensor, statistic: str) -> np.ndarray:
    """float64[steps]: a statistic of a tensor as one rank has it, at the steps of the whole; NaN where it lacks."""
    found = np.full(len(facts.steps), np.nan)
    own = facts.of_ranks[rank]
    rows = pick(own)
    row = rows.row_of.get(tensor.place)
    if row is not None:
        place = {number: at for at, number in enumerate(own.numbers.tolist())}
        at = np.array([place.get(number, -1) for number in facts.numbers.tolist()], np.int64)
        values = rows[statistic][row].astype(np.float64)
        found[at >= 0] = values[at[at >= 0]]
    return found


def stacked(facts: Facts, ranks: tuple[int, ...], pick: Pick, tensor: Tensor, statistic: str) -> np.ndarray:
    """float64[ranks, steps]."""
    return np.stack([on_rank(facts, rank, pick, tensor, statistic) for rank in ranks])


def spread(values: np.ndarray) -> np.ndarray:
    """float64[steps]: the difference between ranks, as a part of the largest magnitude; NaN where one lacks."""
    size = np.abs(values).max(axis=0)
    return np.asarray((values.max(axis=0) - values.min(axis=0)) / np.where(size > 0, size, 1.0))


def _arranged(facts: Facts, rows: Rows) -> Iterator[tuple[Tensor, Arrangement]]:
    tables = facts.recording.tables
    if not isinstance(tables, WholeTables) or not facts.of_ranks:
        return
    known = tables.arrangements
    for tensor in rows.tensors:
        key = tensor.key
        arrangement = known.get((key.node, key.role, key.pass_, key.of))
        if arrangement is not None:
            yield tensor, arrangement

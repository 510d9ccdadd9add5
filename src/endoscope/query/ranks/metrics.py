"""Metrics over ranks: the mean of what all ranks have logged, and the range.

A metric belongs to the ranks that have ever logged it; often that is one. At a step at which one of these lacks, there
is no mean over all of them: the step is left out, and `Missing` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.query import arrays
from endoscope.query.series import Metrics, in_order
from endoscope.store.streams import to_numpy

_MOST_NAMES = 2**20


class Missing(NamedTuple):
    """Steps at which some ranks have not logged a metric that they have logged at others."""

    name: str
    steps: int  # how many
    first: int
    ranks: tuple[int, ...]  # that lack anywhere


class _Rows(NamedTuple):
    """What one rank has logged, in the order in which it did."""

    names: np.ndarray  # codes, the same for all ranks
    steps: np.ndarray
    times: np.ndarray
    values: np.ndarray
    types: np.ndarray


class WholeMetrics(Metrics):
    """The mean over ranks of each metric, with `low` and `high`."""

    def __init__(self, table: pa.Table, missing: Sequence[Missing] = ()) -> None:
        super().__init__(lambda: table)
        self.missing = missing

    @staticmethod
    def _made(found: pa.Table) -> pa.Table:
        return in_order(found)


def of_attempts(tables: Sequence[tuple[pa.Table, int | None]]) -> pa.Table:
    """What a rank has logged: of a metric at a step, what the latest attempt has.

    With each attempt comes the step from which on it has taken the place of those before.
    """
    names: dict[str, int] = {}
    found = [(table, _codes(table, "name", names), lowest) for table, lowest in tables if table.num_rows]
    if len(found) <= 1:
        return found[0][0] if found else tables[0][0]
    kept = [found[-1][0]]
    later = _places(found[-1])
    lowest = found[-1][2]
    for one in reversed(found[:-1]):
        steps = to_numpy(one[0]["step"])
        stays = ~np.isin(_places(one), later) & (steps < lowest if lowest is not None else True)
        kept.insert(
            0,
            pa.table({name: arrays.take(one[0][name].chunk(0), np.flatnonzero(stays)) for name in one[0].column_names}),
        )
        later = np.concatenate([later, _places(one)])
        lowest = min((step for step in (lowest, one[2]) if step is not None), default=None)
    return pa.concat_tables(kept).unify_dictionaries().combine_chunks()


def _places(attempt: tuple[pa.Table, np.ndarray, int | None]) -> np.ndarray:
    """One number for each step and name."""
    table, names, _ = attempt
    return np.asarray(to_numpy(table["step"]) * _MOST_NAMES + names)


def over_ranks(of_rank: Mapping[int, pa.Table]) -> tuple[pa.Table, list[Missing]]:
    """One table for all ranks, with the columns `low` and `high` beside the mean."""
    names: dict[str, int] = {}
    types: dict[str, int] = {}
    rows = {rank: _rows(table, names, types) for rank, table in of_rank.items() if table.num_rows}
    if not rows:
        return next(iter(of_rank.values())), []
    ranks, all_rows = list(rows), list(rows.values())
    first = all_rows[0]
    same = all(
        np.array_equal(one.names, first.names) and np.array_equal(one.steps, first.steps) for one in all_rows[1:]
    )
    if same:
        values = np.stack([one.values for one in all_rows])
        return _table(first, _spread(values, np.ones(values.shape, bool)), list(names), list(types)), []
    found, values, there, missing = _matched(ranks, all_rows, list(names))
    return _table(found, _spread(values, there), list(names), list(types)), missing


def _matched(
    ranks: list[int], rows: list[_Rows], names: list[str]
) -> tuple[_Rows, np.ndarray, np.ndarray, list[Missing]]:
    """(rows, values[ranks, rows], which of these there are, what is missing)."""
    rank = np.repeat(np.arange(len(rows)), [len(one.steps) for one in rows])
    every = _Rows(*(np.concatenate(columns) for columns in zip(*rows, strict=True)))
    order = np.lexsort((np.arange(len(rank)), rank, every.steps, every.names))
    is_new = _changes(every.names[order], every.steps[order], rank[order])
    starts = np.flatnonzero(is_new)
    time_of_day = np.arange(len(order)) - starts[np.cumsum(is_new) - 1]  # n-th time that a rank logs it at a step
    nth = np.empty(len(order), np.int64)
    nth[order] = time_of_day
    order = np.lexsort((rank, nth, every.steps, every.names))
    group = np.cumsum(_changes(every.names[order], every.steps[order], nth[order])) - 1
    values = np.full((len(rows), int(group[-1]) + 1), np.nan)
    there = np.zeros(values.shape, bool)
    values[rank[order], group], there[rank[order], group] = every.values[order], True
    first = order[np.searchsorted(group, np.arange(values.shape[1]))]
    logs = np.zeros((len(rows), len(names)), bool)
    logs[rank, every.names] = True
    lacks = logs[:, every.names[first]] & ~there
    missing = []
    for code in np.unique(every.names[first][lacks.any(axis=0)]).tolist():
        gone = lacks & (every.names[first] == code)
        steps = every.steps[first][gone.any(axis=0)]
        at = tuple(ranks[place] for place in np.flatnonzero(gone.any(axis=1)).tolist())
        missing.append(Missing(names[code], len(steps), int(steps.min()), at))
    keep = np.flatnonzero(~lacks.any(axis=0))
    keep = keep[np.argsort(every.times[first[keep]], kind="stable")]
    return _Rows(*(column[first[keep]] for column in every)), values[:, keep], there[:, keep], missing


def _spread(values: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, smallest, largest) over the ranks that have logged it; where one has logged NaN, so is the mean."""
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    with np.errstate(all="ignore"):
        mean = (np.where(there, values, 0.0) / np.maximum(np.count_nonzero(there, axis=0), 1)).sum(axis=0)
    return np.clip(mean, low, high), low, high


def _rows(table: pa.Table, names: dict[str, int], types: dict[str, int]) -> _Rows:
    return _Rows(
        _codes(table, "name", names), to_numpy(table["step"]), to_numpy(table["time"]), to_numpy(table["value"]),
        _codes(table, "type", types),
    )  # fmt: skip


def _codes(table: pa.Table, column: str, known: dict[str, int]) -> np.ndarray:
    found = table[column].chunk(0)
    codes = [known.setdefault(word, len(known)) for word in found.dictionary.to_pylist()]
    return np.asarray(np.array(codes, np.int64)[to_numpy(found.indices)])


def _table(
    rows: _Rows, spread: tuple[np.ndarray, np.ndarray, np.ndarray], names: list[str], types: list[str]
) -> pa.Table:
    mean, low, high = spread
    return pa.table(
        {
            "step": arrays.numbers(rows.steps),
            "time": arrays.numbers(rows.times),
            "name": arrays.dictionary(np.array(names, object)[rows.names]),
            "value": arrays.numbers(mean),
            "type": arrays.dictionary(np.array(types, object)[rows.types]),
            "low": arrays.numbers(low),
            "high": arrays.numbers(high),
        }
    )


def _changes(*columns: np.ndarray) -> np.ndarray:
    """Where any of some columns differs from the row before."""
    found = np.ones(len(columns[0]), bool)
    found[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return found

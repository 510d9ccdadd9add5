"""One number over all recorded steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import BadArgument, LookupFailed
from endoscope.query import arrays
from endoscope.query.reading.columns import Columns, Lists
from endoscope.query.steps import UNKNOWN, Steps
from endoscope.schema.recording import TABLES
from endoscope.schema.stats import SAMPLE, UNIT
from endoscope.store.streams import to_list, to_numpy


@dataclass(frozen=True, slots=True)
class Series:
    """Values over steps, in the order of the steps."""

    steps: np.ndarray  # int64
    values: np.ndarray  # float64
    types: np.ndarray  # type of each step, as text
    ranks: tuple[int, ...] = ()  # that each value is of; empty in a trial of one process
    low: np.ndarray | None = None  # of a metric of several ranks: the smallest number that one of them has
    high: np.ndarray | None = None  # the largest
    #: Whether the values are known to one bin of the histogram only: quantiles of what lies on several ranks.
    approximate: bool = False
    #: Why there is no value (it is NaN then), for each step; empty texts where there is one. Of several ranks only.
    gaps: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)


def check_statistic(statistic: str, known: Sequence[str], what: str) -> None:
    """Refuse a statistic that is not recorded for this, with the ones that are."""
    if statistic in known:
        return
    near = nearest(str(statistic), known, 1)
    hint = f" Did you mean {near[0]!r}?" if isinstance(statistic, str) and near and near[0] in known else ""
    raise LookupFailed(f"There is no statistic {statistic!r} {what}.{hint} There are: {', '.join(known)}.")


def of_whole(columns: Columns, keys: Collection[int], statistic: str) -> tuple[np.ndarray, np.ndarray]:
    """(ordinals, values) of a statistic of the whole tensor."""
    found = columns.numbers(statistic, keys)
    return found.ordinals, found.values.astype(np.float64, copy=False)


def of_sample(columns: Columns, keys: Collection[int], statistic: str, sample: int) -> tuple[np.ndarray, np.ndarray]:
    """(ordinals, values) of a statistic of one sample, in the steps that have the sample."""
    check_statistic(statistic, SAMPLE, "of a single sample")
    indices = columns.lists("sample", keys)
    positions = np.array([_place_of(samples, sample) for samples in indices.values], np.int64)
    if len(positions) and (positions < 0).all():
        longest = int(indices.lengths.max())
        raise LookupFailed(f"No step has a sample {sample} of this tensor; the largest batch has {longest}, from 0 on.")
    return _existing(columns.lists(statistic, keys), positions)


def of_unit(
    columns: Columns, keys: Collection[int], statistic: str, unit: int | Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(ordinals, values) of a statistic of one unit over the batch, in the steps that have the unit."""
    check_statistic(statistic, UNIT, "of a single unit")
    values = columns.lists(statistic, keys)
    if isinstance(unit, (int, np.integer)):
        positions = np.full(len(values.values), int(unit))
    else:
        positions = _flat_positions(columns.lists("unit_shape", keys), [int(index) for index in unit])
    fits = (positions >= 0) & (positions < values.lengths)
    if len(positions) and not fits.any():
        raise LookupFailed(
            f"No step has a unit {unit!r} of this tensor; it has {int(values.lengths.max())} units at most."
        )
    return _existing(values, np.where(fits, positions, -1))


def over_steps(ordinals: np.ndarray, values: np.ndarray, steps: Steps, type_: str | None) -> Series:
    """From the n-th recorded step to the step's number and type."""
    numbers, types = steps.numbers_of(ordinals), steps.types_of(ordinals)
    chosen = numbers != UNKNOWN
    if type_ is not None:
        steps.check_type(type_)
        chosen &= types == type_
    if not chosen.all():
        numbers, values, types = numbers[chosen], values[chosen], types[chosen]
    if np.any(numbers[1:] < numbers[:-1]):
        order = np.argsort(numbers, kind="stable")
        numbers, values, types = numbers[order], values[order], types[order]
    return Series(numbers, values, types)


def in_order(table: pa.Table) -> pa.Table:
    """What belongs to a recorded step is written with it, so it may stand before or after that of its neighbours."""
    steps = to_numpy(table["step"].chunk(0)) if table.num_rows else np.empty(0, np.int64)
    if not np.any(steps[1:] < steps[:-1]):
        return table
    order = np.argsort(steps, kind="stable")
    return pa.table({name: arrays.take(table[name].chunk(0), order) for name in table.column_names})


class Metrics(Mapping[str, Series]):
    """The metrics of all steps, recorded or not, by name."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read
        self._table: pa.Table | None = None
        self._series: dict[str, Series] | None = None

    @property
    def table(self) -> pa.Table:
        """All of them in one table, in the order of the steps; each name and type is stored once."""
        if self._table is None:
            self._table = self._made(self._read())
        return self._table

    @staticmethod
    def _made(found: pa.Table) -> pa.Table:
        # A newer version may have written more columns.
        columns = {name: found[name].combine_chunks() for name, _ in TABLES["metrics"]}
        texts = {name: arrays.dictionary(to_list(columns[name])) for name in ("name", "type")}
        return in_order(pa.table(columns | texts))

    def __getitem__(self, name: str) -> Series:
        found = self._all().get(name)
        if found is None:
            near = ", ".join(repr(known) for known in nearest(str(name), self._all())) or "none was recorded"
            raise LookupFailed(f"There is no metric {name!r}. Nearest: {near}.")
        return found

    def __call__(self, *_: Any) -> Any:
        raise BadArgument("recording.metrics is no method but a mapping by name. Type: recording.metrics['lr'].values")

    def __iter__(self) -> Any:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def of(self, names: Collection[str]) -> pa.Table:
        """The rows of some of them."""
        if not self.table.num_rows:
            return self.table
        column = self.table["name"].chunk(0)
        wanted = np.array([name in names for name in column.dictionary.to_pylist()])
        rows = np.flatnonzero(wanted[to_numpy(column.indices)])
        return pa.table({name: arrays.take(self.table[name].chunk(0), rows) for name in self.table.column_names})

    def _names(self) -> list[str]:
        return list(self.table["name"].chunk(0).dictionary.to_pylist()) if self.table.num_rows else []

    def __repr__(self) -> str:
        return f"<Metrics: {', '.join(self)}>"

    def _all(self) -> dict[str, Series]:
        if self._series is None:
            self._series = _by_name(self.table)
        return self._series


def _by_name(table: pa.Table) -> dict[str, Series]:
    if not table.num_rows:
        return {}
    names, kinds = table["name"].chunk(0), table["type"].chunk(0)
    codes = to_numpy(names.indices)
    steps, values = to_numpy(table["step"]), to_numpy(table["value"])
    types = np.array(kinds.dictionary.to_pylist(), dtype=object)[to_numpy(kinds.indices)]
    low, high = (to_numpy(table[name]) if name in table.column_names else None for name in ("low", "high"))
    found = {}
    for code, name in enumerate(names.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        rows = rows[np.argsort(steps[rows], kind="stable")]
        found[name] = Series(
            steps[rows], values[rows], types[rows],
            low=None if low is None else low[rows], high=None if high is None else high[rows],
        )  # fmt: skip
    return found


def _existing(lists: Lists, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    there = (positions >= 0) & (positions < lists.lengths)
    return lists.ordinals[there], lists.elements(positions)[there]


def _place_of(samples: np.ndarray, sample: int) -> int:
    if 0 <= sample < len(samples) and samples[sample] == sample:
        return sample
    found = np.flatnonzero(samples == sample)  # not all samples of the batch were measured
    return int(found[0]) if len(found) else -1


def _flat_positions(shapes: Lists, unit: Sequence[int]) -> np.ndarray:
    """Index into the shape of the units -> place in the flattened list; -1 where it does not fit."""
    if not unit:
        raise BadArgument("unit=() names no unit. Say a number, or one index for each dimension of the units.")
    sizes = [shapes.elements(np.full(len(shapes.values), n)) for n in range(len(unit))]
    positions, fits = np.zeros(len(shapes.values)), shapes.lengths == len(unit)
    for index, size in zip(unit, sizes, strict=True):
        fits = fits & (index >= 0) & (index < size)
        positions = positions * size + index
    return np.where(fits, positions, -1).astype(np.int64)

"""Differences between two types of step, or two trials: of tensors as a whole, and of every unit over the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from endoscope.findings.differing.contrasts import SHARES, Contrasts, Subject, as_logarithms
from endoscope.findings.differing.sides import LEAST_WINDOWS, Place, Sides
from endoscope.findings.differing.windows import Windows
from endoscope.schema.recording import Key
from endoscope.schema.stats import UNIT
from endoscope.store.streams import to_numpy

STATISTICS = ("mean", "std", "abs_mean", "min", "max", "q05", "q50", "q95", "zeros", "nans", "infs")
_MOST_PATTERNS = 40  # of steps that have a tensor; tensors with rarer ones lose the windows that are not complete
_MOST_UNIT_WINDOWS = 24
_UNITS_AT_ONCE = 100_000


def of_tensors(sides: Sides) -> Iterator[Contrasts]:
    """Every statistic of every tensor that both sides have."""
    sizes = {
        keys[0].of: _mean(np.where(np.isfinite(values), values, np.nan)) for keys, values in sides.matrices("abs_mean")
    }
    cache: dict[bytes, Windows] = {}
    for statistic in STATISTICS:
        for keys, values in sides.matrices(statistic):
            subjects = [Subject(key, statistic) for key in keys]
            yield from _contrasts(sides, subjects, values, sizes[keys[0].of], cache)


def of_units(sides: Sides) -> Iterator[Contrasts]:
    """Every unit of every tensor that both sides have, at some of the windows."""
    windows = sides.windows().pick(_MOST_UNIT_WINDOWS)
    columns = np.flatnonzero(windows.used)
    some = replace(sides, columns=[sides.columns[n] for n in columns.tolist()])
    windows = windows.only(columns)
    for part in _parts(some):
        values = _read_units(some, part)
        size = _mean(np.abs(values["mean"])) + _mean(values["std"])
        units = [(key, unit) for entry in part for key, unit in _numbered(entry)]
        for statistic in UNIT:
            subjects = [Subject(key, statistic, unit) for key, unit in units]
            yield from _with_windows(some, windows, subjects, values[statistic], size)


def _contrasts(
    sides: Sides, subjects: Sequence[Subject], values: np.ndarray, size: np.ndarray, cache: dict[bytes, Windows]
) -> Iterator[Contrasts]:
    """One for each set of steps that tensors were recorded at."""
    rows_of: dict[bytes, list[int]] = {}
    there = np.isfinite(values)
    for row, bits in enumerate(np.packbits(there, axis=1)):
        rows_of.setdefault(bits.tobytes(), []).append(row)
    common = sorted(rows_of, key=lambda bits: -len(rows_of[bits]))[:_MOST_PATTERNS]
    for bits, rows in rows_of.items():
        pattern = there[rows[0]]
        if not pattern[sides.is_a].any() or not pattern[~sides.is_a].any():
            continue
        steps = pattern if bits in common else np.ones_like(pattern)
        name = steps.tobytes()
        if name not in cache:
            cache[name] = sides.windows(steps)
        if len(cache[name]) >= LEAST_WINDOWS:
            yield from _with_windows(sides, cache[name], [subjects[row] for row in rows], values[rows], size[rows])


def _with_windows(
    sides: Sides, windows: Windows, subjects: Sequence[Subject], values: np.ndarray, size: np.ndarray
) -> Iterator[Contrasts]:
    used = windows.used
    is_a = sides.is_a[used]
    statistic = subjects[0].statistic
    values, ratio = as_logarithms(values[:, used], statistic)
    values = np.where(np.isfinite(values), values, np.nan)
    near = windows.only(np.flatnonzero(used))
    owners = np.arange(len(near))[:, None] == near.owner
    with np.errstate(all="ignore"):
        hole = np.isnan(values)
        full = np.where(hole, 0.0, values)  # NaN times a weight of zero would spoil every window
        spoilt = hole.astype(np.float64) @ (near.weights != 0).T > 0 if hole.any() else False
        deltas = np.where(spoilt, np.nan, full @ near.weights.T)
        rest = (full @ near.residual.T) ** 2 @ owners.T.astype(np.float64)
        middle = (_mean(values[:, is_a]) + _mean(values[:, ~is_a])) / 2
    size = np.ones_like(size) if statistic in SHARES else size
    counts = (int(is_a.sum()), int((~is_a).sum()))
    yield Contrasts(
        subjects, deltas, near.noise, middle, size, ratio, near.first, counts,
        rest=rest, rest_freedom=near.freedom, wanders=sides.has_parameters,
    )  # fmt: skip


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean of each row, without warning where there is none."""
    there = ~np.isnan(values)
    return np.asarray(np.where(there, values, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1))


# Units: their numbers lie one after the other, tensor after tensor, in what a step has written.


class _Entry(NamedTuple):
    """A tensor whose units are compared."""

    place: Place
    key: Key
    shape: tuple[int, ...]

    @property
    def units(self) -> int:
        return math.prod(self.shape)


def _numbered(entry: _Entry) -> Iterator[tuple[Key, tuple[int, ...]]]:
    return ((entry.key, unit) for unit in np.ndindex(entry.shape))


def _parts(sides: Sides) -> Iterator[list[_Entry]]:
    """Tensors that both sides have with the same units, so many at a time that they fit into memory."""
    found: dict[bool, dict[Place, _Entry]] = {True: {}, False: {}}
    for column in sides.columns:
        keys = column.facts.recording.tables.keys.by_number
        batch = column.facts.recording.tables.batch("units", column.step)
        if batch is None:
            continue
        shapes, offsets = to_numpy(batch.column("unit_shape").values), to_numpy(batch.column("unit_shape").offsets)
        for row, number in enumerate(to_numpy(batch.column("key")).tolist()):
            key = keys.get(number)
            if key is not None and (place := _place(key)) not in found[column.is_a]:
                shape = tuple(shapes[offsets[row] : offsets[row + 1]].tolist())
                found[column.is_a][place] = _Entry(place, key, shape)
    part: list[_Entry] = []
    many = 0
    for place, entry in found[True].items():
        other = found[False].get(place)
        if other is None or other.shape != entry.shape or not entry.units:
            continue
        many += entry.units
        if part and many > _UNITS_AT_ONCE:
            yield part
            part, many = [], entry.units
        part.append(entry)
    if part:
        yield part


def _read_units(sides: Sides, part: Sequence[_Entry]) -> dict[str, np.ndarray]:
    """Statistic -> float64[units, columns]; NaN where a step has no such tensor, or has it with other units."""
    starts = np.concatenate([[0], np.cumsum([entry.units for entry in part])]).astype(np.int64)
    base = {entry.place: (int(start), entry.units) for start, entry in zip(starts, part, strict=False)}
    found = {name: np.full((int(starts[-1]), len(sides.columns)), np.nan, np.float32) for name in UNIT}
    layouts: dict[tuple[int, bytes, bytes], tuple[np.ndarray, np.ndarray]] = {}
    for at, column in enumerate(sides.columns):
        batch = column.facts.recording.tables.batch("units", column.step)
        if batch is None:
            continue
        numbers, offsets = to_numpy(batch.column("key")), to_numpy(batch.column("mean").offsets)
        layout = (id(column.facts), numbers.tobytes(), offsets.tobytes())
        if layout not in layouts:
            keys = column.facts.recording.tables.keys.by_number
            layouts[layout] = _destinations([keys.get(n) for n in numbers.tolist()], offsets, base)
        source, target = layouts[layout]
        for name in UNIT:
            found[name][target, at] = to_numpy(batch.column(name).values)[source]
    return found


def _destinations(
    keys: Sequence[Key | None], offsets: np.ndarray, base: dict[Place, tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """(where in what was written, where in the matrix) of all units that are wanted."""
    source, target = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for row, key in enumerate(keys):
        start, count = base.get(_place(key), (0, -1)) if key is not None else (0, -1)
        if offsets[row + 1] - offsets[row] == count:
            source.append(np.arange(offsets[row], offsets[row + 1]))
            target.append(np.arange(start, start + count))
    return np.concatenate(source), np.concatenate(target)


def _place(key: Key) -> Place:
    return key.node, key.role, key.pass_, key.of

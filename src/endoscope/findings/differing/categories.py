"""Differences between two categories of samples, within the batches of single steps.

Both categories meet the same network at the same step, so there is no drift to take out. But samples come again in the
next epoch, and a difference that is chance would come again with them. So the error of a mean difference is never taken
for smaller than the number of *different* samples allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from endoscope.errors import BadArgument, EndoscopeError, LookupFailed
from endoscope.findings.differing.contrasts import SCALES, SHARES, Contrasts, Subject
from endoscope.findings.facts import Facts
from endoscope.findings.rows import Tensor
from endoscope.findings.units import by_feature
from endoscope.query import bulk
from endoscope.query.steps import Step
from endoscope.schema.recording import Key
from endoscope.schema.stats import UNIT_CAP
from endoscope.store.streams import to_numpy

STATISTICS = ("mean", "std", "abs_mean", "min", "max", "zeros", "nans", "infs")
LEAST_STEPS = 4
_MOST_STEPS = 120
_MOST_RAW_STEPS = 32
_MOST_RAW_TENSORS = 3000  # that are read, over all steps
_A, _B, _NEITHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Categories:
    """Two categories, and the steps whose batches have both."""

    names: tuple[str, str]
    facts: Facts
    steps: Sequence[Step]

    def sides(self, step: Step) -> np.ndarray:
        """For each sample of the batch, which category it is of."""
        codes = {self.names[0]: _A, self.names[1]: _B}
        return np.array([codes.get(category, _NEITHER) for category in step.categories], np.int64)


def of_categories(facts: Facts, a: str, b: str) -> Categories:
    known = Counter(category for step in facts.steps for category in step.categories)
    if not known:
        raise BadArgument(
            f"No categories of samples were recorded in {facts.trial!r}. Say them while recording: "
            "step.decide(categories=labels)."
        )
    for name in (a, b):
        if name not in known:
            there = ", ".join(repr(category) for category, _ in known.most_common(8))
            raise LookupFailed(f"There is no category {name!r} in {facts.trial!r}. Most frequent: {there}.")
    steps = [step for step in facts.steps if a in step.categories and b in step.categories]
    if len(steps) < LEAST_STEPS:
        raise BadArgument(
            f"Only {len(steps)} recorded steps have samples of both {a!r} and {b!r} in their batch; {LEAST_STEPS} are "
            "the least that can tell a difference from chance. Record more steps, or larger batches."
        )
    return Categories((a, b), facts, _spread(steps, _MOST_STEPS))


def of_tensors(categories: Categories) -> Iterator[Contrasts]:
    """Every statistic per sample of every tensor."""
    table = _Sums(categories)
    for step in categories.steps:
        table.add(step)
    distinct = _distinct(categories, {step.ordinal: None for step in categories.steps})
    for statistic in STATISTICS:
        yield from table.contrasts(statistic, distinct)


class _Sums:
    """Means of both categories for every tensor and step, statistic by statistic."""

    def __init__(self, categories: Categories) -> None:
        self.categories = categories
        self.keys: list[Key] = []
        self._row_of: dict[tuple[str, str, int, str], int] = {}
        self._row_of_number: dict[int, int] = {}
        for number, key in sorted(categories.facts.recording.tables.keys.by_number.items()):
            if key.batch_dim < 0:
                continue
            row = self._row_of.setdefault((key.node, key.role, key.pass_, key.of), len(self.keys))
            if row == len(self.keys):
                self.keys.append(key)
            self._row_of_number[number] = row
        many = (len(self.keys), len(categories.steps))
        self._places = {step.ordinal: place for place, step in enumerate(categories.steps)}
        self.means = {name: np.full((2, *many), np.nan) for name in STATISTICS}
        self._squares = {name: np.zeros(many[0]) for name in STATISTICS}  # within a category and a step
        self._freedom = {name: np.zeros(many[0]) for name in STATISTICS}
        self.counts = np.zeros((2, many[1]))  # samples of each category

    def add(self, step: Step) -> None:
        batch = self.categories.facts.recording.tables.batch("samples", step)
        if batch is None:
            return
        rows = np.array([self._row_of_number.get(n, -1) for n in to_numpy(batch.column("key")).tolist()], np.int64)
        samples, owner = _flat(batch, "sample")
        of_batch = self.categories.sides(step)
        sides = np.where(samples < len(of_batch), of_batch[np.minimum(samples, len(of_batch) - 1)], _NEITHER)
        place = self._places[step.ordinal]
        self.counts[:, place] = (of_batch == _A).sum(), (of_batch == _B).sum()
        wanted = (sides != _NEITHER) & (rows[owner] >= 0)
        elements = np.array([_elements_per_sample(self.keys[row]) if row >= 0 else 1 for row in rows.tolist()])
        for name in STATISTICS:
            values = _flat(batch, name)[0].astype(np.float64)
            if name in SHARES:
                values = values / elements[owner]
            use = wanted & np.isfinite(values)
            cells = owner[use] * 2 + sides[use]
            self._take(name, place, rows, cells, values[use])

    def _take(self, name: str, place: int, rows: np.ndarray, cells: np.ndarray, values: np.ndarray) -> None:
        size = 2 * len(rows)
        counts = np.bincount(cells, minlength=size).astype(np.float64)
        with np.errstate(all="ignore"):
            means = np.bincount(cells, values, size) / counts
            away = np.bincount(cells, (values - means[cells]) ** 2, size)
        known = np.flatnonzero(rows >= 0)
        for side in (_A, _B):
            self.means[name][side, rows[known], place] = means[2 * known + side]
            np.add.at(self._squares[name], rows[known], away[2 * known + side])
            np.add.at(self._freedom[name], rows[known], np.maximum(counts[2 * known + side] - 1, 0))

    def contrasts(self, statistic: str, distinct: tuple[int, int]) -> Iterator[Contrasts]:
        a, b = self.means[statistic]
        spread = np.sqrt(self._squares[statistic] / np.maximum(self._freedom[statistic], 1))
        both = ~np.isnan(a) & ~np.isnan(b)
        with np.errstate(all="ignore"):
            ratio = np.zeros(len(a), dtype=bool)
            level = _mean_where(np.abs(a + b) / 2, both)
            if statistic in SCALES:
                ratio = np.asarray(both.any(axis=1) & np.where(both, (a > 0) & (b > 0), True).all(axis=1))
                spread = np.where(ratio, spread / level, spread)
            a, b = (np.where(ratio[:, None], np.log(side), side) for side in (a, b))
        rows = np.flatnonzero(both.sum(axis=1) >= LEAST_STEPS)
        abs_mean = self.means["abs_mean"]
        size = _mean_where((abs_mean[0] + abs_mean[1]) / 2, both)
        total = (int(self.counts[_A].sum()), int(self.counts[_B].sum()))
        yield Contrasts(
            [Subject(self.keys[row], statistic) for row in rows.tolist()],
            np.where(both, a - b, np.nan)[rows],
            _noise(self.counts),
            _mean_where((a + b) / 2, both)[rows],
            np.ones(len(rows)) if statistic in SHARES else size[rows],
            ratio[rows],
            np.array([step.number for step in self.categories.steps], np.int64),
            total,
            spread[rows] * np.sqrt(1 / distinct[0] + 1 / distinct[1]),
        )


def of_units(categories: Categories) -> Iterator[Contrasts]:
    """Features (channels of images) of the samples that were kept raw, as a mean over positions."""
    facts = categories.facts
    usable = [step for step in facts.steps if step.raw_file and _has_both(categories, step)]
    tensors = [t for rows in (facts.values, *facts.gradients.values()) for t in rows.tensors if t.key.batch_dim >= 0]
    most = min(_MOST_RAW_STEPS, max(LEAST_STEPS, _MOST_RAW_TENSORS // max(len(tensors), 1)))
    steps = _spread(usable, most)
    if len(steps) < LEAST_STEPS:
        return
    found = [_Raw(tensor.key) for tensor in tensors]
    for step in steps:  # the outer loop: one file for each step
        sides = _raw_sides(categories, step)
        for tensor, raw in zip(tensors, found, strict=True):
            values = _features(facts, tensor, step)
            if values is not None and len(values) == len(sides):
                raw.add(step, [values[sides == side] for side in (_A, _B)])
    distinct = _distinct(categories, {step.ordinal: step.raw_samples for step in steps})
    for raw in found:
        if len(raw.steps) >= LEAST_STEPS and len({len(mean[0]) for mean in raw.means}) == 1:
            yield raw.contrasts(distinct)


class _Raw:
    """Features of one tensor, step after step."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.steps: list[int] = []
        self.means: list[list[np.ndarray]] = []  # of both categories
        self.counts: list[list[int]] = []
        self._away: list[np.ndarray] = []  # sums of squares around these means

    def add(self, step: Step, parts: list[np.ndarray]) -> None:
        self.steps.append(step.number)
        self.means.append([part.mean(axis=0) for part in parts])
        self.counts.append([len(part) for part in parts])
        self._away.append(sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in parts))

    def contrasts(self, distinct: tuple[int, int]) -> Contrasts:
        a, b = (np.stack([mean[side] for mean in self.means], axis=1) for side in (_A, _B))
        counts = np.array(self.counts, np.float64).T
        spread = np.sqrt(sum(self._away) / max(counts.sum() - counts.size, 1.0))
        return Contrasts(
            [Subject(self.key, "mean", (unit,)) for unit in range(len(a))],
            a - b,
            _noise(counts),
            (a + b).mean(axis=1) / 2,
            (np.abs(a) + np.abs(b)).mean(axis=1) / 2 + spread,
            np.zeros(len(a), dtype=bool),
            np.array(self.steps, np.int64),
            (int(counts[_A].sum()), int(counts[_B].sum())),
            spread * np.sqrt(1 / distinct[_A] + 1 / distinct[_B]),
        )


def _features(facts: Facts, tensor: Tensor, step: Step) -> np.ndarray | None:
    """float64[samples, features]; None if the step has no raw values of the tensor, or not finite ones."""
    key = tensor.key
    try:
        raw = bulk.tensor(facts.recording, bulk.Which(key.node, key.of, key.role, key.pass_, step.type), step.number)
    except (EndoscopeError, IndexError):
        return None
    if raw.samples is None or raw.values.dtype.kind not in "fiub" or not raw.values.size:
        return None
    values = raw.values.astype(np.float64)
    found = np.stack([by_feature(one.reshape(-1), one.shape, tensor).mean(axis=0) for one in values])
    return found if found.shape[1] <= UNIT_CAP and np.isfinite(found).all() else None


def _raw_sides(categories: Categories, step: Step) -> np.ndarray:
    sides = categories.sides(step)
    return np.array([sides[s] if 0 <= s < len(sides) else _NEITHER for s in step.raw_samples], np.int64)


def _has_both(categories: Categories, step: Step) -> bool:
    found = set(_raw_sides(categories, step).tolist()) if step.categories else set()
    return {_A, _B} <= found


def _distinct(categories: Categories, samples: dict[int, Sequence[int] | None]) -> tuple[int, int]:
    """How many different samples of each category there are, going by the numbers of the model's input.

    `samples` names for each step (by ordinal) those that count; None for all.
    """
    facts = categories.facts
    inputs = {
        n for n, key in facts.recording.tables.keys.by_number.items() if key.kind == "input" and key.of == "value"
    }
    seen: tuple[set[bytes], set[bytes]] = (set(), set())
    for step in facts.steps:
        if step.ordinal not in samples:
            continue
        batch = facts.recording.tables.batch("samples", step)
        chosen = samples[step.ordinal]
        marks = _marks(batch, inputs) if batch is not None else {}
        for sample, side in enumerate(categories.sides(step).tolist()):
            if side != _NEITHER and (chosen is None or sample in chosen):
                mark = marks.get(sample, f"{step.ordinal} {sample}".encode())  # not known: taken for a new one
                seen[side].add(mark)
    return max(len(seen[_A]), 1), max(len(seen[_B]), 1)


def _marks(batch: pa.RecordBatch, inputs: set[int]) -> dict[int, bytes]:
    """Sample -> the statistics of all inputs of the model, as bytes."""
    samples, owner = _flat(batch, "sample")
    numbers = to_numpy(batch.column("key"))
    use = np.isin(numbers, list(inputs))[owner]
    columns = np.stack([_flat(batch, name)[0][use] for name in ("mean", "std", "abs_max")], axis=1)
    found: dict[int, bytes] = {}
    for sample, row in zip(samples[use].tolist(), columns, strict=True):
        found[sample] = found.get(sample, b"") + row.tobytes()
    return found


def _flat(batch: pa.RecordBatch, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(all numbers of a column of lists, for each the row that it is from)."""
    column = batch.column(name)
    offsets = to_numpy(column.offsets)
    values = to_numpy(column.values)[offsets[0] : offsets[-1]]
    return values, np.repeat(np.arange(len(column)), np.diff(offsets))


def _noise(counts: np.ndarray) -> np.ndarray:
    return np.asarray((1 / np.maximum(counts, 1)).sum(axis=0))


def _mean_where(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(mask, values, 0.0).sum(axis=1) / np.maximum(mask.sum(axis=1), 1))


def _elements_per_sample(key: Key) -> int:
    sizes = [size for dim, size in enumerate(key.shape) if dim != key.batch_dim]
    return int(np.prod(sizes)) or 1 if sizes else 1


def _spread(steps: Sequence[Step], most: int) -> list[Step]:
    places = np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(np.int64))
    return [steps[place] for place in places.tolist()]

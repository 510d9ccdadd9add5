"""Counts of all pairs of events at once, and the few pairs that stand out of them.

    samples × samples   cells with both, against what each step by itself would give: drift over time cannot do it
    steps × samples     cells with both, against the shares over all steps
    steps × steps       steps with both, against the shares over all steps

Where two events are compared over steps, neighbouring steps count as far as they are independent (association.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from endoscope.findings import association
from endoscope.findings.event import LOSS, OUTLIER, Event, OverSamples, OverSteps

SAMPLES, STEPS = "samples", "steps"
LEAST = 5  # times that an event must happen, and must not happen
MOST_WORK = 1.5e11  # multiplications for the pairs of samples; beyond, the rarest outliers are left out
SAME = 0.8  # events whose union is their intersection, but for a fifth, are one
_CELLS_AT_ONCE = 8192
_MOST_PAIRS = 4000  # that are looked at closely, the strongest
_MOST_LOOKS = 2e8  # fewer, if each has very many cells
_MARGIN = np.log(2)


class Side(NamedTuple):
    """One event of a pair: among those over steps or over samples, and which one."""

    over: str
    number: int


@dataclass(slots=True)
class Pairs:
    """Some pairs, column by column."""

    over: str  # what is counted: samples or steps
    one: list[Side]
    other: list[Side]
    both: np.ndarray
    a: np.ndarray  # times of the one, where the other could happen
    b: np.ndarray
    n: np.ndarray
    surprise: np.ndarray
    share: np.ndarray  # of it that is independent

    def __len__(self) -> int:
        return len(self.one)


class Counted(NamedTuple):
    """All pairs of one block, as matrices."""

    both: np.ndarray
    expected: np.ndarray
    a: np.ndarray
    b: np.ndarray
    n: np.ndarray
    tested: np.ndarray  # bool: pairs that mean something


def limit(samples: OverSamples, steps: OverSteps) -> None:
    """Leave out what happens too rarely, or nearly always; and the rarest outliers if there are too many."""
    total = int(samples.there.sum())
    samples.keep([n for n, cells in enumerate(samples.cells) if LEAST <= len(cells) <= total - LEAST])
    steps.keep([n for n, m in enumerate(steps.masks) if LEAST <= m.sum() <= steps.present[n].sum() - LEAST])
    most = int(np.sqrt(MOST_WORK / max(samples.steps * samples.width, 1)))
    for over, sizes in ((samples, [len(c) for c in samples.cells]), (steps, [int(m.sum()) for m in steps.masks])):
        if len(over.events) > most:
            ranks = sorted(range(len(over.events)), key=lambda n: (over.events[n].kind == OUTLIER, -sizes[n]))
            over.keep(sorted(ranks[:most]))


# ---- three blocks -------------------------------------------------------------------------------------------------


def count_samples(samples: OverSamples) -> Counted:
    """Pairs of events that are both known for every sample."""
    both = _coincidences(samples)
    counts, present = samples.counts(), np.array(samples.present, np.float32).reshape(-1, samples.steps)
    sizes = samples.sizes.astype(np.float32)
    expected = (counts / np.maximum(sizes, 1)) @ counts.T
    a = counts @ present.T
    n = (present * sizes) @ present.T
    return Counted(both, expected, a, a.T, n, _tested(samples.events, samples.events, half=True))


def count_steps(steps: OverSteps) -> Counted:
    masks, present = steps.matrix(), np.array(steps.present, np.float32).reshape(-1, steps.steps)
    both, a, n = masks @ masks.T, masks @ present.T, present @ present.T
    expected = a * a.T / np.maximum(n, 1)
    return Counted(both, expected, a, a.T, n, _tested(steps.events, steps.events, half=True))


def count_mixed(steps: OverSteps, samples: OverSamples) -> Counted:
    """A step's event counts for all of its samples."""
    sizes = samples.sizes.astype(np.float32)
    masks, present = steps.matrix() * sizes, np.array(steps.present, np.float32).reshape(-1, steps.steps)
    counts, there = samples.counts(), np.array(samples.present, np.float32).reshape(-1, samples.steps)
    both, a, b, n = steps.matrix() @ counts.T, masks @ there.T, present @ counts.T, (present * sizes) @ there.T
    tested = _tested(steps.events, samples.events, half=False)
    losses = [np.array([event.kind == LOSS for event in over.events], dtype=bool) for over in (steps, samples)]
    tested &= ~np.outer(*losses)  # a loss of the step is the mean of what its samples have
    return Counted(both, a * b / np.maximum(n, 1), a, b, n, tested)


def _coincidences(samples: OverSamples) -> np.ndarray:
    """float32[events, events]: cells with both. A product of bits, some thousand cells at a time."""
    count = len(samples.events)
    total = np.zeros((count, count), np.float32)
    cells = samples.steps * samples.width
    starts = [np.searchsorted(own, np.arange(0, cells + _CELLS_AT_ONCE, _CELLS_AT_ONCE)) for own in samples.cells]
    for part in range((cells + _CELLS_AT_ONCE - 1) // _CELLS_AT_ONCE):
        first = part * _CELLS_AT_ONCE
        bits = np.zeros((count, min(_CELLS_AT_ONCE, cells - first)), np.float32)
        for number, own in enumerate(samples.cells):
            bits[number, own[starts[number][part] : starts[number][part + 1]] - first] = 1.0
        total += bits @ bits.T
    return total


def _tested(ones: list[Event], others: list[Event], half: bool) -> np.ndarray:
    """Which pairs mean something: not those of one subject, such as two statistics of one node, or two types."""
    found = np.ones((len(ones), len(others)), dtype=bool)
    if half:
        found = np.triu(found, 1)
    subjects: dict[str, list[int]] = {}
    for number, event in enumerate(others):
        subjects.setdefault(event.subject, []).append(number)
    for number, event in enumerate(ones):
        found[number, subjects.get(event.subject, [])] = False
    return found


# ---- those that stand out -----------------------------------------------------------------------------------------


def stand_out(counted: Counted, over: tuple[str, str], needed: float) -> Pairs:
    """The pairs whose surprise is enough as long as all is independent; of very many the strongest."""
    rows, columns = [], []
    for start in range(0, len(counted.both), 256):  # a part at a time: there may be millions
        part = slice(start, start + 256)
        both, expected, a, b, *_ = (matrix[part] for matrix in counted)
        surprise = association.surprise(both, expected, a, b)
        found = np.nonzero((surprise >= needed - _MARGIN) & counted.tested[part] & (both >= LEAST))
        rows.append(found[0] + start)
        columns.append(found[1])
    row, column = np.concatenate([*rows, np.empty(0, np.int64)]), np.concatenate([*columns, np.empty(0, np.int64)])
    row, column = row.astype(np.int64), column.astype(np.int64)
    both, expected, a, b, n = (matrix[row, column].astype(np.float64) for matrix in counted[:5])
    most = int(min(_MOST_PAIRS, _MOST_LOOKS / max(float(n.max(initial=1)), 1.0)))
    if len(row) > most:
        best = np.argsort(-association.phi_of(both, a, b, n), kind="stable")[:most]
        row, column, both, expected, a, b, n = (x[best] for x in (row, column, both, expected, a, b, n))
    return Pairs(
        SAMPLES if SAMPLES in over else STEPS,
        [Side(over[0], number) for number in row.tolist()], [Side(over[1], number) for number in column.tolist()],
        both, a, b, n, association.surprise(both, expected, a, b), np.ones(len(row)),
    )  # fmt: skip


def independent_samples(pairs: Pairs, samples: OverSamples, ids: np.ndarray) -> None:
    """How much of the surprise remains where the same samples come again."""
    sizes = np.maximum(samples.sizes, 1)[:, None]
    away: dict[int, np.ndarray] = {}

    def deviation(number: int) -> np.ndarray:
        if number not in away:
            dense = samples.dense(number)
            if len(away) > 256:
                away.clear()
            away[number] = np.where(samples.there, dense - dense.sum(axis=1, keepdims=True) / sizes, 0.0)
        return away[number]

    for place in range(len(pairs)):
        one, other = deviation(pairs.one[place].number), deviation(pairs.other[place].number)
        ratio, most = association.slots(one, other)
        pairs.share[place] = 1 / max(ratio, association.cluster_ratio(one, other, ids), 1.0)
        pairs.surprise[place] = min(pairs.surprise[place], most / pairs.share[place])


def independent_steps(pairs: Pairs, steps: OverSteps, samples: OverSamples) -> None:
    """How much of the surprise remains where neighbouring steps are alike."""
    if not len(pairs):
        return
    sizes = np.maximum(samples.sizes, 1)
    series = {STEPS: steps.matrix().astype(np.float64), SAMPLES: samples.counts() / sizes}
    used = {over: sorted({s.number for s in (*pairs.one, *pairs.other) if s.over == over}) for over in series}
    spectra = {over: association.powers(series[over][used[over]]) for over in series if used[over]}
    row = {Side(over, number): place for over in used for place, number in enumerate(used[over])}
    width = sizes.mean() if pairs.over == SAMPLES else 1.0
    for start in range(0, len(pairs), 512):
        part = slice(start, start + 512)
        ends = []
        for sides in (pairs.one[part], pairs.other[part]):
            raw, smooth = spectra[sides[0].over]
            rows = [row[side] for side in sides]
            ends.append((raw[rows], smooth[rows]))
        shifted = association.shift_variance(ends[0], ends[1], steps.steps) * width**2
        a, b, n = pairs.a[part], pairs.b[part], pairs.n[part]
        alone = a * (n - a) * b * (n - b) / np.maximum(n**2 * (n - 1), 1)
        pairs.share[part] = np.minimum(1.0, alone / np.maximum(shifted, 1e-12))

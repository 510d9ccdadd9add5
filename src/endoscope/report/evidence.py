"""What shows a finding: which statistics of which tensor over steps, and which pictures of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.errors import EndoscopeError
from endoscope.findings.check import Evidence
from endoscope.findings.finding import Finding
from endoscope.findings.registry import all_checks
from endoscope.markup import numbers
from endoscope.markup.tags import Markup
from endoscope.query import bulk
from endoscope.query.recording import Recording
from endoscope.query.series import Series
from endoscope.report import heat
from endoscope.report.charts import Line
from endoscope.schema.recording import GRADIENT
from endoscope.schema.stats import HISTOGRAM_BINS, ZERO_BIN, histogram_bin
from endoscope.store.streams import to_numpy

_MOST_COLUMNS = 160  # steps in a picture
_MOST_UNITS = 96
_NEXT_TO_NOTHING = 0.01  # share of the elements that are not zero
_ROOM = 0.13  # of the height of a picture, for one label


class Curves(NamedTuple):
    """Lines for one chart."""

    title: str
    lines: list[Line]


def curves_of(recording: Recording, finding: Finding) -> Curves | None:
    """The curve that shows a finding: a metric, or statistics of its tensor; None if nothing was recorded of it."""
    if finding.node in recording.metrics and not recording_has(recording, finding.node):
        return Curves(finding.node, by_type(recording.metrics[finding.node]))
    if not recording_has(recording, finding.node):
        return None
    shown = _evidence(finding)
    found: list[tuple[str, Series]] = []
    for of in _which(recording, finding, shown):
        for statistic in shown.statistics:
            series = _series(recording, finding, statistic, of)
            if series is not None:
                found.append((_name(recording, statistic, of), series))
    if not found:
        return None
    title = f"{' · '.join(dict.fromkeys(name for name, _ in found))} of {finding.node}"
    if len(found) == 1:
        return Curves(title, by_type(found[0][1]))
    lines = [Line(name, series.steps, series.values, n) for n, (name, series) in enumerate(found)]
    return Curves(title, lines)


def _evidence(finding: Finding) -> Evidence:
    check = all_checks().get(finding.check)
    return (check.evidence if check else None) or Evidence()


def recording_has(recording: Recording, node: str) -> bool:
    return bool(node) and any(key.node == node for key in recording.tables.keys.by_number.values())


def by_type(series: Series) -> list[Line]:
    """One line for each type of step."""
    types = list(dict.fromkeys(series.types.tolist()))
    lines = []
    for colour, type_ in enumerate(types):
        rows = series.types == type_
        lines.append(Line(type_ or "all steps", series.steps[rows], series.values[rows], colour))
    return lines


def _which(recording: Recording, finding: Finding, shown: Evidence) -> list[str]:
    if shown.of == "gradient":
        losses = [GRADIENT + loss for loss in recording.losses]
        return [finding.of] if finding.of in losses and finding.check != "loss_imbalance" else losses
    return ["update"] if shown.of == "update" else [finding.of]


def _name(recording: Recording, statistic: str, of: str) -> str:
    label = _label(recording, statistic)
    told = f"share of {label}" if statistic == "zeros" else label
    if of.startswith(GRADIENT):
        return f"{told} of the gradient of {of.removeprefix(GRADIENT)}"
    return f"{told} of the update" if of == "update" else told


def _label(recording: Recording, statistic: str) -> str:
    return next((one.label for one in recording.tables.statistics if one.name == statistic), statistic)


def _series(recording: Recording, finding: Finding, statistic: str, of: str) -> Series | None:
    try:
        found = recording.series(finding.node, statistic, of=of, role=finding.role)
        if np.isnan(found.values).all():
            return None  # the recording is older than the statistic
        if statistic != "zeros":
            return found
        counts = recording.series(finding.node, "count", of=of, role=finding.role)
    except (EndoscopeError, IndexError):
        return None
    return Series(found.steps, found.values / np.maximum(counts.values, 1), found.types)


# Pictures


class Picture(NamedTuple):
    """One picture with what it shows."""

    title: str
    note: str
    image: Markup


def pictures_of(recording: Recording, finding: Finding) -> list[Picture]:
    """The distribution of the finding's tensor over steps, and its units where these matter."""
    if not recording_has(recording, finding.node):
        return []
    found = [_histogram(recording, finding)]
    statistic = _evidence(finding).units
    if statistic:
        found.append(_units(recording, finding, statistic))
    return [picture for picture in found if picture is not None]


def _histogram(recording: Recording, finding: Finding) -> Picture | None:
    try:
        which = bulk.Which(finding.node, finding.of, finding.role)
        table = bulk.histograms(recording, which)
    except (EndoscopeError, IndexError):
        return None
    steps = to_numpy(table["step"].combine_chunks())
    if len(steps) < 2:
        return None
    first = to_numpy(table["hist_first"].combine_chunks())
    lists = table["hist"].combine_chunks()
    offsets, values = to_numpy(lists.offsets), to_numpy(lists.values)
    chosen = evenly(len(steps), _MOST_COLUMNS)
    counts = np.zeros((HISTOGRAM_BINS, len(chosen)))
    for column, row in enumerate(chosen.tolist()):
        piece = values[offsets[row] : offsets[row + 1]]
        counts[first[row] : first[row] + len(piece), column] = piece
    rows, ticks = _readable(counts)
    if not len(rows):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(rows > 0, np.sqrt(rows / rows.max(axis=0)), np.nan)
    image = heat.picture(shares, ticks, step_ticks(steps[chosen]), f"histogram of {finding.node}")
    return Picture("histogram over steps", "bins of a logarithmic scale; bright: many elements", image)


def _readable(counts: np.ndarray) -> tuple[np.ndarray, list[heat.Tick]]:
    """Rows of the picture, the largest values on top: bins with next to nothing around zero are one row."""
    magnitude = counts[ZERO_BIN + 1 :] + counts[:ZERO_BIN][::-1]  # by magnitude, both signs
    below = np.cumsum(magnitude.sum(axis=1))
    cut = int(np.searchsorted(below, _NEXT_TO_NOTHING * max(float(below[-1]), 1.0)))
    middle = counts[ZERO_BIN - cut : ZERO_BIN + cut + 1].sum(axis=0, keepdims=True)
    rows = np.concatenate([counts[: ZERO_BIN - cut], middle, counts[ZERO_BIN + cut + 1 :]])[::-1]
    used = np.flatnonzero(rows.any(axis=1))
    if not len(used):
        return rows[:0], []
    first, last = int(used[0]), int(used[-1]) + 1
    zero = len(rows) - 1 - (ZERO_BIN - cut)
    places = {zero: "≈0" if cut else "0"}
    for power in range(-9, 10):
        rank = histogram_bin(10.0**power) - ZERO_BIN - cut
        if rank > 0:
            places |= {zero - rank: numbers.short(10.0**power), zero + rank: numbers.short(-(10.0**power))}
    return rows[first:last], _spaced(places, zero, first, last)


def _spaced(places: dict[int, str], zero: int, first: int, last: int) -> list[heat.Tick]:
    """As many labels as there is room for, zero before all others."""
    ticks: list[heat.Tick] = []
    for place in sorted(places, key=lambda at: (at != zero, -abs(at - zero))):
        share = (place - first + 0.5) / (last - first)
        if first <= place < last and all(abs(share - tick.share) > _ROOM for tick in ticks):
            ticks.append(heat.Tick(share, places[place]))
    return ticks


def step_ticks(steps: np.ndarray) -> list[heat.Tick]:
    """Numbers of some of the steps, below a picture with one column for each."""
    places = np.unique(np.linspace(0, len(steps) - 1, min(7, len(steps))).round().astype(int)).tolist()
    return [heat.Tick((place + 0.5) / len(steps), numbers.step_number(float(steps[place]))) for place in places]


def _units(recording: Recording, finding: Finding, statistic: str) -> Picture | None:
    keys = {
        number
        for number, key in recording.tables.keys.by_number.items()
        if (key.node, key.role, key.of) == (finding.node, finding.role, finding.of)
    }
    steps = [step for step in recording.steps if not finding.types or step.type in finding.types]
    steps = [steps[place] for place in evenly(len(steps), _MOST_COLUMNS).tolist()]
    columns, shown = [], []
    for step in steps:
        batch = recording.tables.batch("units", step)
        row = next(_rows_with(batch, keys), None) if batch is not None else None
        if batch is None or row is None:
            continue
        column = batch.column(statistic)
        offsets = to_numpy(column.offsets)
        columns.append(np.abs(to_numpy(column.values)[offsets[row] : offsets[row + 1]].astype(np.float64)))
        shown.append(step.number)
    if len(columns) < 2 or not len(columns[0]) or len({len(column) for column in columns}) != 1:
        return None
    units = evenly(len(columns[0]), _MOST_UNITS)
    values = np.stack(columns, axis=1)[units]
    finite = values[np.isfinite(values)]
    top = float(np.quantile(finite, 0.99)) if len(finite) else 0.0
    scaled = np.sqrt(values / (top or 1.0))
    ticks = [heat.Tick((n + 0.5) / len(units), str(units[n])) for n in evenly(len(units), 5).tolist()]
    some = f"{len(units)} of {len(columns[0])} units" if len(units) < len(columns[0]) else "every unit"
    note = f"magnitude of the {_label(recording, statistic)} of {some}; dark: 0, bright: {numbers.short(top)}"
    image = heat.picture(scaled, ticks, step_ticks(np.array(shown)), f"units of {finding.node}")
    return Picture("units over steps", note, image)


def _rows_with(batch: pa.RecordBatch, keys: set[int]) -> Iterator[int]:
    return (row for row, number in enumerate(to_numpy(batch.column("key")).tolist()) if number in keys)


def evenly(count: int, most: int) -> np.ndarray:
    """Places of at most so many of `count`, spread evenly, with the first and the last."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(np.int64))


def flags(findings: Sequence[Finding]) -> list[str]:
    """Nodes with findings, the most important first."""
    return [name for finding in findings for name in (finding.node, *finding.also[:3]) if name]

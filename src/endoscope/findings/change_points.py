"""`endoscope.changes`: when did statistics change their level for good, and in which nodes first?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings.change_point_search import FEWEST, SPREADS, change_points
from endoscope.findings.facts import Facts
from endoscope.findings.one_trial import one_trial
from endoscope.findings.rows import Rows
from endoscope.query.recording import Recording
from endoscope.schema.recording import GRADIENT

SIZES = ("norm", "std", "abs_mean", "abs_max")  # statistics that are never negative, and compared as logarithms
_APART = 0.02  # share of all steps within which changes of different nodes are one shift
_LEAST_APART = 3  # steps, for the same
_MOST_MISSING = 0.3  # of the steps of a tensor


@dataclass(frozen=True, slots=True)
class Change:
    """One statistic of one tensor, or one metric, that changed its level."""

    node: str
    role: str
    pass_: int
    of: str
    statistic: str
    step: int  # the first recorded step of the new level
    before: float  # the level before and after
    after: float
    score: float  # how many usual spreads

    @property
    def ratio(self) -> float:
        """How many times larger it became; below 1: smaller."""
        return self.after / self.before if self.before else math.inf

    def __str__(self) -> str:
        return f"{self.statistic} of {self.node} went from {self.before:.3g} to {self.after:.3g} at step {self.step}"


@dataclass(frozen=True, slots=True)
class Shift:
    """Changes that happened together: the nodes that changed first come first, then those nearer to the input."""

    changes: tuple[Change, ...]
    type: str  # of the steps

    @property
    def step(self) -> int:
        return self.changes[0].step

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(change.node for change in self.changes))

    @property
    def score(self) -> float:
        return max(change.score for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"step": self.step, "type": self.type, "changes": [asdict(change) for change in self.changes]}

    def __str__(self) -> str:
        others = len(self.nodes) - 1
        more = f", and {others} more node{'s' if others > 1 else ''} with it" if others else ""
        return f"{self.first}{more}"


def changes(
    path: str | PathLike[str] | Recording,
    node: str | None = None,
    *,
    of: str = "value",
    statistic: str = "std",
    type: str | None = None,
    least: float = 1.25,
) -> list[Shift]:
    """Find the steps at which a statistic jumps to a new level and stays there, the strongest shift first.

    Drift and short spikes are not reported. `of` is "value", "parameter", "update", "gradient:<loss>" or "metric" (then
    no statistic is needed). `least` is the smallest ratio of two levels that is reported. Works without torch.
    """
    recording = path if isinstance(path, Recording) else one_trial(path)
    if not isinstance(least, (int, float)) or not least > 1:
        raise BadArgument(f"least={least!r}: the smallest ratio that is reported is above 1, such as least=1.25.")
    if of != "metric" and statistic not in SIZES:
        raise BadArgument(f"statistic={statistic!r}: levels are compared as ratios. Use one of {', '.join(SIZES)}.")
    facts = Facts(recording)
    types = [*facts.types, *(one for curve in facts.metrics if of == "metric" for one in curve.types)]
    if type is not None and type not in types:
        raise LookupFailed(f"No step of type {type!r} was recorded. Types: {', '.join(map(repr, recording.types))}.")
    found = []
    for one in dict.fromkeys(types) if type is None else [type]:
        series = _of_metrics(facts, one) if of == "metric" else _of_tensors(facts, one, of, statistic)
        found += _shifts(facts, series, node, one, math.log(least))
    recording.tables.release()
    return sorted(found, key=lambda shift: -shift.score)


@dataclass(frozen=True, slots=True)
class _Series:
    """Numbers over steps, a row for each."""

    numbers: np.ndarray  # of the steps
    values: np.ndarray  # [rows, steps]
    about: list[dict[str, Any]]  # node, role, pass_, of, statistic of each row
    depth: list[int]


def _of_tensors(facts: Facts, type_: str, of: str, statistic: str) -> _Series:
    rows = _rows(facts, of)
    steps = np.flatnonzero(facts.types == type_)
    steps = steps[np.argsort(facts.numbers[steps], kind="stable")]
    about = [
        {"node": t.node, "role": t.key.role, "pass_": t.key.pass_, "of": of, "statistic": statistic}
        for t in rows.tensors
    ]
    depth = [facts.structure.depth(tensor.place) for tensor in rows.tensors]
    if of.startswith(GRADIENT):
        depth = [-one for one in depth]  # gradients come from the loss
    return _Series(facts.numbers[steps], rows[statistic][:, steps].astype(np.float64), about, depth)


def _rows(facts: Facts, of: str) -> Rows:
    known = {"value": facts.values, "parameter": facts.parameters, "update": facts.updates}
    known |= {GRADIENT + loss: rows for loss, rows in facts.gradients.items()}
    if of not in known:
        raise BadArgument(f"of={of!r} was not recorded. Use one of: {', '.join(map(repr, [*known, 'metric']))}.")
    return known[of]


def _of_metrics(facts: Facts, type_: str) -> _Series:
    curves = [curve for curve in facts.metrics if type_ in curve.types and len(curve)]
    numbers = np.unique(np.concatenate([curve.numbers for curve in curves] or [np.empty(0, np.int64)]))
    values = np.full((len(curves), len(numbers)), np.nan)
    for row, curve in enumerate(curves):
        values[row, np.searchsorted(numbers, curve.numbers)] = curve.values
    about = [{"node": c.name, "role": "", "pass_": 1, "of": "metric", "statistic": "value"} for c in curves]
    return _Series(numbers, values, about, [0] * len(curves))


def _shifts(facts: Facts, series: _Series, node: str | None, type_: str, least: float) -> list[Shift]:
    values, chosen = series.values, np.arange(len(series.values))
    if node is not None:
        chosen = np.array([row for row, about in enumerate(series.about) if about["node"] == node], np.int64)
        if not len(chosen):
            raise LookupFailed(
                f"There are no numbers of {node!r} in {facts.trial!r}; `recording.nodes` lists all nodes."
            )
    with np.errstate(all="ignore"):
        usable = (
            np.mean(~np.isfinite(values[chosen]), axis=1) <= _MOST_MISSING if values.shape[1] else np.zeros(0, bool)
        )
    chosen = chosen[usable] if values.shape[1] >= FEWEST else chosen[:0]
    if not len(chosen):
        return []
    filled = _filled(values[chosen])
    points = change_points(_logarithms(filled), least, SPREADS)
    found = []
    for point in points:
        row, place = int(chosen[point.row]), point.place
        width = max(2 * point.scale, 3)
        before = float(np.median(filled[point.row, max(place - width, 0) : place]))
        after = float(np.median(filled[point.row, place : place + width]))
        change = Change(
            **series.about[row], step=int(series.numbers[place]), before=before, after=after, score=point.score
        )
        found.append((place, series.depth[row], change))
    return _together(found, values.shape[1], type_)


def _together(found: list[tuple[int, int, Change]], steps: int, type_: str) -> list[Shift]:
    """Changes that are close in time are one shift."""
    apart = max(_LEAST_APART, int(_APART * steps))
    groups: list[list[tuple[int, int, Change]]] = []
    for entry in sorted(found, key=lambda one: (one[0], one[1])):
        if groups and entry[0] - groups[-1][-1][0] <= apart:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [Shift(tuple(change for _, _, change in group), type_) for group in groups]


def _filled(values: np.ndarray) -> np.ndarray:
    """Numbers that are missing or not finite are those of the step before."""
    known = np.isfinite(values)
    at = np.where(known, np.arange(values.shape[1]), -1)
    at = np.maximum.accumulate(at, axis=1)
    first = np.argmax(known, axis=1)[:, None]
    return np.asarray(np.take_along_axis(values, np.where(at < 0, first, at), axis=1))


def _logarithms(values: np.ndarray) -> np.ndarray:
    """A level of zero is a millionth of the usual one; a metric that changes its sign is scaled instead."""
    usual = np.median(np.abs(values), axis=1, keepdims=True)
    usual = np.where(usual > 0, usual, np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-30))
    signed = (values < 0).any(axis=1, keepdims=True)
    return np.asarray(np.where(signed, np.arcsinh(values / usual), np.log(np.maximum(values, 1e-6 * usual))))

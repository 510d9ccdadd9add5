"""All that happens in a recording, from each of the sources that a user can name.

checks, own anomalies, losses, types of step ─┐
outliers of whole tensors                    ─┴► over steps
categories, own anomalies, losses, outliers   ─► over samples
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from endoscope.analysis.selecting.patterns import nearest
from endoscope.analysis.user_rules.anomalies import Anomaly
from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings import anomalies, outliers, per_sample, ranking, settings
from endoscope.findings.check import Check
from endoscope.findings.curves import Curve
from endoscope.findings.diagnose import run_check
from endoscope.findings.event import (
    ANOMALY,
    CATEGORY,
    CHECK,
    LOSS,
    OUTLIER,
    TYPE,
    Event,
    OverSamples,
    OverSteps,
    stage_of,
)
from endoscope.findings.facts import Facts
from endoscope.findings.registry import all_checks
from endoscope.findings.rows import Rows, Tensor

LEAST = 5  # an event that happens less often is no base for a number
_MOST_CATEGORIES = 200
_MOST_PART = 0.5  # of its batch with the event: it is one of the whole step


class Gathering:
    """Events of one trial, steps in the order of their numbers."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.order = np.argsort(facts.numbers, kind="stable")
        self.numbers = facts.numbers[self.order]
        self.over_steps = OverSteps(len(facts.steps))
        self.over_samples = self._cells()
        self._place = np.empty(len(self.order), np.int64)
        self._place[self.order] = np.arange(len(self.order))

    def _cells(self) -> OverSamples:
        sizes = per_sample.batch_sizes(self.facts, self.facts.values)
        known = sizes[sizes > 1]
        # Tensors of the most usual batch size: of others nobody knows which sample is which.
        self.width = int(np.bincount(known).argmax()) if len(known) else 0
        rows = np.flatnonzero(sizes == self.width) if self.width else np.empty(0, np.int64)
        there = np.zeros((len(self.order), self.width), dtype=bool)
        if len(rows):
            inputs = [row for row in rows.tolist() if self.facts.values.tensors[row].key.kind == "input"]
            few = np.array([*inputs[:1], *rows[:3].tolist(), *rows[-3:].tolist()])
            known_cells = per_sample.read(self.facts, self.facts.values, few, (per_sample.ALWAYS_THERE,))
            there = ~np.isnan(known_cells[per_sample.ALWAYS_THERE]).all(axis=0)[self.order]
        return OverSamples(len(self.order), self.width, there)

    @cached_property
    def samples(self) -> np.ndarray:
        """int64[steps, width]: which sample is in each cell, told by the numbers of the first input; -1 if unknown."""
        facts, rows = self.facts, self.facts.values
        sizes = per_sample.batch_sizes(facts, rows)
        inputs = rows.rows(lambda t: t.key.kind == "input" and sizes[t.row] == self.width)
        if not len(inputs) or not self.width:
            return np.full((len(self.order), self.width), -1, np.int64)
        found = per_sample.read(facts, rows, inputs[:1], ("mean", "norm", "abs_max"))
        prints = np.stack([values[0][self.order].ravel() for values in found.values()], axis=1)
        _, ids = np.unique(prints, axis=0, return_inverse=True)
        ids = np.where(np.isnan(prints).any(axis=1), -1, ids.ravel())
        return np.asarray(ids.reshape(len(self.order), self.width))

    def whole(self, mask: np.ndarray) -> np.ndarray:
        """A mask over recorded steps, in the order of their numbers."""
        return np.asarray(mask[self.order])

    def at(self, steps: np.ndarray) -> np.ndarray:
        """bool[steps] from numbers of steps."""
        return np.isin(self.numbers, steps)


# ---- sources ------------------------------------------------------------------------------------------------------


def add_checks(found: Gathering, checks: Iterable[Check]) -> None:
    """Each finding with the steps at which it was seen."""
    facts = found.facts
    changes = settings.read(facts.recording.path, None, all_checks())
    seen = [(check, one) for check in checks for one in run_check(check, facts, settings.limits_of(check, changes))]
    for entry in ranking.rank(seen, facts):
        one = entry.seen
        if len(one.steps) and one.cause != "failed":
            place, of = (one.tensor.place, one.tensor.key.of) if one.tensor is not None else (None, "value")
            event = Event(_named(entry.check.name, one.name), CHECK, one.name, place, stage_of(of), entry.also)
            # A check that looks at one type of step cannot see it in others.
            could_be = np.isin(facts.types[found.order].astype(str), one.types) if one.types else None
            found.over_steps.add(event, found.at(one.steps), could_be)


def _named(check: str, node: str) -> str:
    return f"{check} at {node}" if node else check


def add_anomalies(found: Gathering, own: Sequence[Anomaly]) -> None:
    for anomaly in own:
        try:
            looked = list(anomalies.look(anomaly, found.facts))
        except LookupFailed:
            continue  # `diagnose` says that it means nothing here
        for one in looked:
            key = one.tensor.key
            name = anomaly.name if len(looked) == 1 else f"{anomaly.name} at {key.node}"
            event = Event(name, ANOMALY, key.node, one.tensor.place, stage_of(key.of))
            if one.samples is not None and one.samples.shape[1] == found.width:
                found.over_samples.add(event, one.samples[found.order], found.whole(one.there))
            else:
                found.over_steps.add(event, found.whole(one.steps), found.whole(one.there))


def add_types(found: Gathering) -> None:
    types = found.facts.types[found.order]
    for type_ in dict.fromkeys(types.tolist()):
        if type_:
            found.over_steps.add(Event(f"type {type_!r}", TYPE), types == type_)


def add_categories(found: Gathering) -> None:
    """Of samples, where the user gave one for each of the batch."""
    there = found.over_samples.there
    sizes = there.sum(axis=1)
    labels = np.full(there.shape, "", dtype=object)
    known = np.zeros(len(there), dtype=bool)
    for place, step in enumerate(found.order.tolist()):
        given = found.facts.steps[step].categories
        if given and len(given) == sizes[place]:
            labels[place, : len(given)] = given
            known[place] = True
    names, codes = np.unique(labels.astype(str), return_inverse=True)
    codes = codes.reshape(labels.shape)
    for code, name in list(enumerate(names.tolist()))[:_MOST_CATEGORIES]:
        if name:
            found.over_samples.add(Event(f"category {name!r}", CATEGORY), codes == code, known)


def add_losses(found: Gathering) -> None:
    """Losses and metrics above the 95th percentile of their deviations from what is usual at the time."""
    facts = found.facts
    tensors = {tensor.node: tensor for tensor in facts.values.tensors if tensor.key.kind == "loss"}
    curves: dict[str, list[Curve]] = {}
    for curve in [*facts.metrics, *(c for c in facts.losses if c.tensor is not None)]:
        curves.setdefault(curve.name, []).append(curve)
    for name, parts in curves.items():
        mask, present = np.zeros(len(found.order), dtype=bool), np.zeros(len(found.order), dtype=bool)
        for curve in parts:
            of_type = facts.types[found.order] == (curve.types[0] if len(curve) else "")
            here = found.at(curve.numbers) & of_type
            if len(curve) < 2 * LEAST or present[here].all():
                continue  # short, or known from the metric of the same name
            mask |= found.at(curve.numbers[outliers.high(curve.values)]) & of_type
            present |= here
        place = tensors[name].place if name in tensors else None
        found.over_steps.add(Event(f"high {name}", LOSS, name, place), mask, present)
    _add_losses_of_samples(found)


def _add_losses_of_samples(found: Gathering) -> None:
    rows = found.facts.values
    sizes = per_sample.batch_sizes(found.facts, rows)
    wanted = rows.rows(lambda t: t.key.kind == "loss" and sizes[t.row] == found.width and found.width > 0)
    values = per_sample.read(found.facts, rows, wanted, ("mean",))["mean"][:, found.order]
    for row, own in zip(wanted.tolist(), values, strict=True):
        tensor = rows.tensors[row]
        usual = outliers.around(outliers.middle(own)[None])[0]
        away = own - usual[:, None]
        known = away[np.isfinite(away)]
        if len(known):
            mask = (away > np.quantile(known, 0.95)) | (own == np.inf)
            present = ~np.isnan(own).all(axis=1)
            found.over_samples.add(Event(f"high {tensor.node}", LOSS, tensor.node, tensor.place), mask, present)


def add_outliers(found: Gathering) -> None:
    """Tensors that are far from what is usual for them, for a sample or as a whole."""
    facts = found.facts
    with np.errstate(all="ignore"):
        for rows, suffix in _sorts(facts):
            _add_whole(found, rows, suffix)
            if rows is facts.values or suffix:
                _add_samples(found, rows, suffix)
    facts.recording.tables.release()


def _sorts(facts: Facts) -> list[tuple[Rows, str]]:
    gradients = [(rows, f"gradient of {loss} on ") for loss, rows in facts.gradients.items()]
    if len(gradients) == 1:
        gradients = [(gradients[0][0], "gradient on ")]
    return [(facts.values, ""), *gradients, (facts.updates, "update of ")]


def _is_watched(tensor: Tensor) -> bool:
    return tensor.is_float and tensor.key.kind not in ("target", "buffer", "loss")


def _add_whole(found: Gathering, rows: Rows, prefix: str) -> None:
    wanted = rows.rows(_is_watched)
    if not len(wanted):
        return
    sizes = rows["abs_mean"][wanted][:, found.order]
    above, below = outliers.over_steps(sizes)
    bad = (np.nan_to_num(rows["nans"] + rows["infs"])[wanted] > 0)[:, found.order]
    present = rows.there[wanted][:, found.order]
    for number, row in enumerate(wanted.tolist()):
        for mask, word in ((above, "unusually large"), (below, "unusually small"), (bad, "not finite")):
            if np.count_nonzero(mask[number]) >= LEAST:
                event = _outlier(rows.tensors[row], prefix, word)
                found.over_steps.add(event, mask[number], present[number])


def _add_samples(found: Gathering, rows: Rows, prefix: str) -> None:
    """Gradients only of outputs: they say how much the loss cares for a sample; others follow from them."""
    sizes = per_sample.batch_sizes(found.facts, rows)
    wanted = rows.rows(
        lambda t: _is_watched(t) and sizes[t.row] == found.width > 0 and (not prefix or t.key.kind == "output")
    )
    for part in per_sample.in_parts(found.facts, rows, wanted):
        numbers = per_sample.read(found.facts, rows, part, ("norm", "abs_max"))
        above, below = outliers.over_samples(numbers["norm"][:, found.order])
        above |= outliers.over_samples(numbers["abs_max"][:, found.order])[0]
        words = [(above, "unusually large"), (below, "unusually small")]
        if np.nansum((rows["nans"] + rows["infs"])[part]) > 0:
            counts = per_sample.read(found.facts, rows, part, ("nans", "infs"))
            words.append(((counts["nans"] + counts["infs"] > 0)[:, found.order], "not finite"))
        present = rows.there[part][:, found.order]
        for number, row in enumerate(part.tolist()):
            for mask, word in words:
                if np.count_nonzero(mask[number]) >= LEAST:
                    event = _outlier(rows.tensors[row], prefix, word)
                    found.over_samples.add(event, mask[number], present[number])


def _outlier(tensor: Tensor, prefix: str, word: str) -> Event:
    key = tensor.key
    role = f" ({key.role})" if key.role not in ("", key.node) else ""
    name = key.node + role + (f", pass {key.pass_}" if key.pass_ > 1 else "")
    return Event(f"{prefix}{name} {word}", OUTLIER, key.node, tensor.place, stage_of(key.of))


SOURCES: dict[str, Callable[..., None]] = {
    "checks": add_checks,
    "anomalies": add_anomalies,
    "losses": add_losses,
    "types": add_types,
    "categories": add_categories,
    "outliers": add_outliers,
}


def gather(facts: Facts, wanted: Iterable[str | Anomaly] | None) -> Gathering:
    """The events that are wanted: names of sources, and anomalies; all by default."""
    names, own = _wanted(wanted)
    found = Gathering(facts)
    if not found.facts.steps:
        return found
    for name in names:
        if name == "checks":
            add_checks(found, all_checks().values())
        elif name == "anomalies":
            own = [*own, *(one for one in anomalies.of_trial(facts.recording.path) if one not in own)]
        elif name != "anomalies":
            SOURCES[name](found)
    anomalies.check_names(own)
    add_anomalies(found, own)
    return found


def _wanted(wanted: Iterable[str | Anomaly] | None) -> tuple[list[str], list[Anomaly]]:
    if wanted is None:
        return list(SOURCES), []
    listed = [wanted] if isinstance(wanted, (str, Anomaly)) else list(wanted)
    for one in listed:
        if not isinstance(one, Anomaly) and one not in SOURCES:
            near = nearest(str(one), SOURCES, 1)[0]
            raise BadArgument(
                f"events holds {one!r}, did you mean {near!r}? There are {', '.join(map(repr, SOURCES))}, and what "
                "endoscope.anomaly(name, rule) returns."
            )
    return [one for one in listed if isinstance(one, str)], [one for one in listed if isinstance(one, Anomaly)]

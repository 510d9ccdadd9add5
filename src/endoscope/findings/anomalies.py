"""Own anomalies over a recording: each becomes a check, and is asked about all tensors over all steps at once.

endoscope.anomaly(…), [anomalies] in endoscope.toml ─► Anomaly ─► found: bool[tensors, steps(, samples)]
                                                                    ├─► Seen, as of any other check
                                                                    └─► events for correlations
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from endoscope.analysis.selecting.patterns import nearest
from endoscope.analysis.user_rules import anomalies as registry
from endoscope.analysis.user_rules.anomalies import Anomaly, make
from endoscope.analysis.user_rules.conditions import OF_SAMPLE, Comparison
from endoscope.analysis.user_rules.rules import named
from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings import per_sample, settings
from endoscope.findings.asking import ask
from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.registry import all_checks, require
from endoscope.findings.rows import Rows, Tensor

_EXAMPLE = '"big X" = "encoder.2: abs_max > 1"'


class Found(NamedTuple):
    """Where an anomaly is, in one tensor."""

    tensor: Tensor
    steps: np.ndarray  # bool[steps]
    samples: np.ndarray | None  # bool[steps, samples], if it was asked of every sample
    there: np.ndarray  # bool[steps]: where it was asked
    value: float  # what was measured where it is farthest beyond the threshold
    threshold: float
    sign: str  # how the two are compared; empty for functions


def of_trial(trial: Path) -> list[Anomaly]:
    """Those of the process, and those in the files with settings that concern a trial; the files count more."""
    found = {one.name: one for one in registry.registered()}
    for file in settings.files(trial):
        entries = settings.section(file, "anomalies")
        if not isinstance(entries, Mapping):
            raise BadArgument(f"{file}: [anomalies] has lines such as {_EXAMPLE}, not {entries!r}.")
        for name, entry in entries.items():
            found[name] = _from_file(file, name, entry)
    return list(found.values())


def _from_file(file: Path, name: str, entry: Any) -> Anomaly:
    plain = {"rule": entry} if isinstance(entry, str) else entry
    if not isinstance(plain, Mapping) or "rule" not in plain or not set(plain) <= {"rule", "severity"}:
        example = '{rule = "encoder.2: abs_max > 1", severity = "error"}'
        raise BadArgument(f"{file}: {name!r} is a rule, as in {_EXAMPLE}, or {example}, not {entry!r}.")
    try:
        return make(name, plain["rule"], plain.get("severity", "warning"))
    except BadArgument as error:
        raise BadArgument(f"{file}: {name!r}: {error}") from error


def choose_own(names: Sequence[str] | None, own: Sequence[Anomaly]) -> tuple[list[str] | None, list[Anomaly]]:
    """(names of checks, anomalies) that somebody means by names; all if there are none."""
    if names is None:
        return None, list(own)
    known = {one.name for one in own}
    for name in names:
        if name not in known:
            require(name)
    return [name for name in names if name not in known], [one for one in own if one.name in names]


def as_check(anomaly: Anomaly) -> Check:
    """An anomaly as one of the checks."""
    of = anomaly.where.of
    stage = Stage.BACKWARD if of.startswith("gradient") else Stage.WEIGHTS if of == "update" else Stage.FORWARD
    return Check(
        name=anomaly.name, description=repr(anomaly), stage=stage, causes=(), remedies=(),
        run=lambda facts, limits: _seen(anomaly, facts, limits),
    )  # fmt: skip


def _seen(anomaly: Anomaly, facts: Facts, limits: Limits) -> Iterator[Seen]:
    """One entry for each tensor."""
    for found in look(anomaly, facts):
        at = facts.steps_where(found.steps)
        samples: tuple[int, ...] = ()
        if found.samples is not None:
            first = int(np.flatnonzero(found.steps)[np.argmin(facts.numbers[found.steps])])
            samples = tuple(np.flatnonzero(found.samples[first]).tolist())
        yield Seen(
            severity=anomaly.severity, title=anomaly.name, detail=_detail(anomaly, found, facts), value=found.value,
            threshold=found.threshold, tensor=found.tensor, samples=samples, **at,
        )  # fmt: skip


def _detail(anomaly: Anomaly, found: Found, facts: Facts) -> str:
    count, total = int(found.steps.sum()), len(facts.steps)
    often = f"at {count} of {total} recorded steps"
    if found.samples is not None:
        often += f", in {int(found.samples.sum())} samples"
    if anomaly.rule is None:
        name = getattr(anomaly.function, "__name__", "function")
        return f"The function {name} says so {often}."
    return (
        f"{anomaly.rule.condition.text}: {often}; at its farthest {found.value:.4g}, reported where it is "
        f"{found.sign} {found.threshold:.4g}."
    )


def look(anomaly: Anomaly, facts: Facts) -> Iterator[Found]:
    """The tensors with the anomaly. If the rule is about no tensor at all, an error names the nearest."""
    asked = False
    for rows in _sorts(anomaly, facts):
        wanted = np.array([t.row for t in rows.tensors if _is_meant(anomaly, facts, t)], np.int64)
        asked = asked or len(wanted) > 0
        with np.errstate(all="ignore"):
            for part in _parts(anomaly, facts, rows, wanted):
                yield from _look_at(anomaly, facts, rows, part)
    if not asked:
        raise LookupFailed(_nothing(anomaly, facts))


def _sorts(anomaly: Anomaly, facts: Facts) -> Iterator[Rows]:
    where = anomaly.where
    for rows in (facts.values, facts.parameters, facts.updates, *facts.gradients.values()):
        if len(rows) and where.may_be(rows.tensors[0].key.of):
            yield rows


def _is_meant(anomaly: Anomaly, facts: Facts, tensor: Tensor) -> bool:
    key = tensor.key
    one = named(key.node, key.pass_, facts.type_of(tensor), key.kind, key.module)
    return anomaly.where.selects(one, key.of, key.role, key.pass_)


def _parts(anomaly: Anomaly, facts: Facts, rows: Rows, wanted: np.ndarray) -> Iterator[np.ndarray]:
    if anomaly.rule is None or anomaly.rule.condition.per_sample:
        sized = per_sample.batch_sizes(facts, rows)[wanted] > 0
        yield from per_sample.in_parts(facts, rows, wanted[sized])
        if anomaly.rule is None and not sized.all():
            yield wanted[~sized]
    elif len(wanted):
        yield wanted


def _look_at(anomaly: Anomaly, facts: Facts, rows: Rows, part: np.ndarray) -> Iterator[Found]:
    there = rows.there[part]
    if anomaly.where.type is not None:
        there &= facts.types == anomaly.where.type
    if anomaly.rule is None:
        holds, numbers = ask(anomaly, facts, rows, part, there), {}
    else:
        condition = anomaly.rule.condition
        numbers = {name: rows[name][part][:, :, None] for name in condition.statistics}
        needed = dict.fromkeys([*condition.sample_statistics, per_sample.ALWAYS_THERE]) if condition.per_sample else {}
        samples = per_sample.read(facts, rows, part, tuple(needed))
        numbers |= {OF_SAMPLE + name: values for name, values in samples.items()}
        holds = np.asarray(condition.holds(numbers))
        if samples:  # `not` must not make an anomaly of a sample that is not there
            holds = holds & ~np.isnan(samples[per_sample.ALWAYS_THERE])
    holds = holds & there[:, :, None]
    for place in np.flatnonzero(holds.any(axis=(1, 2))).tolist():
        tensor, mine = rows.tensors[int(part[place])], holds[place]
        own = {name: values[place] for name, values in numbers.items()}
        worst = _worst(anomaly.rule.condition.comparisons, own, mine) if anomaly.rule is not None else _UNMEASURED
        is_per_sample = mine.shape[1] > 1 or (anomaly.rule is not None and anomaly.rule.condition.per_sample)
        yield Found(tensor, mine.any(axis=1), mine if is_per_sample else None, there[place], *worst)


_UNMEASURED = (float("nan"), float("nan"), "")


def _worst(
    comparisons: Sequence[Comparison], numbers: Mapping[str, Any], holds: np.ndarray
) -> tuple[float, float, str]:
    """Value, threshold and sign of the first comparison that is true somewhere where the whole rule is."""
    for comparison in comparisons:
        left, right = (np.broadcast_to(side, holds.shape) for side in comparison.sides(numbers))
        beyond = left - right if comparison.sign[0] == ">" else right - left
        if comparison.sign in ("==", "!="):
            beyond = np.where((left == right) == (comparison.sign == "=="), np.abs(left - right), -1.0)
        beyond = np.where(holds & ~np.isnan(beyond), beyond, -np.inf)
        place = np.unravel_index(int(np.argmax(beyond)), holds.shape)
        if beyond[place] >= 0:
            return float(left[place]), float(right[place]), comparison.sign
    return _UNMEASURED


def _nothing(anomaly: Anomaly, facts: Facts) -> str:
    nodes = facts.recording.nodes
    text = anomaly.where.text
    near = ", ".join(repr(name) for name in nearest(text.partition(" ")[0], nodes, 4))
    return f"{text!r} means nothing that was recorded. Nearest nodes: {near or 'none'}"


def check_names(anomalies: Sequence[Anomaly]) -> None:
    """Refuse names that are those of checks: nobody could tell them apart."""
    for one in anomalies:
        if not isinstance(one, Anomaly):
            raise BadArgument(f"anomalies holds {one!r}; it takes what endoscope.anomaly(name, rule) returns.")
        if one.name in all_checks():
            raise BadArgument(f"{one.name!r} is the name of a check. Give the anomaly {one!r} another name.")

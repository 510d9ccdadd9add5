"""`endoscope.diagnose`: run the checks over a recording, and say what they found."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from urllib.parse import quote

import numpy as np

from endoscope.analysis.user_rules.anomalies import Anomaly
from endoscope.findings import ranking, settings, silence
from endoscope.findings.anomalies import as_check, check_names, choose_own, of_trial
from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.explaining import explained
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING, Finding
from endoscope.findings.health import learns_well
from endoscope.findings.listed import Listed
from endoscope.findings.reference import Usual, beyond, usual
from endoscope.findings.registry import all_checks, choose
from endoscope.findings.titles import title_of
from endoscope.query.open import look
from endoscope.query.recording import Recording


def diagnose(
    path: str | PathLike[str],
    *,
    checks: Iterable[str] | None = None,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    anomalies: Iterable[Anomaly] | None = None,
    rank: int | None = None,
) -> list[Finding]:
    """What looks wrong in a trial, or in all trials of a folder, the most important first. Works without torch.

    `checks` names those that are run, all by default; `thresholds` changes them: {"dead_units": {"share": 0.7}}.
    Of a trial of several ranks all are checked together, or the one that `rank` says.
    `anomalies` are your own, made by `endoscope.anomaly`; by default all that this process and endoscope.toml know.
    """
    found = look(path)
    names = None if checks is None else [checks] if isinstance(checks, str) else list(checks)
    own = None if anomalies is None else list(anomalies)
    recordings = [found] if isinstance(found, Recording) else [found[name] for name in found]
    if rank is not None:
        recordings = [recording.rank(rank) for recording in recordings]
    if not recordings:
        choose(names)
    findings = [
        one
        for recording in recordings
        for one in of_recording(recording, checks_of(recording.path, names, own), thresholds)
    ]
    return Listed(sorted(findings, key=lambda one: one.rank))  # stable: else as ranked in its trial


def checks_of(trial: Path, names: Sequence[str] | None = None, own: Sequence[Anomaly] | None = None) -> list[Check]:
    """All checks that concern a trial, or those with some names; then own anomalies: those that are given, or known."""
    known = of_trial(trial) if own is None else own
    check_names(known)
    built_in, chosen = choose_own(names, known)
    return [*choose(built_in), *map(as_check, chosen if own is None else own)]


def of_recording(
    recording: Recording, checks: Iterable[Check], thresholds: Mapping[str, Mapping[str, float]] | None = None
) -> list[Finding]:
    """The findings of one trial, ranked, without those that are silenced."""
    silenced = silence.read(recording.path)
    return [one for one in with_silenced(recording, checks, thresholds) if not silence.is_silenced(one, silenced)]


def with_silenced(
    recording: Recording, checks: Iterable[Check], thresholds: Mapping[str, Mapping[str, float]] | None = None
) -> list[Finding]:
    """All findings of one trial, ranked."""
    changes = settings.read(recording.path, thresholds, all_checks())
    facts = Facts(recording)
    checks = list(checks)
    if not facts.steps and not recording.metrics:
        checks = [check for check in checks if check.stage is Stage.RECORDING]
    with np.errstate(all="ignore"), warnings.catch_warnings():  # NaN means "not recorded" here
        warnings.filterwarnings("ignore", "All-NaN|Mean of empty|Degrees of freedom", RuntimeWarning)
        seen = [(check, one) for check in checks for one in run_check(check, facts, settings.limits_of(check, changes))]
        ranked = ranking.rank(seen, facts)
    recording.tables.release()
    return explained([_finding(entry, facts) for entry in ranked], checks)


def lacks(recording: Recording) -> list[Finding]:
    """What the recording itself lacks, silenced or not: if it lacks anything, nobody can say that all is well."""
    return with_silenced(recording, recording_checks())


def recording_checks() -> list[Check]:
    """The checks that are about the recording, and not about the training."""
    return [check for check in all_checks().values() if check.stage is Stage.RECORDING]


def run_check(check: Check, facts: Facts, limits: Limits) -> Iterator[Seen]:
    """What a check sees. If it fails, or reads what was not recorded, this is said, and all others are still run."""
    facts.asked.clear()
    try:
        found = list(check.run(facts, limits))
        harmless = check.needs_harm and bool(found) and learns_well(facts)
        yield from (_as_info(one) if harmless and one.severity == WARNING else one for one in found)
    except Exception as error:  # a check must not hide what others would have found
        yield _unchecked(f"The check {check.name} failed on this recording: {type(error).__name__}: {error}.")
    if missing := facts.missing_statistics():
        yield _unchecked(
            f"The check {check.name} reads the statistic {' and '.join(missing)}, which this recording does not have: "
            "it was made before Endoscope or a plug-in recorded it. Record the training again to have it checked."
        )


def _as_info(seen: Seen) -> Seen:
    return replace(seen, severity=INFO, detail=f"{seen.detail} An info only, because the loss falls as it should.")


def _unchecked(detail: str) -> Seen:
    return Seen(
        severity=INFO, title="could not be checked", detail=detail, value=float("nan"), threshold=float("nan"),
        cause="failed", steps=np.empty(0, np.int64),
    )  # fmt: skip


def _finding(entry: ranking.Ranked, facts: Facts) -> Finding:
    check, seen = entry.check, entry.seen
    key = seen.tensor.key if seen.tensor is not None else None
    compared = check.quantity and seen.tensor is not None and seen.cause in ("", "high", "low", "large", "small")
    found = usual(facts, seen.tensor, check.quantity) if compared and seen.tensor is not None else None
    causes, remedies = ((), ()) if seen.cause == "failed" else _advice(check, facts)
    return Finding(
        check=check.name, severity=seen.severity, title=title_of(seen, facts), detail=seen.detail,
        trial=facts.trial,
        node=seen.name, role=key.role if key else "", of=key.of if key else "value",
        first_step=int(seen.steps[0]) if len(seen.steps) else 0,
        last_step=int(seen.steps[-1]) if len(seen.steps) else 0,
        types=seen.types, samples=seen.samples, value=float(seen.value), threshold=float(seen.threshold),
        strength=_strength(seen, found), usual=None if found is None else (found.low, found.high),
        steps=len(seen.steps), source=source_of(seen, facts), causes=causes if seen.causes is None else seen.causes,
        remedies=remedies if seen.remedies is None else seen.remedies,
        link=link_to(seen, facts, check), also=entry.also,
    )  # fmt: skip


def _advice(check: Check, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Causes and remedies that make sense for this model."""
    causes = (*check.causes, *(text for fits, text in check.causes_where if fits(facts)))
    return causes, (*check.remedies, *(text for fits, text in check.remedies_where if fits(facts)))


def _strength(seen: Seen, found: Usual | None) -> float:
    """Beside healthy trainings if they are known, else beside the threshold."""
    if found is not None and math.isfinite(seen.value):
        return beyond(float(seen.value), found)
    return math.exp(min(ranking.size(seen), 700.0)) if seen.threshold > 0 and seen.value > 0 else 1.0


def source_of(seen: Seen, facts: Facts) -> str:
    """The line that made the tensor; of a parameter, the line that first reads it."""
    if seen.source or seen.tensor is None:
        return seen.source
    if seen.tensor.key.source:
        return seen.tensor.key.source
    for child in facts.structure.children.get(seen.tensor.place, ()):
        row = facts.values.row_of.get(child)
        if row is not None and facts.values.tensors[row].key.source:
            return facts.values.tensors[row].key.source
    return ""


def link_to(seen: Seen, facts: Facts, check: Check) -> str:
    """The view of the page that shows it: what the page itself would write behind the # of its address."""
    words = {"v": "1", "tab": "layers" if seen.tensor is not None else "metrics", "trial": facts.trial}
    if len(seen.types) == 1 and seen.types[0]:
        words["type"] = ("!" if seen.types[0][0] in "-!" else "") + seen.types[0]
    if len(seen.steps):
        words["step"] = str(int(seen.steps[0]))
    if seen.tensor is not None:
        key = seen.tensor.key
        words |= {"of": _shown_of(key.of, facts, check), "node": key.node}
        words |= {"pass": str(key.pass_)} if key.pass_ != 1 else {}
        if key.role:
            words["role"] = ("!" if key.role[0] in "-!" else "") + key.role
        if check.evidence:
            words |= {"heat.statistic": check.page_statistic, "series.statistic": check.page_statistic}
            words["heat.mode"] = "past" if check.evidence.past else "absolute"
    return "#" + "&".join(f"{name}={quote(word, safe=':/,!')}" for name, word in words.items())


def _shown_of(of: str, facts: Facts, check: Check) -> str:
    """What is looked at: of a parameter that lacks a gradient it is the gradient."""
    if check.evidence and check.evidence.of == "gradient" and of in ("value", "parameter"):
        return next((f"gradient:{loss}" for loss in facts.gradients), "value")
    return "value" if of == "parameter" else of

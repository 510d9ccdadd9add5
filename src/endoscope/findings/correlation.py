"""`endoscope.correlate`: what happens together more often than by chance, the strongest first.

events.gather ─► pairs: counts of all pairs ─► those that stand out ─► Holm ─► Correlation, with a sentence
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

import numpy as np

from endoscope.analysis.user_rules.anomalies import Anomaly
from endoscope.errors import BadArgument
from endoscope.findings import association, pairs
from endoscope.findings.event import LABELS, ORDER, Event
from endoscope.findings.events import Gathering, gather
from endoscope.findings.facts import Facts
from endoscope.findings.listed import Listed
from endoscope.findings.merging import merge
from endoscope.findings.order import leader, upstream, with_subjects
from endoscope.findings.pairs import SAMPLES, STEPS, Pairs, Side
from endoscope.findings.structure import Structure
from endoscope.findings.together import Correlation, Interval
from endoscope.query.open import look
from endoscope.query.recording import Recording

_MAJORITY = 0.5  # of the samples of a step: what they have, the step has


def correlate(
    path: str | PathLike[str], *, events: Iterable[str | Anomaly] | None = None, confidence: float = 0.95
) -> list[Correlation]:
    """Find what happens together more often than by chance, in a trial or in each trial of a folder. Needs no torch.

    `events` are names of sources ("checks", "anomalies", "losses", "types", "categories", "outliers") or anomalies.
    `confidence` is the probability that none of the reported pairs of a trial is due to chance.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0.5 <= confidence < 1:
        raise BadArgument(f"confidence={confidence!r} must be from 0.5 to below 1, such as 0.95.")
    wanted = None if events is None else [events] if isinstance(events, (str, Anomaly)) else list(events)
    found = look(path)
    recordings = [found] if isinstance(found, Recording) else [found[name] for name in found]
    return Listed([one for recording in recordings for one in of_recording(recording, wanted, confidence)])


def of_recording(
    recording: Recording, events: Iterable[str | Anomaly] | None = None, confidence: float = 0.95
) -> list[Correlation]:
    """The correlations of one trial, the strongest first."""
    with np.errstate(all="ignore"):
        gathered = gather(Facts(recording), events)
        found = among(gathered, confidence)
    recording.tables.release()
    return found


def among(gathered: Gathering, confidence: float = 0.95) -> list[Correlation]:
    """Which of the gathered events happen together."""
    samples, steps = gathered.over_samples, gathered.over_steps
    if not len(gathered.numbers):
        return []
    _add_whole_batches(gathered)
    pairs.limit(samples, steps)
    structure = gathered.facts.structure
    for over in (samples, steps):
        over.events = with_subjects(over.events, structure)
    within, across, between = (
        pairs.count_samples(samples), pairs.count_mixed(steps, samples), pairs.count_steps(steps),
    )  # fmt: skip
    tested = sum(int(counted.tested.sum()) for counted in (within, across, between))
    absorbed = merge(samples, within, structure), merge(steps, between, structure)
    within.tested[absorbed[0]], within.tested[:, absorbed[0]] = False, False
    between.tested[absorbed[1]], between.tested[:, absorbed[1]] = False, False
    across.tested[absorbed[1]], across.tested[:, absorbed[0]] = False, False
    needed = float(np.log(max(tested, 1) / (1 - confidence)))
    found = [
        pairs.stand_out(within, (SAMPLES, SAMPLES), needed),
        pairs.stand_out(across, (STEPS, SAMPLES), needed),
        pairs.stand_out(between, (STEPS, STEPS), needed),
    ]
    if len(found[0]):
        pairs.independent_samples(found[0], samples, gathered.samples)
    pairs.independent_steps(found[1], steps, samples)
    pairs.independent_steps(found[2], steps, samples)
    return _report(gathered, found, tested, confidence)


def _add_whole_batches(gathered: Gathering) -> None:
    """What most samples of a step have, the step has: of a bad batch, samples do not differ from each other."""
    samples = gathered.over_samples
    if not samples.events:
        return
    shares = samples.counts() / np.maximum(samples.sizes, 1)
    for event, share, present in zip(samples.events, shares, samples.present, strict=True):
        mask = share > _MAJORITY
        if np.count_nonzero(mask) >= pairs.LEAST and event.kind not in LABELS:
            gathered.over_steps.add(event, mask, present)


def _report(gathered: Gathering, found: list[Pairs], tested: int, confidence: float) -> list[Correlation]:
    evidence = np.concatenate([one.surprise * one.share for one in found])
    kept = association.holm(evidence, tested, confidence)
    z = association.z_for(confidence, tested)
    reported: dict[frozenset[str], Correlation] = {}  # what is known of samples says more than the same of steps
    start = 0
    for one in found:
        ends = association.intervals(one.both, one.a, one.b, one.n, one.share, z)
        lifts = association.lift_of(one.both, one.a, one.b, one.n)
        phis = association.phi_of(one.both, one.a, one.b, one.n)
        for place in np.flatnonzero(kept[start : start + len(one)]).tolist():
            interval = Interval(tuple(ends.lift[place].tolist()), tuple(ends.phi[place].tolist()))
            made = _correlation(gathered, one, place, (float(lifts[place]), float(phis[place])), interval)
            if lifts[place] > 1:
                reported.setdefault(frozenset((made.a, made.b)), made)
        start += len(one)
    return sorted(reported.values(), key=lambda made: (made.between_outliers, -abs(made.phi)))


def _correlation(
    gathered: Gathering, found: Pairs, place: int, strength: tuple[float, float], interval: Interval
) -> Correlation:
    sides = [(found.one[place], found.a[place]), (found.other[place], found.b[place])]
    structure = gathered.facts.structure
    one, other = event_of(gathered, sides[0][0]), event_of(gathered, sides[1][0])
    if _reads_better_swapped(one, other, structure, bool(sides[0][1] > sides[1][1])):
        sides.reverse()
    (first, count), (second, _) = sides
    a, b = event_of(gathered, first), event_of(gathered, second)
    together = gathered.numbers[_steps_with_both(gathered, first, second)]
    made = Correlation(
        a=a.name, b=b.name, share=float(found.both[place] / count), lift=strength[0], phi=strength[1],
        interval=interval, n=round(float(count)), over=found.over,
        first_step=int(together[0]) if len(together) else int(gathered.numbers[0]),
        leads=_leads(gathered, first, second), upstream=upstream(structure, a, b), trial=gathered.facts.trial,
        a_kind=a.kind, b_kind=b.kind, a_node=a.node, b_node=b.node, a_also=a.also, b_also=b.also,
    )  # fmt: skip
    return made


def _leads(gathered: Gathering, one: Side, other: Side) -> str | None:
    """Labels come from outside: they lead nobody, and follow nobody."""
    if any(event_of(gathered, side).kind in LABELS for side in (one, other)):
        return None
    return leader(series_of(gathered, one), series_of(gathered, other))


def event_of(gathered: Gathering, side: Side) -> Event:
    return (gathered.over_steps if side.over == STEPS else gathered.over_samples).events[side.number]


def series_of(gathered: Gathering, side: Side) -> np.ndarray:
    """bool[steps]: the steps at which it happens at all."""
    if side.over == STEPS:
        return gathered.over_steps.masks[side.number]
    samples = gathered.over_samples
    return np.bincount(samples.cells[side.number] // samples.width, minlength=samples.steps) > 0


def _steps_with_both(gathered: Gathering, one: Side, other: Side) -> np.ndarray:
    if one.over == other.over == SAMPLES:
        samples = gathered.over_samples
        cells = np.intersect1d(samples.cells[one.number], samples.cells[other.number], assume_unique=True)
        return np.unique(cells // samples.width)
    return np.flatnonzero(series_of(gathered, one) & series_of(gathered, other))


def _reads_better_swapped(one: Event, other: Event, structure: Structure, more_often: bool) -> bool:
    """What is explained comes first: losses, then what was found, then data; downstream, then the rarer one."""
    if one.kind != other.kind:
        return ORDER.index(one.kind) > ORDER.index(other.kind)
    first = upstream(structure, one, other)
    return first == "a" if first is not None else more_often

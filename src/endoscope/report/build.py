"""One page out of one trial, or out of all trials of a folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from endoscope import __version__
from endoscope.findings.diagnose import checks_of, lacks, of_recording
from endoscope.findings.finding import SEVERITIES, Finding
from endoscope.markup import numbers
from endoscope.markup.page import logo, page
from endoscope.markup.tags import Markup, join, tag
from endoscope.query.open import look
from endoscope.query.recording import Recording
from endoscope.query.series import Series
from endoscope.report import charts, evidence, facts_part, findings_part, together_part
from endoscope.report.drawing import Mark, draw, kind_of
from endoscope.report.network import folded_for, places, read_network

_MOST_METRICS = 24
_COLUMNS = ("trial", "found", "recorded steps", "began", "most important")
_KINDS = ("input", "parameter", "buffer", "computed", "module", "target", "loss", "output")


class Trial:
    """A recording and what was found in it."""

    def __init__(self, recording: Recording, number: int) -> None:
        self.recording, self.number = recording, number
        self.findings: list[Finding] = of_recording(recording, checks_of(recording.path))
        self.entries = findings_part.entries(self.findings, number)

    @property
    def name(self) -> str:
        return self.recording.name

    @property
    def worst(self) -> tuple[int, int]:
        """For sorting: trials with errors before those with warnings, then those with more of them."""
        ranks = [finding.rank for finding in self.findings if finding.severity != "info"]
        return min(ranks, default=9), -len(ranks)

    @property
    def anchor(self) -> str:
        return f"trial-{self.number}"


def report(path: str | PathLike[str], trial: str | None = None, rank: int | None = None) -> str:
    """The whole page as text; of all ranks together, or of one."""
    found = look(path)
    if isinstance(found, Recording):
        recordings = [found]
    else:
        recordings = [found[trial]] if trial is not None else [found[name] for name in found]
    if rank is not None:
        recordings = [recording.rank(rank) for recording in recordings]
    for recording in recordings:
        recording.tables.silence()  # damage is named in the page
    trials = [Trial(recording, number) for number, recording in enumerate(recordings, 1)]
    trials.sort(key=lambda trial: trial.worst)
    body = [_head(trials, Path(path))]
    if len(trials) > 1:
        body.append(_overview(trials))
    body += [_trial(trial, titled=len(trials) > 1) for trial in trials]
    return page(_title(trials, Path(path)), body)


def _title(trials: Sequence[Trial], path: Path) -> str:
    return f"{trials[0].name if len(trials) == 1 else path.resolve().name} – endoscope report"


def _head(trials: Sequence[Trial], path: Path) -> Markup:
    name = trials[0].name if len(trials) == 1 else path.resolve().name
    written = f"written {numbers.moment(time.time())} by endoscope {__version__}"
    return tag(
        "header",
        logo("endoscope report"),
        tag("h1", name),
        tag(
            "p",
            _counts(trials),
            tag("span", written),
            class_="soft",
        ),
    )


def _counts(trials: Sequence[Trial]) -> Markup:
    """2 errors, 1 warning, as badges."""
    shown = []
    findings = [finding for trial in trials for finding in trial.findings]
    for severity in reversed(SEVERITIES):
        count = sum(finding.severity == severity for finding in findings)
        if count:
            word = severity if severity == "info" else numbers.plural(count, severity).partition(" ")[2]
            shown.append(tag("span", f"{count} {word}", class_=f"badge severity-{severity}"))
    if not shown:
        is_silenced = any(lacks(trial.recording) for trial in trials)
        words, look = ("nothing else was found", "badge") if is_silenced else ("nothing looks wrong", "badge good")
        shown.append(tag("span", words, class_=look))
    return tag("span", shown, class_="badges")


# Several trials


def _overview(trials: Sequence[Trial]) -> Markup:
    head = tag("tr", [tag("th", word, class_="number" if word == "recorded steps" else None) for word in _COLUMNS])
    rows = [
        tag(
            "tr",
            tag("td", tag("a", trial.name, href=f"#{trial.anchor}")),
            tag("td", _counts([trial])),
            tag("td", numbers.whole(len(trial.recording.steps)), class_="number"),
            tag("td", numbers.moment(trial.recording.created)),
            tag("td", str(trial.findings[0].title) if trial.findings else "–"),
        )
        for trial in trials
    ]
    return tag("section", tag("h2", "Trials"), tag("table", head, rows, class_="overview"), _together(trials))


def _together(trials: Sequence[Trial]) -> Markup | None:
    """Metrics that several trials have, in one chart each."""
    names = dict.fromkeys(name for trial in trials for name in trial.recording.metrics)
    shared = [name for name in names if sum(name in trial.recording.metrics for trial in trials) > 1]
    figures = []
    for name in shared[:_MOST_METRICS]:
        lines = [
            charts.Line(trial.name, series.steps, series.values, colour)
            for colour, trial in enumerate(trials)
            if name in trial.recording.metrics
            for series in [_one_type(trial.recording.metrics[name])]
        ]
        label = f"{name}, all trials"
        image = charts.chart(lines, marks=findings_part.recorded_steps(trials[0].recording), label=label)
        figures.append(findings_part.figure(name, image, charts.legend(lines)))
    return tag("div", figures, class_="grid") if figures else None


def _one_type(series: Series) -> Series:
    """Of a metric with several types, the most frequent: lines of different types would zigzag."""
    types = series.types.tolist()
    most = max(dict.fromkeys(types), key=types.count) if types else ""
    rows = series.types == most
    return Series(series.steps[rows], series.values[rows], series.types[rows])


# One trial


def _trial(trial: Trial, titled: bool) -> Markup:
    recording = trial.recording
    parts = [
        tag("h2", tag("span", "trial ", class_="soft"), trial.name) if titled else None,
        facts_part.tiles(recording),
        findings_part.section(recording, trial.findings, trial.entries),
        _curves(trial),
        together_part.section(recording),
        _graph(trial),
        facts_part.section(recording),
    ]
    recording.tables.release()
    return tag("section", parts, id=trial.anchor, class_="trial")


def _curves(trial: Trial) -> Markup | None:
    recording = trial.recording
    marks = findings_part.recorded_steps(recording)
    events = [
        charts.Event(finding.first_step, finding.severity, f"{number}. {finding.title}")
        for number, finding in enumerate(trial.findings, 1)
        if finding.severity != "info"
    ][:12]
    figures = []
    for name in list(recording.metrics)[:_MOST_METRICS]:
        lines = evidence.by_type(recording.metrics[name])
        image = charts.chart(lines, marks=marks, events=events, label=f"{name} over steps")
        figures.append(findings_part.figure(name, image, charts.legend(lines)))
    if not figures:
        return None
    hint = "Strokes below the axis are recorded steps; dots say where a finding begins."
    return tag(
        "section", tag("h3", "Losses and metrics"), tag("p", hint, class_="soft"), tag("div", figures, class_="grid")
    )


def _graph(trial: Trial) -> Markup | None:
    network = read_network(trial.recording)
    if network is None:
        return None
    folded = folded_for(network, evidence.flags(trial.findings))
    known = places(network)
    marks: dict[int, list[Mark]] = {}
    for number, finding in enumerate(trial.findings, 1):
        box = folded.box_of[known[finding.node]] if finding.node in known else -1
        if box >= 0:
            mark = Mark(number, finding.severity, finding.title, f"finding-{trial.number}-{number}")
            marks.setdefault(box, []).append(mark)
    label = f"dependency graph of {trial.name}"
    shown = [box for box in folded.boxes if not box.open]
    told = f"{numbers.whole(len(known))} nodes" + (
        f", folded to {len(shown)} boxes." if len(shown) < len(known) else "."
    )
    found = {kind_of(network, box) for box in shown}
    kinds = [kind for kind in _KINDS if kind in found]
    legend = tag(
        "span", [tag("span", tag("i", class_=f"swatch kind-{k}"), k, class_="key") for k in kinds], class_="legend"
    )
    return tag(
        "section",
        tag("h3", "Dependency graph"),
        tag("p", join([told, " "]), legend, class_="soft"),
        tag("div", draw(network, folded, marks, label), class_="stage"),
    )

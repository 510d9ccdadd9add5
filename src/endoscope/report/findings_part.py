"""Findings as cards: what, where, how far beyond which threshold, what may be behind it, the curve that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from endoscope.findings.diagnose import lacks
from endoscope.findings.finding import INFO, NO_STEPS, Finding
from endoscope.markup import numbers
from endoscope.markup.tags import Markup, tag
from endoscope.query.recording import Recording
from endoscope.report import charts, evidence

_MOST_SHOWN = 24  # findings with curves and pictures; what comes after is told in words
_MOST_NODES = 12


class Entry:
    """A finding with its number, and what probably follows from it."""

    def __init__(self, finding: Finding, number: int, anchor: str) -> None:
        self.finding, self.number, self.anchor = finding, number, anchor
        self.following: list[Entry] = []


def entries(findings: Sequence[Finding], trial: int) -> list[Entry]:
    """One entry for each cause, with what follows from it below; findings are ranked already."""
    every = [Entry(finding, n, f"finding-{trial}-{n}") for n, finding in enumerate(findings, 1)]
    by_name = {f"{entry.finding.check} at {entry.finding.node}": entry for entry in reversed(every)}
    top = []
    for entry in every:
        cause = by_name.get(entry.finding.follows)
        if cause is not None and cause is not entry and not cause.finding.follows:
            cause.following.append(entry)
        else:
            top.append(entry)
    return top


def section(recording: Recording, findings: Sequence[Finding], top: Sequence[Entry]) -> Markup:
    if not findings:
        return tag("section", tag("h3", "Findings"), _nothing(recording))
    cards = [_card(recording, entry) for entry in top if entry.finding.severity != INFO]
    notes = [_row(entry) for entry in top if entry.finding.severity == INFO]
    known = tag("div", tag("h4", "Worth knowing"), tag("table", notes)) if notes else None
    return tag("section", tag("h3", "Findings"), cards, known)


def _nothing(recording: Recording) -> Markup:
    lacking = lacks(recording)
    if lacking:  # and that is silenced
        return tag("p", f"Nothing else was found. Silenced: {lacking[0].title}.")
    over = numbers.plural(len(recording.steps), "recorded step")
    words = f"Nothing looks wrong, over {over}. Checks avoid false alarms, so there may be problems that they miss."
    return tag("p", words, class_="good")


def _card(recording: Recording, entry: Entry) -> Markup:
    finding = entry.finding
    return tag(
        "article",
        tag("div", _words(entry), tag("div", _shown(recording, entry), class_="evidence"), class_="columns"),
        [
            tag("div", tag("p", "Probably follows from it:", class_="soft"), _card(recording, below), class_="follows")
            for below in entry.following
        ],
        id=entry.anchor,
        class_=f"finding severity-{finding.severity}",
    )


def _row(entry: Entry) -> Markup:
    """What is no problem is told in one line."""
    finding = entry.finding
    told = tag("td", finding.detail, " ", tag("code", finding.source, class_="soft") if finding.source else None)
    return tag("tr", tag("th", tag("code", finding.check)), tag("td", _where(finding)), told, id=entry.anchor)


def _words(entry: Entry) -> Markup:
    finding = entry.finding
    return tag(
        "div",
        tag("h4", tag("span", str(entry.number), class_="count"), finding.title),
        tag("p", tag("b", finding.severity, class_="severity"), " ", tag("code", finding.check), class_="soft"),
        tag("p", finding.detail),
        _tiles(finding) if finding.check != NO_STEPS else None,
        _list("May come from", finding.causes),
        _list("What to try", finding.remedies),
        tag("p", "Also at ", _names(finding.also), class_="soft") if finding.also else None,
        tag("p", "source ", tag("code", finding.source), class_="soft") if finding.source else None,
        tag("p", "on the page ", tag("code", finding.link), class_="soft link") if finding.link else None,
        class_="words",
    )


def _where(finding: Finding) -> Markup | None:
    if not finding.node:
        return None
    of = f" · {finding.of}" if finding.of not in ("value", "parameter") else ""
    role = f" ({finding.role})" if finding.role else ""
    return tag("code", f"{finding.node}{role}{of}", class_="node")


def _tiles(finding: Finding) -> Markup:
    steps = numbers.whole(finding.first_step)
    if finding.last_step != finding.first_step:
        steps += f" – {numbers.whole(finding.last_step)}"
    tiles = [
        ("measured", numbers.number(finding.value)),
        ("threshold", numbers.number(finding.threshold)),
        ("steps", steps),
    ]
    if any(finding.types):
        tiles.append(("types", ", ".join(finding.types)))
    if finding.samples:
        more = " …" if len(finding.samples) > 6 else ""
        tiles.append(("samples", ", ".join(map(str, finding.samples[:6])) + more))
    shown = [tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles if value != "–"]
    return tag("dl", shown, class_="tiles")


def _names(names: Sequence[str]) -> list[Markup]:
    shown = [tag("code", name) for name in names[:_MOST_NODES]]
    rest = len(names) - len(shown)
    parts: list[Markup] = []
    for place, name in enumerate(shown):
        parts += [name, Markup(", " if place < len(shown) - 1 else "")]
    return [*parts, tag("span", f" and {numbers.whole(rest)} more")] if rest > 0 else parts


def _list(title: str, lines: Sequence[str]) -> Markup | None:
    if not lines:
        return None
    return tag("div", tag("h5", title), tag("ul", [tag("li", line) for line in lines]))


def _shown(recording: Recording, entry: Entry) -> list[Markup]:
    if entry.number > _MOST_SHOWN:
        return []
    finding = entry.finding
    found = []
    curves = evidence.curves_of(recording, finding)
    if curves is not None:
        event = charts.Event(finding.first_step, finding.severity, f"since step {finding.first_step}")
        marks = recorded_steps(recording)
        found.append(
            figure(
                curves.title, charts.chart(curves.lines, marks=marks, events=[event], label=curves.title),
                charts.legend(curves.lines),
            )
        )  # fmt: skip
    for picture in evidence.pictures_of(recording, finding):
        found.append(figure(picture.title, picture.image, tag("span", picture.note, class_="legend")))
    return found


def recorded_steps(recording: Recording) -> np.ndarray:
    return np.array([step.number for step in recording.steps], np.int64)


def figure(title: str, image: Markup, legend: Markup | None = None) -> Markup:
    return tag("figure", tag("figcaption", tag("b", title), legend), image)

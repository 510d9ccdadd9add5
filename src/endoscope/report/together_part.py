"""What happens together more often than by chance, in words."""

from __future__ import annotations

from endoscope.errors import EndoscopeError
from endoscope.findings.correlation import of_recording
from endoscope.findings.together import worth_telling
from endoscope.markup import numbers
from endoscope.markup.tags import Markup, tag
from endoscope.query.recording import Recording

_MOST = 8
_MOST_NUMBERS = 300_000  # nodes times steps; comparing everything with everything takes seconds beyond that
_COLUMNS = ("", "lift", "phi")


def section(recording: Recording) -> Markup | None:
    """The strongest pairs; nothing for recordings so large that a report would have to wait for them."""
    if len(recording.steps) * len(recording.nodes) > _MOST_NUMBERS or not recording.steps:
        return None
    try:
        found = worth_telling(of_recording(recording))
    except EndoscopeError:
        return None  # what cannot be compared is no reason to have no report
    if not found:
        return None
    rows = [
        tag(
            "tr",
            tag("td", one.sentence),
            tag("td", numbers.number(one.lift), class_="number"),
            tag("td", numbers.number(one.phi), class_="number"),
        )
        for one in found[:_MOST]
    ]
    head = tag("tr", [tag("th", word, class_="number" if word else None) for word in _COLUMNS])
    more = f" The strongest {_MOST} of {len(found)} pairs." if len(found) > _MOST else ""
    hint = tag("p", f"More often than by chance, corrected for the number of pairs.{more}", class_="soft")
    return tag("section", tag("h3", "What happens together"), hint, tag("table", head, rows))

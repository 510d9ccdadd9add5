"""What is known of a run: settings, versions, what recording cost, what is missing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from endoscope.findings.gaps import summed_up
from endoscope.markup import numbers
from endoscope.markup.numbers import plural
from endoscope.markup.tags import Child, Markup, tag
from endoscope.query.recording import Recording

_MOST_ROWS = 60
_MOST_GAPS = 20
_LONGEST = 300
_COLUMNS = ("module", "class", "parameters", "settings")
_OWN = "endoscope"  # what the recorder itself notes in the configuration


def tiles(recording: Recording) -> Markup:
    """The most important numbers of a run."""
    steps = recording.steps
    types = [name for name in recording.types if name]
    root = next((m for m in _modules(recording) if m.get("address") == ""), {})
    found: list[tuple[str, str, str]] = [
        ("recorded steps", numbers.whole(len(steps)), _range(recording)),
        (
            "nodes",
            numbers.whole(len(recording.nodes)),
            plural(len(recording.losses), "loss").replace("losss", "losses"),
        ),
    ]
    if root.get("parameters"):
        trainable = int(root.get("trainable", 0))
        found.append(("parameters", numbers.whole(int(root["parameters"])), f"{numbers.whole(trainable)} trainable"))
    if types:
        found.append(("types of step", str(len(types)), ", ".join(types[:4]) + (" …" if len(types) > 4 else "")))
    found.append(("recording took", *_cost(recording)))
    found.append(("began", numbers.moment(recording.created), "finished" if recording.closed else "not closed"))
    return tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", value), tag("small", note)) for name, value, note in found],
        class_="tiles wide",
    )


def section(recording: Recording) -> Markup:
    config = {name: value for name, value in recording.config.items() if name != _OWN}
    return tag(
        "section",
        tag("h3", "The run"),
        tag(
            "div",
            _table("Configuration", _flat(config)),
            _table("Recording", _recording(recording)),
            _table("Versions", list(recording.versions.items())),
            _notes(recording),
            class_="facts",
        ),
        _gaps(recording),
        _network(recording),
    )


def _range(recording: Recording) -> str:
    known = [step.number for step in recording.steps]
    return f"{numbers.whole(min(known))} to {numbers.whole(max(known))}" if known else "none"


def _cost(recording: Recording) -> tuple[str, str]:
    seconds = sum(step.recording_seconds for step in recording.steps)
    whole = recording.updated - recording.created
    own = recording.config.get(_OWN, {})
    budget = own.get("budget") if isinstance(own, dict) else None
    if isinstance(budget, dict) and isinstance(budget.get("share"), (int, float)):
        spent = float(budget.get("spent_seconds", 0.0))
        return numbers.duration(spent), f"{100 * budget['share']:.2g} % of the training"
    share = f"{100 * seconds / whole:.2g} % of {numbers.duration(whole)}" if recording.created and whole > 1 else ""
    return numbers.duration(seconds), share


def _recording(recording: Recording) -> list[tuple[str, str]]:
    own = recording.config.get(_OWN, {})
    rows = [("folder", recording.path.name), ("began", numbers.moment(recording.created))]
    rows.append(("last change", numbers.moment(recording.updated)))
    rows.append(("state", "finished" if recording.closed else "running, or ended early"))
    seen = own.get("steps", {}) if isinstance(own, dict) else {}
    for type_, counts in seen.items() if isinstance(seen, dict) else ():
        if isinstance(counts, dict):
            told = f"{counts.get('recorded', '?')} of {counts.get('seen', '?')}"
            rows.append((f"recorded of {type_ or 'all steps'}", told))
    raw = own.get("raw_bytes", 0) if isinstance(own, dict) else 0
    if isinstance(raw, (int, float)) and raw:
        rows.append(("raw values", numbers.size(raw)))
    files = [path.stat().st_size for path in recording.path.rglob("*") if path.is_file()]
    rows.append(("on disk", numbers.size(sum(files))))
    why = Counter(step.why for step in recording.steps)
    rows += [(f"because of {reason or 'nothing said'}", plural(count, "step")) for reason, count in why.most_common(5)]
    return rows


def _notes(recording: Recording) -> Markup | None:
    rows = [(f"step {numbers.whole(note.step)}" if note.step >= 0 else "–", note.text) for note in recording.notes]
    return _table("Notes", rows)


def _gaps(recording: Recording) -> Markup | None:
    gaps = recording.gaps
    if not gaps:
        return None
    reasons = summed_up(gaps)
    rows = []
    for reason in reasons[:_MOST_GAPS]:
        named = [node or "–" for node in reason.nodes[:4]]
        told = f"{reason.text}: {', '.join(named)}{' …' if len(reason.nodes) > 4 else ''}"
        rows.append((f"{numbers.whole(reason.times)} ×", told))
    if len(reasons) > _MOST_GAPS:
        rows.append(("…", f"{len(reasons) - _MOST_GAPS} more reasons"))
    return _table("Gaps: what could not be recorded, or can no longer be read", rows)


def _network(recording: Recording) -> Markup | None:
    modules = _modules(recording)
    if len(modules) < 2:
        return None
    modules.sort(key=lambda module: natural(str(module.get("address", ""))))
    deep = max(
        depth for depth in range(8) if sum(_depth(module) <= depth for module in modules) <= _MOST_ROWS or not depth
    )
    shown = [module for module in modules if _depth(module) <= deep][:_MOST_ROWS]
    rows = [
        tag(
            "tr",
            tag("td", tag("code", module.get("address") or "(model)"), style=f"padding-left:{_depth(module) + 0.5}em"),
            tag("td", str(module.get("type", ""))),
            tag("td", numbers.whole(int(module.get("parameters", 0))), class_="number"),
            tag("td", _cut(str(module.get("settings", ""))), class_="soft"),
        )
        for module in shown
    ]
    more = f" ({len(shown)} of {len(modules)} modules)" if len(shown) < len(modules) else ""
    head = tag("tr", [tag("th", word, class_="number" if word == "parameters" else None) for word in _COLUMNS])
    return tag("details", tag("summary", f"Modules{more}"), tag("table", head, rows, class_="modules"))


def natural(address: str) -> tuple[tuple[int, int | str], ...]:
    """For sorting: layers.2 before layers.10."""
    return tuple((0, int(piece)) if piece.isdigit() else (1, piece) for piece in address.split("."))


def _depth(module: Mapping[str, Any]) -> int:
    address = str(module.get("address", ""))
    return address.count(".") + 1 if address else 0


def _modules(recording: Recording) -> list[dict[str, Any]]:
    found = recording.modules.get("modules", [])
    return [module for module in found if isinstance(module, dict)] if isinstance(found, list) else []


def _table(title: str, rows: Iterable[tuple[str, object]]) -> Markup | None:
    listed = list(rows)
    if not listed:
        return None
    shown: list[Child] = [
        tag("tr", tag("th", name), tag("td", _cut(str(value)))) for name, value in listed[:_MOST_ROWS]
    ]
    if len(listed) > _MOST_ROWS:
        shown.append(tag("tr", tag("th", "…"), tag("td", f"{len(listed) - _MOST_ROWS} more")))
    return tag("div", tag("h4", title), tag("table", shown))


def _flat(config: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested settings by dotted names."""
    rows: list[tuple[str, str]] = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{before}{name}.")
        else:
            rows.append((f"{before}{name}", value if isinstance(value, str) else json.dumps(value)))
    return rows


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

"""What nobody wants to hear again: kept in `findings.json` beside the recording.

    {"silenced": [{"check": "dead_units", "node": "encoder.2"}, {"check": "plateau"}]}

Without `node` a check is silent everywhere in the trial.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from endoscope.errors import NotARecording, StoreError
from endoscope.findings.finding import Finding
from endoscope.findings.registry import require
from endoscope.store import paths

FILE = "findings.json"


class Silenced(NamedTuple):
    """One check, at one node or everywhere."""

    check: str
    node: str | None = None


def read(trial: Path) -> list[Silenced]:
    """What is silenced in a trial; nothing if the file is not there."""
    file = trial / FILE
    if not file.is_file():
        return []
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))["silenced"]
        return [Silenced(entry["check"], entry.get("node")) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        example = '{"silenced": [{"check": "dead_units", "node": "encoder.2"}]}'
        raise StoreError(f"{file} does not say what is silenced ({error}). It should look like {example}.") from error


def add(trial: Path, check: str, node: str | None = None) -> list[Silenced]:
    """Silence a check at a node, or everywhere; returns all that is silenced now."""
    if not paths.is_trial(trial):
        raise NotARecording(f"{trial} is no trial. Silencing is for one trial: type its folder.")
    found = list(dict.fromkeys([*read(trial), Silenced(require(check), node)]))
    plain: list[dict[str, Any]] = [
        {name: value for name, value in entry._asdict().items() if value is not None} for entry in found
    ]
    unfinished = trial / (FILE + paths.UNFINISHED)
    unfinished.write_text(json.dumps({"silenced": plain}, indent=2) + "\n", encoding="utf-8")
    os.replace(unfinished, trial / FILE)
    return found


def is_silenced(finding: Finding, silenced: list[Silenced]) -> bool:
    """Whether a finding need not be reported."""
    return any(entry.check == finding.check and entry.node in (None, finding.node) for entry in silenced)

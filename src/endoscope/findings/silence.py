"""What nobody wants to hear again: kept in `findings.json` beside the recording.

    {"silenced": [{"check": "dead_units", "node": "encoder.2"}, {"check": "plateau"}]}

Without `node` a check is silent everywhere in the trial.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from endoscope.errors import NotARecording, StoreError
from endoscope.findings.anomalies import of_trial
from endoscope.findings.finding import Finding
from endoscope.findings.registry import require
from endoscope.store import paths

FILE = "findings.json"


class Silenced(NamedTuple):
    """One check, at one node or everywhere."""

    check: str
    node: str | None = None


def read(trial: Path) -> list[Silenced]:
    """What is silenced in a trial; nothing if the file is not there. A link is not followed: it may lead anywhere."""
    file = trial / FILE
    if file.is_symlink() or not file.is_file():
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
    if check not in {one.name for one in of_trial(trial)}:
        require(check)
    return _write(trial, list(dict.fromkeys([*read(trial), Silenced(check, node)])))


def remove(trial: Path, check: str, node: str | None = None) -> list[Silenced]:
    """Take back one `add`; returns all that is still silenced."""
    return _write(trial, [entry for entry in read(trial) if entry != Silenced(check, node)])


def _write(trial: Path, entries: list[Silenced]) -> list[Silenced]:
    """All or nothing, and into a fresh file: whoever reads meanwhile gets the old one, no link is written through."""
    plain: list[dict[str, Any]] = [
        {name: value for name, value in entry._asdict().items() if value is not None} for entry in entries
    ]
    unfinished = ""
    try:
        handle, unfinished = tempfile.mkstemp(dir=trial, prefix=f".{FILE}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps({"silenced": plain}, indent=2) + "\n")
        os.chmod(unfinished, 0o644)  # colleagues may check the same recording
        os.replace(unfinished, trial / FILE)
    except OSError as error:
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)
        raise StoreError(
            f"{trial / FILE} cannot be written: {error.strerror or error}. Nothing was silenced or taken back."
        ) from error
    return entries


def is_silenced(finding: Finding, silenced: list[Silenced]) -> bool:
    """Whether a finding need not be reported."""
    return any(entry.check == finding.check and entry.node in (None, finding.node) for entry in silenced)

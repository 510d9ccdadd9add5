"""Thresholds: the defaults of the checks, changed by `endoscope.toml` and then by what the caller says.

    [checks.dead_units]
    share = 0.7

The file is looked for beside the trials, in the trial itself and in the current folder; later ones count more.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from endoscope.errors import BadArgument
from endoscope.findings.check import Check, Limits
from endoscope.findings.registry import require

FILE = "endoscope.toml"


def limits_of(check: Check, changes: Mapping[str, Limits]) -> Limits:
    """The thresholds of a check."""
    return {**check.thresholds, **changes.get(check.name, {})}


def read(trial: Path, own: Mapping[str, Any] | None, known: Mapping[str, Check]) -> dict[str, dict[str, float]]:
    """Check -> thresholds that were changed. `own` is {"dead_units": {"share": 0.7}}."""
    found: dict[str, dict[str, float]] = {}
    for file in files(trial):
        _merge(found, section(file, "checks"), known, str(file))
    _merge(found, own or {}, known, "thresholds")
    return found


def files(trial: Path) -> list[Path]:
    """The files with settings that concern a trial; what a later one says counts more."""
    folders = dict.fromkeys(folder.resolve() for folder in (trial.parent, trial, Path.cwd()))
    return [folder / FILE for folder in folders if (folder / FILE).is_file()]


def section(file: Path, name: str) -> Any:
    """One table of a file with settings."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")).get(name, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadArgument(f"{file} cannot be read as TOML: {error}. Correct it, or move it away.") from error


def _merge(found: dict[str, dict[str, float]], changes: Any, known: Mapping[str, Check], where: str) -> None:
    example = 'like {"dead_units": {"share": 0.7}}'
    if not isinstance(changes, Mapping):
        raise BadArgument(f"{where}: thresholds are given by check, {example}, not as {changes!r}.")
    for name, values in changes.items():
        require(name)
        if not isinstance(values, Mapping):
            raise BadArgument(f"{where}: the thresholds of {name} are given by name, {example}, not as {values!r}.")
        for threshold, value in values.items():
            _check(known[name], threshold, value, where)
            found.setdefault(name, {})[threshold] = float(value)


def _check(check: Check, threshold: str, value: Any, where: str) -> None:
    if threshold not in check.thresholds:
        there = ", ".join(f"{name} = {default:g}" for name, default in check.thresholds.items()) or "none"
        raise BadArgument(f"{where}: {check.name} has no threshold {threshold!r}. It has: {there}.")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise BadArgument(f"{where}: {check.name}.{threshold} is {value!r}, but a threshold is a number.")

"""trial.json: what a trial is, for people and for readers; replaced as a whole whenever it changes."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from endoscope import __version__
from endoscope.errors import NewerFormat
from endoscope.schema.recording import FORMAT_VERSION, GRADIENT_USED
from endoscope.schema.stats import described
from endoscope.store.paths import TRIAL
from endoscope.store.sealed import load, seal, unseal


def describe(name: str, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The contents of trial.json for a trial that begins now."""
    import numpy as np  # not needed by those who read it
    import pyarrow as pa

    versions = {"endoscope": __version__, "python": platform.python_version(), "platform": platform.platform()}
    versions |= {"numpy": np.__version__, "pyarrow": pa.__version__}
    if torch := sys.modules.get("torch"):  # the store never imports it
        versions["torch"] = str(torch.__version__)
    return {
        "format": FORMAT_VERSION,
        "name": name,
        "created": time.time(),
        "versions": versions,
        "gradient": GRADIENT_USED,
        "config": dict(config or {}),
        "statistics": described(),
    }


def resumed(folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The same for one that goes on: as it was, with what the configuration says now."""
    found, _ = read(folder)
    merged = {name: {**found.get(name, {}), **about[name]} for name in ("config", "statistics")}
    return {**about, **found, **merged}


def text_of(description: Mapping[str, Any]) -> bytes:
    """All of trial.json."""
    return seal(description, indent=2)


def read(folder: Path) -> tuple[dict[str, Any], str]:
    """(contents, what is wrong with them); a recording can be read without."""
    try:
        text = (folder / TRIAL).read_bytes()
    except OSError as error:
        return {}, f"{TRIAL} cannot be read: {error.strerror or error}"
    found = unseal(text)
    problem = "" if found is not None else f"{TRIAL} was changed or damaged after it was written"
    found = load(text) if found is None else found
    if found is None:
        return {}, f"{TRIAL} is damaged: name, time and configuration of the trial are lost"
    check_format(found.get("format"), folder)
    for name in [name for name, is_right in _MEMBERS.items() if name in found and not is_right(found[name])]:
        del found[name]
        problem = f"{TRIAL} is damaged: its entry {name!r} is impossible"
    return found, problem


_MEMBERS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str),
    "created": lambda value: type(value) in (int, float) and abs(value) < 1e15,
    "versions": lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    "config": lambda value: isinstance(value, dict),
    "statistics": lambda value: isinstance(value, dict),
}


def check_format(version: Any, folder: Path) -> None:
    """Refuse what only a newer Endoscope can read."""
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise NewerFormat(
            f"{folder} was recorded in format {version}; this Endoscope ({__version__}) reads formats up to "
            f"{FORMAT_VERSION}, and would misread it. Install a newer one:  pip install --upgrade endoscope"
        )

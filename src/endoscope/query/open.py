"""From a path to what is there: one recording, or all recordings of a folder."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from endoscope.query import trial
from endoscope.query.catalog import Recordings
from endoscope.query.places import is_one_trial
from endoscope.query.recording import Recording


def open(path: str | PathLike[str]) -> Recording | Recordings:
    """Open a recorded trial, or a folder of trials as a mapping by name. Works without torch, and while it is written.

    A damaged file costs only what is damaged: it is named in a warning and in `.problems`.
    """
    found = look(path)
    if isinstance(found, Recording):
        found.preload()
    return found


def look(path: str | PathLike[str]) -> Recording | Recordings:
    """The same, but nothing is checked before it is asked for."""
    folder = Path(path).expanduser()
    return trial.of_folder(folder) if is_one_trial(folder) else Recordings(folder)

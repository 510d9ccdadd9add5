"""From a path to what is there: one recording, or all recordings of a folder."""

from __future__ import annotations

import difflib
from os import PathLike
from pathlib import Path

from endoscope.errors import NotARecording
from endoscope.query.catalog import Recordings
from endoscope.query.recording import Recording
from endoscope.store import paths

_MOST_LOOKED_AT = 200  # subfolders, when an error wants to be helpful


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
    if paths.is_trial(folder):
        return Recording(folder)
    if folder.is_dir() and paths.trials_in(folder):
        return Recordings(folder)
    raise NotARecording(_why_not(folder))


def _why_not(folder: Path) -> str:
    if not folder.exists():
        siblings = [path.name for path in folder.parent.iterdir()] if folder.parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, siblings, n=1)
        hint = f" Did you mean {folder.parent / near[0]}?" if near else ""
        return f"There is nothing at {folder}.{hint} Type the folder that was given to endoscope.Run, or a trial in it."
    if not folder.is_dir():
        return f"{folder} is a file. A recording is a folder: {folder.parent}?"
    if paths.is_trial(folder.parent):
        return f"{folder} is a part of the recording {folder.parent}. Open that."
    inner = [path for path in sorted(folder.iterdir())[:_MOST_LOOKED_AT] if path.is_dir()]
    trials = next((path for path in inner if paths.trials_in(path)), None)
    if trials is not None:
        return f"{folder} holds no recording itself, but {trials} does. Open that."
    if not any(folder.iterdir()):
        return f"{folder} is empty: nothing has been recorded there yet."
    return (
        f"{folder} is no recording: it has no {paths.TRIAL}, and no folder with one. "
        "Type the folder that was given to endoscope.Run, or a trial in it."
    )

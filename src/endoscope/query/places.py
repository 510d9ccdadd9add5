"""Where recordings are, told without opening any: quick, and without numpy and pyarrow."""

from __future__ import annotations

import difflib
from os import PathLike
from pathlib import Path

from endoscope.errors import NotARecording
from endoscope.store import description, paths

_MOST_LOOKED_AT = 200  # subfolders, when an error wants to be helpful


def is_one_trial(path: str | PathLike[str]) -> bool:
    """Whether a path is one trial; false for a folder of trials. Anything else is an error that says what to type."""
    folder = Path(path).expanduser()
    if paths.is_trial(folder):
        return True
    if folder.is_dir() and paths.trials_in(folder):
        return False
    raise NotARecording(_why_not(folder))


def of_rank(trial: Path, rank: int) -> Path:
    """Where a rank of a trial has written."""
    return paths.rank_folder(trial, rank)


def rank_in(folder: Path) -> int | None:
    """Which rank has written there; None if it is no rank's folder."""
    return paths.rank_in(folder)


def check(path: str | PathLike[str]) -> None:
    """Raise what opening it would, if that can be told already."""
    if is_one_trial(path):
        description.read(Path(path).expanduser())


def _why_not(folder: Path) -> str:
    if not folder.exists():
        siblings = [path.name for path in folder.parent.iterdir()] if folder.parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, siblings, n=1)
        hint = f" Did you mean {folder.parent / near[0]}?" if near else ""
        return f"There is nothing at {folder}.{hint} Type the folder that was given to endoscope.Run, or a trial in it."
    if not folder.is_dir() and paths.is_trial(folder.parent):
        return f"{folder} is a file. A recording is a folder: {folder.parent}?"
    if not folder.is_dir():
        return f"{folder} is a file, and a recording is a folder. Type the folder that was given to endoscope.Run."
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

"""Where recordings are, told without opening any: quick, and without numpy and pyarrow."""

from __future__ import annotations

import difflib
import os
from os import PathLike
from pathlib import Path
from typing import Any

from endoscope.errors import NewerFormat, NotARecording
from endoscope.store import description, paths
from endoscope.store.commits import journal

_MOST_OF_A_LAST_LINE = 4096  # bytes; the line that ends a trial names few files
_MOST_LOOKED_AT = 200  # subfolders, when an error wants to be helpful


def is_one_trial(path: str | PathLike[str]) -> bool:
    """Whether a path is one trial; false for a folder of trials. Anything else is an error that says what to type."""
    folder = Path(path).expanduser()
    if paths.is_trial(folder):
        return True
    if folder.is_dir() and paths.trials_in(folder):
        return False
    raise NotARecording(_why_not(folder))


def is_trace(path: str | PathLike[str]) -> bool:
    """Whether it is a file that may hold a trace; recordings are folders."""
    try:
        with open(Path(path).expanduser(), "rb") as file:
            return file.read(4) == b"PK\x03\x04"  # of a zip
    except OSError:
        return False


def is_to_come(path: str | PathLike[str]) -> bool:
    """Whether nothing is there yet: no such folder, or one without anything in it."""
    folder = Path(path).expanduser()
    return not folder.exists() or (folder.is_dir() and next(folder.iterdir(), None) is None)


def why_nothing(path: str | PathLike[str]) -> str:
    """The same as a sentence, with what was perhaps meant."""
    return _why_not(Path(path).expanduser())


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


def begun(trial: Path) -> tuple[float, dict[str, Any]]:
    """When a trial began, in unix seconds, and its configuration; 0 and nothing if that is lost, or cannot be read."""
    try:
        found = description.read(trial)[0]
    except NewerFormat:
        return 0.0, {}
    return float(found.get("created", 0.0)), dict(found.get("config", {}))


def signs(trial: Path) -> list[Path]:
    """Files that change whenever anything is added to a trial, or to one rank of it."""
    if rank_in(trial) is not None:
        return [trial.parent / paths.TRIAL, trial / paths.JOURNAL]
    try:
        ranks = sorted(entry.path for entry in os.scandir(trial) if entry.name.startswith("rank-"))
    except OSError:
        ranks = []
    return [trial / paths.TRIAL, *(Path(rank) / paths.JOURNAL for rank in ranks)]


def has_ended(trial: Path) -> bool:
    """Whether a trial ended properly, by the last line of each of its journals."""
    _, *journals = signs(trial)
    return bool(journals) and all(_is_closed(file) for file in journals)


def _is_closed(file: Path) -> bool:
    try:
        with file.open("rb") as journal_file:
            journal_file.seek(max(0, journal_file.seek(0, os.SEEK_END) - _MOST_OF_A_LAST_LINE))
            lines = journal_file.read().splitlines()
    except OSError:
        return False
    last = journal.from_line(lines[-1]) if lines else None
    return last is not None and last.kind == "close"


def _why_not(folder: Path) -> str:
    if not folder.exists():
        siblings = [path.name for path in folder.parent.iterdir()] if folder.parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, siblings, n=1)
        hint = f" Did you mean {folder.parent / near[0]}?" if near else ""
        return f"There is nothing at {folder}.{hint} Type the folder that was given to endoscope.Run, or a trial in it."
    if is_trace(folder):
        return (
            f"{folder} is a trace of one forward pass, and this reads recordings of trainings. "
            f"For the trace: endoscope.load({str(folder)!r}), or endoscope report {folder}."
        )
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

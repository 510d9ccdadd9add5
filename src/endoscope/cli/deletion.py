"""Deleting a trial: our files, and nothing that somebody else put beside them."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import NamedTuple

from endoscope.errors import NotARecording, StoreError
from endoscope.store import paths

_OF_A_RANK = r"journal\.jsonl|(modules|rank)\.json|[a-z]+-\d+\.arrow|raw/-?\d+-\d+\.safetensors|graphs/[^/]+\.json"
_OURS = re.compile(rf"trial\.json|findings\.json|rank-\d+/(attempt-\d+/)?({_OF_A_RANK})")
_ALIVE_SECS = 30


class TrialFiles(NamedTuple):
    """What a trial consists of."""

    files: list[Path]
    others: list[Path]  # not ours
    bytes: int
    seems_alive: bool  # something was written a moment ago


def contents_of(trial: Path) -> TrialFiles:
    """The files of a trial; an error if the folder is none."""
    if trial.is_symlink():
        raise NotARecording(f"{trial} is a link to {trial.resolve()}. Type that path to delete the trial there.")
    if not paths.is_trial(trial):
        trials = paths.trials_in(trial) if trial.is_dir() else []
        if trials:
            names = ", ".join(str(path) for path in trials[:3])
            raise NotARecording(
                f"{trial} is a folder of {paths.counted(len(trials), 'trial')}. Say which to delete: {names} …"
            )
        raise NotARecording(f"{trial} is no recorded trial, so nothing was deleted.")
    ours: list[Path] = []
    others: list[Path] = []
    for path in sorted(trial.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            name = path.relative_to(trial).as_posix().removesuffix(paths.UNFINISHED)
            (ours if _OURS.fullmatch(name) and not path.is_symlink() else others).append(path)
    found = [path.stat() for path in ours]
    newest = max((stat.st_mtime for stat in found), default=0.0)
    folders = [
        paths.rank_folder(trial, rank, n) for rank in paths.ranks_of(trial) for n in paths.attempts_of(trial, rank)
    ]
    is_closed = all(map(_is_closed, folders))
    alive = not is_closed and time.time() - newest < _ALIVE_SECS
    return TrialFiles(ours, others, sum(stat.st_size for stat in found), alive)


def delete(trial: Path, contents: TrialFiles) -> list[Path]:
    """Remove our files and then the folders that are empty; returns what was left."""
    try:
        # trial.json and the journals last: after an interruption it is still a trial, and can be deleted again.
        for path in sorted(contents.files, key=lambda path: path.name in (paths.TRIAL, paths.JOURNAL)):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{trial} could not be deleted in full: {error}.") from error
    folders = [path for path in trial.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in sorted([*folders, trial], key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):
            folder.rmdir()
    return contents.others


def _is_closed(folder: Path) -> bool:
    try:
        with (folder / paths.JOURNAL).open("rb") as journal:
            journal.seek(0, 2)
            journal.seek(max(0, journal.tell() - 200))
            return b'"kind":"close"' in journal.read()
    except OSError:
        return True

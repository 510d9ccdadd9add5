"""How the processes of one job find one folder, without a word between them.

join ─► a folder of that name whose trial.json names the job? ─ yes ─► it
               └ no ─► made beside it, with trial.json in it, and renamed: of several processes one can do that
     ─► rank-R, or rank-R/attempt-N if a process of the job has been this rank before
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from endoscope.errors import EndoscopeError, StoreError
from endoscope.store import description, paths
from endoscope.store.files import write_whole
from endoscope.store.vacancy import vacate

_TRIES = 8  # others may take folders away, or give them our name, at the same time


class Member(NamedTuple):
    """One process of a job."""

    rank: int
    world_size: int
    job: str  # the same text in all processes of the job, and in no other
    host: str = ""

    def to_dict(self, attempt: int) -> dict[str, Any]:
        """What stands in rank.json from the beginning."""
        return {**self._asdict(), "attempt": attempt, "meshes": [], "config": {}}


class Place(NamedTuple):
    """What a process writes."""

    trial: Path
    rank: int = 0
    attempt: int = 0

    @property
    def folder(self) -> Path:
        return paths.rank_folder(self.trial, self.rank, self.attempt)


def join(root: Path, trial: str, member: Member, text: Callable[[str], bytes], *, resume: bool = False) -> Place:
    """The place of a process in its trial. `text` is asked for trial.json if the folder has to be made.

    With `resume` the trial of that name is gone on with, whichever job has written it before.
    """
    paths.check_name(trial)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for _ in range(_TRIES):
            folder = root / trial
            if not (resume and paths.is_trial(folder)):
                folder = _claim(root, trial, member.job, text)
            try:
                return _place_in(folder, member.rank)
            except FileNotFoundError:  # taken away by a process of the job that has ended
                continue
    except OSError as error:
        raise StoreError(
            f"No trial can be recorded in {root}: {error}. Choose a folder that can be written."
        ) from error
    raise StoreError(f"{root / trial} comes and goes, so rank {member.rank} cannot be recorded in it.")


def _claim(root: Path, trial: str, job: str, text: Callable[[str], bytes]) -> Path:
    for folder in paths.names_for(root, trial):
        found = next(_of_job(root, trial, job), None)
        if found is not None:
            return found
        if (not folder.exists() or vacate(folder)) and _make(folder, text(folder.name)):
            return folder
        if _job_of(folder) == job:
            return folder
    raise StoreError(f"{root} has too many trials named {trial!r}. Choose another name.")


def _of_job(root: Path, trial: str, job: str) -> Iterator[Path]:
    for folder in paths.names_for(root, trial):
        if not folder.exists():
            return
        if _job_of(folder) == job:
            yield folder


def _job_of(folder: Path) -> str:
    try:
        found, _ = description.read(folder)
    except EndoscopeError:  # of a newer version
        return ""
    return str(found.get("job", ""))


def _make(folder: Path, text: bytes) -> bool:
    """With trial.json in it from the first moment, so that nobody can see it without."""
    beside = folder.with_name(f".{folder.name}.{os.uname().nodename if hasattr(os, 'uname') else ''}.{os.getpid()}.new")
    beside.mkdir()
    try:
        write_whole(beside / paths.TRIAL, text)
        beside.rename(folder)
    except OSError:
        (beside / paths.TRIAL).unlink(missing_ok=True)
        beside.rmdir()
        if folder.exists():
            return False
        raise
    return True


def _place_in(trial: Path, rank: int) -> Place:
    attempt = 0
    while True:
        place = Place(trial, rank, attempt)
        try:
            place.folder.mkdir()
        except FileExistsError:
            attempt += 1
        else:
            return place

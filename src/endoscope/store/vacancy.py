"""A trial that ended before anything was recorded gives its name back: scripts crash, and are started again.

    an exception ends the script ─► withdraw: the run takes its own empty trial away
    a signal ends it             ─► vacate: nobody holds its lock, and nothing was written for long. The next run that
                                    wants the name renames the folder, which only one of several can do, and deletes it

Empty is a trial with trial.json, the tree of modules and a journal without data. Gaps do not count.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from endoscope.store import paths
from endoscope.store.disk import locking
from endoscope.store.files import write_whole

_LONG_SECS = 600  # some network file systems let two machines hold one lock
_OF_A_RANK = rf"{re.escape(paths.JOURNAL)}|{paths.MODULES}|{paths.MEMBERSHIP}|gaps-\d+\.arrow"
_NO_DATA = re.compile(rf"{re.escape(paths.TRIAL)}|rank-\d+/(attempt-\d+/)?({_OF_A_RANK})")
_TAIL_BYTES = 400  # that hold the last line of a journal


def withdraw(folder: Path) -> bool:
    """For whoever has written the trial and ends it; returns whether it was empty and is gone."""
    try:
        return _is_empty(folder) and _remove(folder)
    except OSError:
        return False


def withdraw_rank(trial: Path, folder: Path) -> bool:
    """The same for one process of a job: the trial goes with the last of them."""
    try:
        if not _is_empty(folder, trial):
            return False
        _remove(folder)
        if not any(trial.glob("rank-*")):
            text = (trial / paths.TRIAL).read_bytes()
            (trial / paths.TRIAL).unlink()
            try:
                trial.rmdir()
            except OSError:  # a process of the job has just come
                write_whole(trial / paths.TRIAL, text)
    except OSError:
        return False
    return True


def vacate(folder: Path) -> bool:
    """For whoever wants its name; returns whether that is free now."""
    try:
        if not _is_abandoned(folder) or not _is_empty(folder):
            return False
        aside = folder.with_name(f".{folder.name}.{os.getpid()}.empty")
        folder.rename(aside)
    except OSError:
        return False
    with contextlib.suppress(OSError):
        _remove(aside)
    return True


def _is_empty(folder: Path, trial: Path | None = None) -> bool:
    files = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = {path.relative_to(trial or folder).as_posix().removesuffix(paths.UNFINISHED) for path in files}
    ours = all(map(_NO_DATA.fullmatch, names)) and not any(path.is_symlink() for path in [folder, *files])
    return ours and any(name.endswith(paths.JOURNAL) for name in names)


def _is_abandoned(folder: Path) -> bool:
    journals = [*folder.glob(f"rank-*/{paths.JOURNAL}"), *folder.glob(f"rank-*/attempt-*/{paths.JOURNAL}")]
    return bool(journals) and all(map(_has_ended_silently, journals))


def _has_ended_silently(path: Path) -> bool:
    with path.open("rb") as journal:
        is_silent = time.time() - os.fstat(journal.fileno()).st_mtime > _LONG_SECS
        is_closed = b'"kind":"close"' in journal.read()[-_TAIL_BYTES:]
    return is_silent and not is_closed and locking.is_held(path.parent) is False


def _remove(folder: Path) -> bool:
    for path in sorted(folder.rglob("*"), key=lambda path: -len(path.parts)):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    return True

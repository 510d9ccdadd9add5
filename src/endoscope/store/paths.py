"""Names of files and folders of a recording. What is in them is said in FORMAT.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from endoscope.errors import BadArgument, StoreError
from endoscope.schema.recording import NO_STEP, TABLES

TRIAL = "trial.json"
JOURNAL = "journal.jsonl"
MODULES = "modules.json"
RAW = "raw"
GRAPHS = "graphs"
MEMBERSHIP = "rank.json"
UNFINISHED = ".unfinished"  # end of the name of a file that is still being written

_RANK = re.compile(r"rank-(\d+)")
_ATTEMPT = re.compile(r"attempt-([1-9]\d*)")
_SEGMENT = re.compile(rf"({'|'.join(TABLES)})-(\d{{4,}})\.arrow")
_RAW = re.compile(rf"{RAW}/-?\d+-(\d+)\.safetensors")
_GRAPH = re.compile(rf"{GRAPHS}/[^/]+\.json")
_MOST_BYTES_IN_A_NAME = 200  # file systems allow 255; suffixes need room
_MOST_TRIALS_OF_ONE_NAME = 100_000


def rank_folder(trial: Path, rank: int, attempt: int = 0) -> Path:
    """Of the process that was this rank first, or of one that took its place after a restart."""
    folder = trial / f"rank-{rank}"
    return folder / f"attempt-{attempt}" if attempt else folder


def ranks_of(trial: Path) -> list[int]:
    """The ranks that have written something into a trial."""
    found = [_RANK.fullmatch(path.parent.name) for path in trial.glob(f"rank-*/{JOURNAL}")]
    return sorted(int(match[1]) for match in found if match)


def rank_in(folder: Path) -> int | None:
    """Which rank's folder it is; None if it is none."""
    match = _RANK.fullmatch(folder.name)
    return int(match[1]) if match and is_trial(folder.parent) else None


def attempts_of(trial: Path, rank: int) -> list[int]:
    """The processes that were this rank, one after the other; 0 is the first."""
    found = [_ATTEMPT.fullmatch(path.parent.name) for path in rank_folder(trial, rank).glob(f"attempt-*/{JOURNAL}")]
    first = [0] if (rank_folder(trial, rank) / JOURNAL).exists() else []
    return first + sorted(int(match[1]) for match in found if match)


def segment_name(table: str, number: int) -> str:
    return f"{table}-{number:04}.arrow"


@lru_cache(maxsize=4096)  # a journal names the same few files in every line
def table_of(file: str) -> str:
    """The table that a segment belongs to; empty for other files."""
    match = _SEGMENT.fullmatch(file)
    return match[1] if match else ""


def number_of(segment: str) -> int:
    """Which of its table's segments it is; 0 for other files."""
    match = _SEGMENT.fullmatch(segment)
    return int(match[2]) if match else 0


def raw_name(step: int, ordinal: int) -> str:
    return f"{RAW}/{step}-{ordinal}.safetensors"


def ordinal_of(raw_file: str) -> int:
    """Of the recorded step whose raw values are in a file; -1 for other files."""
    match = _RAW.fullmatch(raw_file)
    return int(match[1]) if match else NO_STEP


def is_graph(file: str) -> bool:
    """Whether a file, relative to the rank, is a dependency graph."""
    return bool(_GRAPH.fullmatch(file))


def is_data(file: str) -> bool:
    """Whether a file, relative to the rank, is one that only the journal makes valid."""
    return bool(table_of(file)) or ordinal_of(file) != NO_STEP or is_graph(file)


def graph_name(graph_hash: str) -> str:
    return f"{GRAPHS}/{graph_hash}.json"


def is_trial(folder: Path) -> bool:
    """Whether a folder is one trial; a damaged or missing trial.json does not change that."""
    return (folder / TRIAL).is_file() or bool(ranks_of(folder))


def trials_in(folder: Path) -> list[Path]:
    """The trials directly below a folder, by name; numbers in names count as numbers."""
    found = [path for path in folder.iterdir() if path.is_dir() and is_trial(path)]
    return sorted(found, key=lambda path: _natural(path.name))


def claim(root: Path, trial: str, *, resume: bool = False, vacate: Callable[[Path], bool] | None = None) -> Path:
    """Make the folder of a new trial. A name that is taken gets -2, -3, …; making the folder is the lock.

    Whoever resumes a trial gets the folder that is there. `vacate` may take an empty trial away that has the name.
    """
    check_name(trial)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for folder in names_for(root, trial):
            if resume and folder.is_dir():
                return _resumable(folder)
            if _make(folder) or (vacate is not None and vacate(folder) and _make(folder)):
                return folder
    except OSError as error:
        raise StoreError(
            f"No trial can be recorded in {root}: {error}. Choose a folder that can be written."
        ) from error
    raise StoreError(f"{root} already has {_MOST_TRIALS_OF_ONE_NAME} trials named {trial!r}. Choose another name.")


def names_for(root: Path, trial: str) -> Iterator[Path]:
    """The folder of that name, and what is tried if it is taken."""
    for number in range(1, _MOST_TRIALS_OF_ONE_NAME):
        yield root / (trial if number == 1 else f"{trial}-{number}")


def _make(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def _resumable(folder: Path) -> Path:
    trials = [] if is_trial(folder) else trials_in(folder)
    if trials:
        raise BadArgument(
            f"{folder} is a folder of {counted(len(trials), 'trial')}, so it cannot be resumed as one. "
            "Give the name of one of them as trial=."
        )
    return folder


def counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def check_name(trial: object) -> None:
    """A trial's name becomes the name of a folder, so it must be one."""
    if not isinstance(trial, str) or not trial.strip():
        raise BadArgument(f"A trial needs a name such as 'baseline', not {trial!r}: it becomes the name of a folder.")
    reason = ""
    if "/" in trial or "\\" in trial:
        reason = "a slash would make it several folders"
    elif trial.startswith("."):
        reason = "a name that starts with a dot is hidden"
    elif any(ord(character) < 32 for character in trial):
        reason = "it has a control character"
    elif any("\ud800" <= character <= "\udfff" for character in trial):
        reason = "it is not valid Unicode"
    elif len(trial.encode()) > _MOST_BYTES_IN_A_NAME:
        reason = f"it has {len(trial.encode())} bytes, and at most {_MOST_BYTES_IN_A_NAME} are allowed"
    if reason:
        raise BadArgument(f"The trial name {trial!r} cannot be the name of a folder: {reason}. Try 'baseline-1'.")


def _natural(name: str) -> list[tuple[int, int | str]]:
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]

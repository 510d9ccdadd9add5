"""The commit log of one rank: a line per commit, with the place and the checksum of every byte it added.

    writer:  data files first ─► then the line
    reader:  only what a line names

Data is never read before its line is there, so nobody meets half a step. A line that is torn has no end yet: reading
stops before it and tries again later. A line that fails its checksum while a good one follows is damage.
The order of the two writes is kept for all processes of one machine. On a network file system a reader may see the
line first; it then finds the data file too short, and treats the commit as not there yet (`contents.py`).

A journal only grows, except when it is written anew without its history: the new one takes the place of the old one at
once, and its first line tells readers that it is another. Whoever resumes a trial appends to the journal that is there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from endoscope.store.files import AppendFile, Span, remove, sync
from endoscope.store.paths import JOURNAL, UNFINISHED
from endoscope.store.sealed import dump, seal, unseal

_LINE_BYTES = 260  # of a line without its files, if every number in it is as long as it can be
_SPAN_BYTES = 56  # of the place of a file, without its name
_KINDS = ("open", "step", "rows", "thin", "close", "resume")


class Copied(NamedTuple):
    """A chunk of a segment that was rewritten by thinning."""

    start: int
    end: int
    crc: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One line of the journal."""

    number: int  # 0, 1, 2, …
    kind: str  # open, step, rows, thin, close, resume
    time: float
    files: Mapping[str, Span] = field(default_factory=dict)  # file, relative to the rank -> what was added
    ordinal: int = -1  # of the recorded step, for kind "step"
    step: int = -1  # its number
    format: int = 0  # for kind "open"
    dropped: int = 0  # for kind "open": steps that had been thinned away when the journal was written anew
    removed: tuple[str, ...] = ()  # kind "thin": files that are gone
    thinned: Mapping[str, list[int]] = field(default_factory=dict)  # "raw" or "stats" -> ordinals of steps
    copied: Mapping[str, list[Copied]] = field(default_factory=dict)  # segment -> what it took over from them
    session: int = 0  # of the process that recorded what the line adds; a trial that was resumed has several
    supersedes: int | None = None  # steps of earlier sessions, from this number on, are no longer part of the trial


def to_line(commit: Commit) -> bytes:
    """The commit as a sealed line; members without a value are left out."""
    document: dict[str, Any] = {"commit": commit.number, "kind": commit.kind, "time": round(commit.time, 6)}
    if commit.kind == "open":
        document |= {"format": commit.format, "dropped": commit.dropped}
    if commit.kind == "step":
        document |= {"ordinal": commit.ordinal, "step": commit.step}
    if commit.session:
        document["session"] = commit.session
    if commit.supersedes is not None:
        document["supersedes"] = commit.supersedes
    for name in ("files", "removed", "thinned", "copied"):
        if value := getattr(commit, name):
            document[name] = value
    return seal(document)


def from_line(line: bytes) -> Commit | None:
    """The commit of a line; None if it is torn, damaged or says what no line can say."""
    document = unseal(line)
    if document is None:
        return None
    try:
        commit = Commit(
            number=document["commit"],
            kind=document["kind"],
            time=float(document["time"]),
            files={name: Span(*span) for name, span in document.get("files", {}).items()},
            ordinal=document.get("ordinal", -1),
            step=document.get("step", -1),
            format=document.get("format", 0),
            dropped=document.get("dropped", 0),
            removed=tuple(document.get("removed", ())),
            thinned=document.get("thinned", {}),
            copied={name: [Copied(*chunk) for chunk in chunks] for name, chunks in document.get("copied", {}).items()},
            session=document.get("session", 0),
            supersedes=document.get("supersedes"),
        )
        return commit if _is_sensible(commit) else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _is_sensible(commit: Commit) -> bool:
    """Whether every member is of the type that readers rely on, and within its bounds."""
    spans = [span[:3] for span in commit.files.values()]
    copied = [chunk for chunks in commit.copied.values() for chunk in chunks]
    ordinals = [ordinal for gone in commit.thinned.values() for ordinal in gone]
    numbers = [commit.number, commit.dropped, commit.session, commit.format, *ordinals]
    steps = [commit.ordinal, commit.step, *([] if commit.supersedes is None else [commit.supersedes])]
    steps += [chunk.ordinal for chunk in copied]
    return (
        commit.kind in _KINDS
        and math.isfinite(commit.time)
        and all(isinstance(file, str) for file in commit.removed)
        and all(type(number) is int and 0 <= number < 2**63 for number in numbers)
        and all(type(number) is int and -(2**63) <= number < 2**63 for number in steps)
        and (commit.kind != "step" or commit.ordinal >= 0)
        and all(
            type(start) is type(end) is type(crc) is int and 0 <= start <= end < 2**63 and 0 <= crc < 2**32
            for start, end, crc in [*spans, *(chunk[:3] for chunk in copied)]
        )
    )


def most_bytes_of_line(files: Iterable[str]) -> int:
    """The line of a step, or of rows, that names these files has at most so many bytes."""
    return _LINE_BYTES + sum(_SPAN_BYTES + len(dump(file)) for file in files)


class JournalWriter:
    """Numbers commits and appends their lines, behind those that are there."""

    def __init__(self, rank_folder: Path) -> None:
        path = rank_folder / JOURNAL
        whole, self.lines = _whole_lines(path)
        self.file = AppendFile(path, whole)
        self.session = 0

    def append(self, kind: str, time: float, **members: Any) -> Commit:
        """Add one line and return what it says; after an error the journal is as before."""
        commit = Commit(self.lines, kind, time, **{"session": self.session, **members})
        try:
            self.file.append(to_line(commit))
        except BaseException:
            self.file.revert()
            raise
        self.file.settle()
        self.lines += 1
        return commit

    def rewrite(self, members: Iterable[Mapping[str, Any]], *, most_bytes: float = math.inf) -> bool:
        """Put another journal in the place of this one; a reader sees the old or the new one, and notices.

        One that would have more than `most_bytes` is not worth it: then nothing is done, and False is returned.
        """
        lines = [to_line(Commit(number, **line)) for number, line in enumerate(members)]
        data = b"".join(lines)
        if len(data) > most_bytes:
            return False
        path = self.file.path
        unfinished = path.with_name(path.name + UNFINISHED)
        remove(unfinished)
        new = AppendFile(unfinished)
        try:
            new.append(data)
            new.settle()
            sync(unfinished)
            os.replace(unfinished, path)
        except BaseException:
            new.close()
            remove(unfinished)
            raise
        new.path = path
        self.file.close()
        self.file, self.lines = new, len(lines)
        return True


def _whole_lines(path: Path) -> tuple[int | None, int]:
    """(bytes, lines) of what a journal has without a torn end; None if there is no journal."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, 0
    whole = data.rfind(b"\n") + 1
    return whole, data.count(b"\n", 0, whole)


class JournalReader:
    """Reads the lines that are new since the last time."""

    def __init__(self, rank_folder: Path) -> None:
        self.path = rank_folder / JOURNAL
        self._offset = 0
        self._line = 0
        self._missing = 0  # so many lines
        self._head = b""  # the first line, which no other journal has
        self._damaged: list[int] = []
        self._bad_at_the_end: list[int] = []
        self.torn_out: list[int] = []  # numbers of lines, from 1, before which others are missing

    @property
    def damaged(self) -> list[int]:
        """Numbers of lines, from 1, that are complete but fail their checksum."""
        return self._damaged + self._bad_at_the_end

    def read(self) -> list[Commit] | None:
        """All commits that were added since the last call; None if another journal stands there now."""
        with self.path.open("rb") as file:
            head = file.readline()
            if self._head and (head != self._head or os.fstat(file.fileno()).st_size < self._offset):
                return None
            self._head = head if head.endswith(b"\n") else b""
            file.seek(self._offset)
            *lines, _torn = file.read().split(b"\n")
        commits = [from_line(line) for line in lines]
        while commits and commits[-1] is None:  # perhaps not visible completely yet: look again next time
            commits.pop()
        bad = [self._line + n for n in range(1, len(lines) + 1) if n > len(commits) or commits[n - 1] is None]
        for line, commit in enumerate(commits, self._line):
            if commit is not None and commit.number - line > self._missing:
                self.torn_out.append(line + 1)
                self._missing = commit.number - line
        self._line += len(commits)
        self._offset += sum(len(line) + 1 for line in lines[: len(commits)])
        self._damaged += [number for number in bad if number <= self._line]
        self._bad_at_the_end = [number for number in bad if number > self._line]
        return [commit for commit in commits if commit is not None]

"""What a rank holds, according to its journal: chunks of tables, files beside them, what was thinned or superseded.

Readers take up the lines that they find, the writer those that it has written, so both have the same view.

A trial that was resumed has several sessions, one for each process that recorded:

    session 0    steps 0 1 2 3 4 5 6 7
    session 1            3 4             goes on from a checkpoint: its first step takes the place of all from 3 on

What is superseded stays in its files.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from endoscope.schema.recording import NO_STEP, TABLES, THINNED
from endoscope.store import description, paths
from endoscope.store.commits.journal import Commit
from endoscope.store.files import Span

SETTLED_AFTER_SECS = 60.0  # then the data of a commit is there, or will never be
#: Tables whose rows have the number of a step, and belong to no recorded step.
NUMBERED = tuple(table for table in TABLES if table not in (*THINNED, "keys"))


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one commit added to one table."""

    file: str
    start: int
    end: int
    crc: int | None  # None: no line of the journal tells of it, there is nothing to check against
    ordinal: int = NO_STEP  # of the recorded step, in tables that have one
    step: int = NO_STEP  # its number
    session: int = 0  # in which it was recorded; not told of tables whose rows have an ordinal

    @property
    def bytes(self) -> int:
        return self.end - self.start


class Contents:
    """Takes up commits in the order of the journal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.held_back: list[Commit] = []  # lines whose data is not there
        self.misses_files = False  # something is held back because a file is not there (any more?)
        self.gone: set[str] = set()  # files that were removed, or are about to be
        self._found: set[tuple[str, int]] = set()  # chunks that were taken up without a line
        self.chunks: dict[str, list[Chunk]] = {table: [] for table in TABLES}
        self.files: dict[str, Span] = {}  # raw values, graphs
        self.bytes_beside = 0  # of these files
        self.thinned: set[int] = set()  # ordinals of steps that went since the journal was written (anew)
        self.dropped = 0  # how many had gone before
        self.went_back_to: dict[int, int] = {}  # session -> the lowest step that it has taken the place of
        self.superseded: set[int] = set()  # ordinals of steps whose place a later session has taken
        self.hidden: frozenset[int] = frozenset()  # steps not to be shown: thinned, superseded, not completely there
        self.step_of: dict[int, int] = {}  # ordinal -> number of the step
        self.time_of: dict[int, float] = {}  # ordinal -> when it was committed
        self.session_of: dict[int, int] = {}  # ordinal -> session, if it is not the first
        self.session = 0  # the last one
        self.is_closed = False
        self.last_commit_at = 0.0

    def take_up(self, commits: Iterable[Commit]) -> set[str]:
        """Add commits whose data is there; returns the tables of which something has gone."""
        commits = [*self.held_back, *commits]
        for commit in commits:
            self._note_end(commit)
            self.gone.update(commit.removed)
            self.gone.difference_update(file for file in commit.files if paths.is_graph(file))  # is back
        self.held_back, self.misses_files = [], False
        sizes: dict[str, int] = {}
        changed: set[str] = set()
        for commit in commits:
            # What follows a rewritten segment makes sense only with it.
            after_a_rewrite = any(held.copied for held in self.held_back)
            if after_a_rewrite or not self._is_there(commit, sizes):
                self.held_back.append(commit)
            else:
                changed |= self.add(commit)
        held = {commit.ordinal for commit in self.held_back if commit.kind == "step"}
        hidden = self.thinned | self.superseded | held
        if self.hidden != hidden:
            self.hidden = frozenset(hidden)
        return changed

    def add(self, commit: Commit) -> set[str]:
        """Add one commit; returns the tables of which something has gone."""
        if commit.kind == "open":
            description.check_format(commit.format, self._folder.parent)
            self.dropped = commit.dropped
        if commit.kind == "step":
            self._add_step(commit)
        self._note_end(commit)
        self.gone.update(commit.removed)
        self.session = max(self.session, commit.session)
        changed = self._remove(commit) | self._supersede(commit)
        for chunk in self._chunks_of(commit):
            if (chunk.file, chunk.start) not in self._found:  # else it was there before its line
                self.chunks[paths.table_of(chunk.file)].append(chunk)
        for table in changed:
            # Rows without a step stay in the order in which they came: a merged segment is younger than what it
            # replaces, and older than what follows.
            by_step = table in THINNED
            self.chunks[table].sort(
                key=lambda chunk: (chunk.ordinal if by_step else chunk.session, chunk.file, chunk.start)
            )
        for file, span in commit.files.items():
            if not paths.table_of(file):
                self.gone.discard(file)  # a graph that is back
                self.bytes_beside += span.end - self.files.get(file, Span(0, 0, 0)).end
                self.files[file] = span
        self.last_commit_at = max(self.last_commit_at, commit.time)
        return changed

    def add_found(self, table: str, chunks: Iterable[Chunk]) -> None:
        """Take up chunks that no line tells of, in their places."""
        self._found.update((chunk.file, chunk.start) for chunk in chunks)
        self.chunks[table] += chunks
        self.chunks[table].sort(key=lambda chunk: (chunk.file, chunk.start))

    def forget_thinned(self) -> None:
        """The journal was written anew, without the history of steps that have gone."""
        self.dropped += len(self.thinned)
        for ordinal in self.thinned:
            self.step_of.pop(ordinal, None)
        self.thinned.clear()
        self.gone.clear()

    def end_of(self, session: int) -> int | None:
        """Steps of a session from this number on are superseded; None if none is."""
        return min((step for later, step in self.went_back_to.items() if later > session), default=None)

    def _is_superseded(self, ordinal: int) -> bool:
        end = self.end_of(self.session_of.get(ordinal, 0))
        return end is not None and self.step_of[ordinal] >= end

    def _note_end(self, commit: Commit) -> None:
        if commit.kind in ("close", "resume"):
            self.is_closed = commit.kind == "close"

    def _add_step(self, commit: Commit) -> None:
        self.step_of[commit.ordinal] = commit.step
        self.time_of[commit.ordinal] = commit.time
        if commit.session:
            self.session_of[commit.ordinal] = commit.session
        if self.went_back_to and self._is_superseded(commit.ordinal):  # in a journal written anew
            self.superseded.add(commit.ordinal)

    def _supersede(self, commit: Commit) -> set[str]:
        """A session has gone back to an earlier step; returns the tables whose rows this may hide."""
        step = commit.supersedes
        if step is None or step >= self.went_back_to.get(commit.session, step + 1):
            return set()
        self.went_back_to[commit.session] = step
        self.superseded = set(filter(self._is_superseded, self.step_of))
        return set(NUMBERED)

    def _chunks_of(self, commit: Commit) -> Iterator[Chunk]:
        """Everything that a commit added or copied, except to files that are gone by now."""
        for file, span in commit.files.items():
            if paths.table_of(file) and file not in self.gone:
                yield Chunk(file, *span, commit.ordinal, commit.step, commit.session)
        for file, copied in commit.copied.items():
            if paths.table_of(file) and file not in self.gone:
                for start, end, crc, ordinal in copied:
                    yield Chunk(file, start, end, crc, ordinal, self.step_of.get(ordinal, NO_STEP), commit.session)

    def _remove(self, commit: Commit) -> set[str]:
        self.thinned.update(commit.thinned.get("stats", ()))
        removed = set(commit.removed)
        for file in removed:
            self.bytes_beside -= self.files.pop(file, Span(0, 0, 0)).end
        changed = {paths.table_of(file) for file in (*removed, *commit.copied)} - {""}
        for table in changed:
            self.chunks[table] = [chunk for chunk in self.chunks[table] if chunk.file not in removed]
        return changed

    def _is_there(self, commit: Commit, sizes: dict[str, int]) -> bool:
        """Whether the files are as long as the commit says; asked of young commits only, as it costs a look at each."""
        if self.is_closed or time.time() - commit.time > SETTLED_AFTER_SECS:
            return True
        needed = {file: span.end for file, span in commit.files.items()}
        needed |= {file: copied[-1].end for file, copied in commit.copied.items() if copied}
        for file, end in needed.items():
            if file not in sizes:
                sizes[file] = _size_of(self._folder / file)
            if sizes[file] < end and file not in self.gone:
                self.misses_files |= sizes[file] < 0
                return False
        return True


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1

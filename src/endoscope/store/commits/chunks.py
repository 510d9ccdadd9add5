"""Chunks of tables: which bytes of which segment belong to which step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from endoscope.schema.recording import NO_STEP
from endoscope.store import paths
from endoscope.store.commits.journal import Commit


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


def of_commit(commit: Commit, gone: Collection[str], step_of: Mapping[int, int]) -> Iterator[tuple[str, Chunk]]:
    """(table, chunk) for everything that a commit added or copied, except to files that are gone by now."""
    for file, (start, end, crc) in commit.files.items():
        if (table := paths.table_of(file)) and file not in gone:
            yield table, Chunk(file, start, end, crc, commit.ordinal, commit.step, commit.session)
    for file, copied in commit.copied.items():
        if (table := paths.table_of(file)) and file not in gone:
            for start, end, crc, ordinal in copied:
                yield table, Chunk(file, start, end, crc, ordinal, step_of.get(ordinal, NO_STEP), commit.session)


def sizes_needed(commit: Commit) -> Mapping[str, int]:
    """File -> how long it must be before the commit can be read."""
    needed = {file: span.end for file, span in commit.files.items()}
    return needed | {file: copied[-1].end for file, copied in commit.copied.items() if copied}

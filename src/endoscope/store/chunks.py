"""Chunks of tables as the journal tells them: which bytes of which segment belong to which step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from endoscope.schema.recording import NO_STEP
from endoscope.store import paths
from endoscope.store.journal import Commit
from endoscope.store.maps import Maps


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one commit added to one table."""

    file: str
    start: int
    end: int
    crc: int | None  # None: the journal's line is lost, there is nothing to check against
    ordinal: int = NO_STEP  # of the recorded step, in tables that have one
    step: int = NO_STEP  # its number
    session: int = 0  # in which it was recorded; not told of tables whose rows have an ordinal


def of_commit(commit: Commit, gone: Collection[str], step_of: Mapping[int, int]) -> Iterator[tuple[str, Chunk]]:
    """(table, chunk) for everything that a commit added or copied, except to files that are gone by now."""
    for file, span in commit.files.items():
        if (table := paths.table_of(file)) and file not in gone:
            yield table, Chunk(file, span.start, span.end, span.crc, commit.ordinal, commit.step, commit.session)
    for file, copied in commit.copied.items():
        if (table := paths.table_of(file)) and file not in gone:
            for start, end, crc, ordinal in copied:
                yield table, Chunk(file, start, end, crc, ordinal, step_of.get(ordinal, NO_STEP), commit.session)


class Found(NamedTuple):
    """Chunks that no line of the journal tells of, because the line is damaged."""

    committed: list[Chunk]
    uncertain: list[Chunk]  # at the end of a file: of the lost line, or of a commit that was never finished


def between(known: Iterable[Chunk], sizes: Mapping[str, int], maps: Maps) -> Found:
    """Look into the holes that lost lines have left in the files of one table.

    Files only grow by whole commits, and a commit that failed is cut off before the next one, so whatever lies between
    two committed chunks was committed, too.
    """
    found = Found([], [])
    by_file: dict[str, list[Chunk]] = {file: [] for file in sizes}
    for chunk in known:
        by_file.setdefault(chunk.file, []).append(chunk)
    for file, chunks in by_file.items():
        end, session = 0, chunks[0].session if chunks else 0
        for chunk in sorted(chunks, key=lambda chunk: chunk.start):
            found.committed.extend(_messages(file, end, chunk.start, maps, session))
            end = chunk.end
        found.uncertain.extend(_messages(file, end, sizes.get(file, 0), maps, session))
    return found


def without_journal(folder: Path, maps: Maps) -> Iterator[tuple[str, Chunk]]:
    """(table, chunk) for everything that can be found when the journal is lost; the last step may be incomplete."""
    for path in sorted(folder.glob("*.arrow")):
        if table := paths.table_of(path.name):
            for chunk in _messages(path.name, 0, path.stat().st_size, maps):
                yield table, chunk


def sizes_needed(commit: Commit) -> Mapping[str, int]:
    """File -> how long it must be before the commit can be read."""
    needed = {file: span.end for file, span in commit.files.items()}
    return needed | {file: copied[-1].end for file, copied in commit.copied.items() if copied}


def _messages(file: str, start: int, end: int, maps: Maps, session: int = 0) -> list[Chunk]:
    from endoscope.store import layout  # needs pyarrow, which whoever reads a journal does not

    found = []
    try:
        data = maps.get(file, end)
        while start < end:
            message = layout.batch_in(data, start)
            found.append(Chunk(file, start, message.end, None, session=session))
            start = message.end
    except (OSError, ValueError):
        pass  # what is left of it cannot be read; the damaged line is named already
    return found

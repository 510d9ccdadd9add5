"""Data that no line of the journal names: what was begun when a process died, or what lost lines have told of.

A process that dies leaves the data of one commit behind, at most. So data of a later step, or of two commits that
follow each other, says that the journal has been emptied or cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from endoscope.schema.recording import NO_STEP, THINNED
from endoscope.store import paths, streams
from endoscope.store.commits.contents import Chunk, Contents
from endoscope.store.disk.maps import Maps


class Found(NamedTuple):
    """A record batch that no line names."""

    chunk: Chunk
    table: str
    is_between: bool  # a commit that is named follows it in the file: so it was committed, too


def find(folder: Path, contents: Contents, maps: Maps) -> Iterator[Found]:
    """Look behind and between the chunks that are named, and into the segments that are not."""
    for path in sorted(folder.glob("*.arrow")):
        table = paths.table_of(path.name)
        if not table or path.name in contents.gone:
            continue
        known = sorted(
            (chunk for chunk in contents.chunks[table] if chunk.file == path.name), key=lambda one: one.start
        )
        end, session = 0, known[0].session if known else 0
        for chunk in known:
            for start, stop in _batches(maps, path, end, chunk.start):
                yield Found(_chunk(path.name, start, stop, session), table, True)
            end = chunk.end
        for start, stop in _batches(maps, path, end, -1):
            yield Found(_chunk(path.name, start, stop, session), table, False)


class Evidence(NamedTuple):
    """What lies in the folder, at one moment."""

    files: set[str]
    found: list[Found]
    latest: int  # ordinal of the latest step of which there is data


def why_lost(contents: Contents, evidence: Evidence) -> str:
    """Why lines of the journal must have been lost; empty if they need not.

    Beside a process that is writing, the journal has to be read again after the evidence was taken.
    """
    files = {file for file in evidence.files - contents.gone if paths.is_data(file)}
    if not contents.last_commit_at and files:
        return f"lists nothing, but there are {len(files)} data files"
    held_back = (commit.ordinal for commit in contents.held_back)
    newest = max([*contents.step_of, *contents.thinned, *held_back], default=-1)
    if evidence.latest > newest + 1:
        return f"ends at the recorded step {newest}, counted from 0, but there is data up to step {evidence.latest}"
    named = {(chunk.file, chunk.start) for chunks in contents.chunks.values() for chunk in chunks}
    behind = [one.chunk for one in evidence.found if one.table not in THINNED and not one.is_between]
    left = [chunk.file for chunk in behind if chunk.file in files and (chunk.file, chunk.start) not in named]
    twice = sorted({file for file in left if left.count(file) > 1})
    return f"does not name all that is in {twice[0]}" if twice else ""


def _batches(maps: Maps, path: Path, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Places of record batches, with the schema that comes first in a file."""
    try:
        data = maps.get(path.name, path.stat().st_size if end < 0 else end)
    except OSError:
        return
    for message in streams.messages_in(data if end < 0 else data[:end], start) if start != end else ():
        if message.kind == "record batch":
            yield start, message.end
            start = message.end


def _chunk(file: str, start: int, end: int, session: int) -> Chunk:
    return Chunk(file, start, end, None, NO_STEP, NO_STEP, session)

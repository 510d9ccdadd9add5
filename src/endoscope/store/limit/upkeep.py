"""Writes tables and the journal anew with less in them: fewer steps, fewer rows, fewer commits, no history.

A training of a million steps has a million commits of a few metrics each. Kept as they came, they would take ten times
their bytes, and opening the recording would mean a million small reads. Readers are led by the journal: it tells them
of the new segment, or a new journal stands in the place of the old one. The journal is told first, then files are
removed: a reader may find a file gone that it has just read about, and must then read on in the journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa

from endoscope.schema.recording import NO_STEP, TABLES, THINNED
from endoscope.store import streams
from endoscope.store.commits.contents import Chunk
from endoscope.store.commits.journal import JournalWriter
from endoscope.store.files import Bytes, remove
from endoscope.store.limit.ledger import Ledger
from endoscope.store.segments import Segments

_ROWS = tuple(table for table in TABLES if table not in THINNED)  # tables that belong to no step
_MOST_CHUNKS = 512  # of such a table before they are merged
_MOST_STALE_LINES = 2048
_WORTH = 0.9  # of its bytes: a journal that would keep more is not written anew

Ordinals = dict[str, list[int]]


class Upkeep:
    """Merges and rewrites when it pays, and whatever is asked for."""

    def __init__(self, folder: Path, journal: JournalWriter, segments: Segments, ledger: Ledger) -> None:
        self._folder = folder
        self.journal, self.segments, self.ledger, self.contents = journal, segments, ledger, ledger.contents

    def tidy(self) -> None:
        """After a commit; seldom is there anything to do."""
        self._merge(_MOST_CHUNKS)
        stale = self.journal.lines - len(self.ledger.steps)
        if stale > _MOST_STALE_LINES + len(self.ledger.steps):
            self._rewrite_journal()

    def squeeze(self, most_chunks: int) -> None:
        """When bytes are needed: whatever can be told in fewer."""
        self._merge(most_chunks)
        self._rewrite_journal(_WORTH * self.journal.file.size)

    def drop_files(self, files: Sequence[str], thinned: Ordinals | None = None) -> None:
        """Remove raw values or graphs."""
        if files:
            self._tell(files, thinned=thinned or {})

    def drop_steps(self, table: str, ordinals: Collection[int], thinned: Ordinals) -> bool:
        """Copy what stays of a table when steps go; returns whether there was anything to be copied or removed."""
        self.segments.end(table)
        found = False
        group: list[Chunk] = []
        for chunks in self._by_file(table):
            if self._is_half_full(chunks) and all(chunk.ordinal not in ordinals for chunk in chunks):
                continue
            stay = sum(chunk.bytes for chunk in group if chunk.ordinal not in ordinals)
            if group and (stay >= self.segments.segment_bytes or self._schema(group) != self._schema(chunks)):
                self._copy(table, group, ordinals, thinned)
                group, thinned = [], {}
            group += chunks
            found = True
        if group:
            self._copy(table, group, ordinals, thinned)
        return found

    def keep_rows(self, table: str, stays: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Only the rows of some steps, in a table of rows that belong to no recorded step; returns whether any went."""
        self.segments.end(table)
        is_less = False
        for chunks in self._by_file(table):
            message = streams.rows_of_steps(self._parts(chunks), self._schema(chunks), stays)
            if message is not None:
                self._exchange(table, chunks, [(NO_STEP, message)] if len(message) else [])
                is_less = True
        return is_less

    def newest_step(self, table: str) -> int:
        """The largest number of a step in what was added last; -1 if there is none."""
        last = self.contents.chunks[table][-1:]
        for part in self._parts(last):
            return int(streams.to_numpy(streams.read_batch(part, self._schema(last)).column("step")).max(initial=-1))
        return -1

    def _merge(self, most_chunks: int) -> None:
        """All small commits of a session to a table as one. For rows that belong to no recorded step."""
        for table in _ROWS:
            if len(self.contents.chunks[table]) <= most_chunks:
                continue
            self.segments.end(table)
            small = [chunks for chunks in self._by_file(table) if not self._is_half_full(chunks)]
            # Segments of one session, as far as they follow each other: rows stay in the order in which they came.
            for _, group in groupby(small, key=lambda one: (one[0].session, bytes(self._schema(one).serialize()))):
                chunks = [chunk for one in group for chunk in one]
                parts = self._parts(chunks)
                if len(parts) > 1:
                    self._exchange(table, chunks, [(NO_STEP, streams.merge_batches(parts, self._schema(chunks)))])

    def _copy(self, table: str, chunks: list[Chunk], ordinals: Collection[int], thinned: Ordinals) -> None:
        stay = [chunk for chunk in chunks if chunk.ordinal not in ordinals]
        self._exchange(table, chunks, [(chunk.ordinal, part) for chunk, part in self.segments.batches(stay)], thinned)

    def _exchange(
        self, table: str, old: list[Chunk], new: Sequence[tuple[int, Bytes]], thinned: Ordinals | None = None
    ) -> None:
        """Put a new segment of these messages, or none, in the place of those that had the chunks."""
        files = list(dict.fromkeys(chunk.file for chunk in old))
        file, copied = self.segments.write_new(table, self._schema(old), new) if new else ("", [])
        try:
            self._tell(files, thinned=thinned or {}, copied={file: copied} if file else {}, session=old[0].session)
        except BaseException:
            remove(self._folder / file) if file else None
            raise
        for gone in files:
            self.segments.sizes.pop(gone, None)
        if file:
            self.segments.sizes[file] = copied[-1].end

    def _tell(self, removed: Iterable[str], **members: object) -> None:
        """The journal's line, and then what it says."""
        self.contents.add(self.journal.append("thin", time.time(), removed=tuple(removed), **members))
        for file in removed:
            remove(self._folder / file)

    def _rewrite_journal(self, most_bytes: float = float("inf")) -> None:
        if self.journal.rewrite(self.ledger.lines(time.time()), most_bytes=most_bytes):
            self.contents.forget_thinned()

    def _by_file(self, table: str) -> list[list[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in self.contents.chunks[table]:
            found.setdefault(chunk.file, []).append(chunk)
        return list(found.values())

    def _parts(self, chunks: Sequence[Chunk]) -> list[memoryview]:
        return [part for _, part in self.segments.batches(chunks)]

    def _is_half_full(self, chunks: Sequence[Chunk]) -> bool:
        """Whether a segment, of which these are the chunks, is no longer small."""
        return self.segments.sizes[chunks[0].file] > self.segments.segment_bytes // 2

    def _schema(self, chunks: Sequence[Chunk]) -> pa.Schema:
        """Of the segment of the first one."""
        return self.segments.schema(chunks[0].file)

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
from endoscope.store import paths, streams
from endoscope.store.commits.contents import Chunk, Contents
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

    def __init__(
        self, folder: Path, journal: JournalWriter, segments: Segments, contents: Contents, ledger: Ledger
    ) -> None:
        self._folder, self._journal, self._segments = folder, journal, segments
        self._contents, self._ledger = contents, ledger

    def tidy(self) -> None:
        """After a commit; seldom is there anything to do."""
        self._merge(_MOST_CHUNKS)
        stale = self._journal.lines - len(self._ledger.steps)
        if stale > _MOST_STALE_LINES + len(self._ledger.steps):
            self._rewrite_journal()

    def squeeze(self, most_chunks: int) -> None:
        """When bytes are needed: whatever can be told in fewer."""
        self._merge(most_chunks)
        self._rewrite_journal(_WORTH * self._journal.file.size)

    def drop_files(self, files: Sequence[str], thinned: Ordinals | None = None) -> None:
        """Remove raw values or graphs."""
        if files:
            self._tell(files, thinned=thinned or {})

    def drop_steps(self, table: str, ordinals: Collection[int], thinned: Ordinals) -> bool:
        """Copy what stays of a table when steps go; returns whether there was anything to be copied or removed."""
        self._segments.end(table)
        group: list[Chunk] = []
        found = False
        for file, chunks in self._by_file(table):
            stay = [chunk for chunk in chunks if chunk.ordinal not in ordinals]
            if len(stay) == len(chunks) and self._segments.sizes[file] > self._segments.segment_bytes // 2:
                continue
            is_full = (
                sum(chunk.bytes for chunk in group if chunk.ordinal not in ordinals) >= self._segments.segment_bytes
            )
            if is_full or (group and self._schema(group[0]) != self._segments.schema(table, file)):
                self._copy(table, group, ordinals, thinned)
                group, thinned = [], {}
            group += chunks
            found = True
        if group:
            self._copy(table, group, ordinals, thinned)
        return found

    def keep_rows(self, table: str, stays: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Only the rows of some steps, in a table of rows that belong to no recorded step; returns whether any went."""
        self._segments.end(table)
        is_less = False
        for file, chunks in self._by_file(table):
            schema = self._segments.schema(table, file)
            message = streams.rows_of_steps([part for _, part in self._segments.batches(chunks)], schema, stays)
            if message is not None:
                new = [(NO_STEP, message)] if len(message) else []
                self._exchange(table, [file], schema, new, session=chunks[0].session)
                is_less = True
        return is_less

    def newest_step(self, table: str) -> int:
        """The largest number of a step in what was added last; -1 if there is none."""
        for chunk, part in self._segments.batches(self._contents.chunks[table][-1:]):
            batch = streams.read_batch(part, self._schema(chunk))
            return int(streams.to_numpy(batch.column(batch.schema.names.index("step"))).max(initial=-1))
        return -1

    def _merge(self, most_chunks: int) -> None:
        """All small commits of a session to a table as one. For rows that belong to no recorded step."""
        for table in _ROWS:
            if len(self._contents.chunks[table]) <= most_chunks:
                continue
            self._segments.end(table)
            small = [
                (self._segments.schema(table, file), chunks)
                for file, chunks in self._by_file(table)
                if self._segments.sizes[file] < self._segments.segment_bytes // 2
            ]
            # Segments of one session, as far as they follow each other: rows stay in the order in which they came.
            for _, group in groupby(small, key=lambda one: (one[1][0].session, one[0].serialize().to_pybytes())):
                self._merge_group(table, [*group])

    def _merge_group(self, table: str, group: list[tuple[pa.Schema, list[Chunk]]]) -> None:
        schema, chunks = group[0][0], [chunk for _, of_file in group for chunk in of_file]
        parts = [part for _, part in self._segments.batches(chunks)]
        if len(parts) > 1:
            old = list(dict.fromkeys(chunk.file for chunk in chunks))
            merged = [(NO_STEP, streams.merge_batches(parts, schema))]
            self._exchange(table, old, schema, merged, session=chunks[0].session)

    def _copy(self, table: str, chunks: list[Chunk], ordinals: Collection[int], thinned: Ordinals) -> None:
        old = list(dict.fromkeys(chunk.file for chunk in chunks))
        stay = [chunk for chunk in chunks if chunk.ordinal not in ordinals]
        new = [(chunk.ordinal, part) for chunk, part in self._segments.batches(stay)]
        self._exchange(table, old, self._schema(chunks[0]), new, thinned)

    def _exchange(
        self,
        table: str,
        old: list[str],
        schema: pa.Schema,
        new: Sequence[tuple[int, Bytes]],
        thinned: Ordinals | None = None,
        session: int = 0,
    ) -> None:
        """Put a new segment of these messages, or none, in the place of old ones."""
        file, copied = self._segments.write_new(table, schema, new) if new else ("", [])
        try:
            self._tell(old, thinned=thinned or {}, copied={file: copied} if file else {}, session=session)
        except BaseException:
            remove(self._folder / file) if file else None
            raise
        for gone in old:
            self._segments.sizes.pop(gone, None)
        if file:
            self._segments.sizes[file] = copied[-1].end

    def _tell(self, removed: Iterable[str], **members: object) -> None:
        """The journal's line, and then what it says."""
        self._contents.add(self._journal.append("thin", time.time(), removed=tuple(removed), **members))
        for file in removed:
            remove(self._folder / file)

    def _rewrite_journal(self, most_bytes: float = float("inf")) -> None:
        if self._journal.rewrite(self._ledger.lines(time.time()), most_bytes=most_bytes):
            self._contents.forget_thinned()

    def _by_file(self, table: str) -> list[tuple[str, list[Chunk]]]:
        chunks = self._contents.chunks[table]
        return [(file, [chunk for chunk in chunks if chunk.file == file]) for file in self._segments.files(table)]

    def _schema(self, chunk: Chunk) -> pa.Schema:
        return self._segments.schema(paths.table_of(chunk.file), chunk.file)

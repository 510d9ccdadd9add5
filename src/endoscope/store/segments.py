"""The growing files of all tables: one open segment per table, a new one when it is full.

Old steps are thinned by copying what stays of a few segments into a new one; a chunk is copied as it is, byte for byte.
Segments are numbered in the order in which they were begun, which after thinning is not the order of their steps.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from endoscope.schema.recording import NO_STEP, TABLES
from endoscope.store import layout, paths
from endoscope.store.checksums import Bytes
from endoscope.store.files import AppendFile, Span, remove
from endoscope.store.journal import Copied
from endoscope.store.streams import merge_batches, schema_message, schema_of
from endoscope.store.syncing import Unsynced, handed_over

SEGMENT_BYTES = 32 * 2**20


class Chunk(NamedTuple):
    """What one step added to one table."""

    file: str
    span: Span
    ordinal: int

    @property
    def bytes(self) -> int:
        return self.span.end - self.span.start


class Rewrite(NamedTuple):
    """A new segment that takes the place of old ones; nobody knows of it before `Segments.replace`."""

    table: str
    file: str
    copied: list[Copied]
    old: list[str]


class Segments:
    """Appends to tables; `settle` or `revert` ends each commit."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._open: dict[str, AppendFile] = {}
        self._count: Counter[str] = Counter()
        self._pending: list[tuple[str, Chunk]] = []
        self._closed: dict[str, int] = {}  # segment -> bytes
        self._unsynced: list[Unsynced] = []
        self.chunks: dict[str, list[Chunk]] = {table: [] for table in TABLES}
        self.failures: list[str] = []  # what the disk refused or lost although it had taken it

    @property
    def bytes(self) -> int:
        return sum(self._closed.values()) + sum(file.size for file in self._open.values())

    def append(self, table: str, message: Bytes, ordinal: int) -> tuple[str, Span]:
        """Add one record batch; returns the segment and where it went."""
        file = self._open.get(table)
        if file is None:
            file = self._open[table] = AppendFile(self._folder / self._next_name(table))
        span = file.append([message] if file.size else [schema_message(table), message])
        self._pending.append((table, Chunk(file.name, span, ordinal)))
        return file.name, span

    def settle(self) -> None:
        pending, self._pending = self._pending, []
        for table, chunk in pending:
            file = self._open[table]
            file.settle()
            self.chunks[table].append(chunk)
            if file.size >= self._segment_bytes:
                self._close(table)

    def revert(self) -> None:
        self._pending.clear()
        for file in self._open.values():
            file.revert()

    def take_unsynced(self) -> list[Unsynced]:
        """What was written since the last time; whoever takes it syncs and closes it."""
        for file in self._open.values():
            self._hand_over(file)
        taken, self._unsynced = self._unsynced, []
        return taken

    def close(self) -> None:
        for table in list(self._open):
            self._close(table)

    def rewrites(self, table: str, drop: Collection[int]) -> Iterator[Rewrite]:
        """Copy what stays when the steps with these ordinals go. Take each one up, with `replace`, before the next."""
        if table in self._open:
            self._close(table)
        group: list[str] = []
        kept: list[Chunk] = []
        for file in self._files(table):
            of_file = [chunk for chunk in self.chunks[table] if chunk.file == file]
            stay = [chunk for chunk in of_file if chunk.ordinal not in drop]
            if len(stay) == len(of_file) and self._closed[file] > self._segment_bytes // 2:
                continue
            group.append(file)
            kept += stay
            if sum(chunk.bytes for chunk in kept) >= self._segment_bytes:
                yield self._copy(table, group, kept)
                group, kept = [], []
        if group:
            yield self._copy(table, group, kept)

    def merged(self, table: str) -> Rewrite | None:
        """All small commits to a table as one; None if nothing would be gained. For rows that belong to no step."""
        if table in self._open:
            self._close(table)
        old = [file for file in self._files(table) if self._closed[file] < self._segment_bytes // 2]
        chunks = [chunk for chunk in self.chunks[table] if chunk.file in old]
        messages = [message for _, message in self._messages(chunks)]
        if len(messages) < 2:
            return None
        name = self._next_name(table)
        with self._new_file(name) as file:
            span = file.append([schema_message(table), merge_batches(messages, schema_of(table))])
        return Rewrite(table, name, [Copied(*span, NO_STEP)], old)

    def replace(self, rewrite: Rewrite) -> None:
        """The journal knows of the new segment: the old ones can go."""
        chunks = [chunk for chunk in self.chunks[rewrite.table] if chunk.file not in rewrite.old]
        chunks += [Chunk(rewrite.file, Span(*copied[:3]), copied.ordinal) for copied in rewrite.copied]
        self.chunks[rewrite.table] = sorted(chunks, key=lambda chunk: (chunk.ordinal, chunk.file, chunk.span.start))
        if rewrite.copied:
            self._closed[rewrite.file] = rewrite.copied[-1].end
        for file in rewrite.old:
            del self._closed[file]
            remove(self._folder / file)

    def abandon(self, rewrite: Rewrite) -> None:
        """The journal could not be told: the old segments stay."""
        remove(self._folder / rewrite.file)

    def _copy(self, table: str, old: list[str], chunks: list[Chunk]) -> Rewrite:
        name = self._next_name(table)
        rewrite = Rewrite(table, name, [], list(old))
        if not chunks:
            return rewrite
        with self._new_file(name) as file:
            for chunk, message in self._messages(chunks):
                head = [] if rewrite.copied else [schema_message(table)]
                rewrite.copied.append(Copied(*file.append([*head, message]), chunk.ordinal))
                file.settle()
        return rewrite

    @contextmanager
    def _new_file(self, name: str) -> Iterator[AppendFile]:
        """A segment that is safe on disk at the end of the block, because those that it replaces are removed next."""
        file = AppendFile(self._folder / name)
        try:
            yield file
            file.settle()
            file.sync()
        except BaseException:
            remove(self._folder / name)
            raise
        finally:
            file.close()

    def _files(self, table: str) -> list[str]:
        return list(dict.fromkeys(chunk.file for chunk in self.chunks[table]))

    def _messages(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, memoryview]]:
        """The record batches of chunks, without the schema before them; those that the disk has lost are left out."""
        file, data = "", memoryview(b"")
        for chunk in chunks:
            if chunk.file != file:
                file, data = chunk.file, memoryview((self._folder / chunk.file).read_bytes())
            part = data[chunk.span.start : chunk.span.end]
            if zlib.crc32(part) == chunk.span.crc:
                found = layout.batch_in(part)
                yield chunk, part[found.start : found.end]
            else:
                self.failures.append(f"{chunk.file} is damaged: what it held of recorded step {chunk.ordinal} is lost")

    def _next_name(self, table: str) -> str:
        self._count[table] += 1
        return paths.segment_name(table, self._count[table])

    def _close(self, table: str) -> None:
        file = self._open.pop(table)
        self._closed[file.name] = file.size
        self._hand_over(file)
        file.close()

    def _hand_over(self, file: AppendFile) -> None:
        self._unsynced += handed_over(file, self.failures)

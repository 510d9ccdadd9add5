"""The growing files of all tables: one open segment per table, a new one when it is full.

Old steps are thinned by copying what stays of a few segments into a new one; a chunk is copied as it is, byte for byte.
Segments are numbered in the order in which they were begun, which after thinning is not the order of their steps.

Whoever resumes a trial begins new segments. So the rows of a table without ordinals are, file by file, of one session;
and a file that an older version has begun, perhaps with fewer columns, gets no rows of ours.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from endoscope.schema.recording import NO_STEP, TABLES
from endoscope.store import layout, paths
from endoscope.store.checksums import Bytes
from endoscope.store.files import AppendFile, Span, remove
from endoscope.store.journal import Copied
from endoscope.store.streams import merge_batches, read_schema, rows_of_steps, schema_message, steps_in
from endoscope.store.syncing import Unsynced, handed_over

SEGMENT_BYTES = 32 * 2**20
_MOST_HEAD_BYTES = 2**16  # of the schema message


class Chunk(NamedTuple):
    """What one step added to one table."""

    file: str
    span: Span
    ordinal: int
    session: int = 0  # only told of tables that have no ordinals

    @property
    def bytes(self) -> int:
        return self.span.end - self.span.start


class Rewrite(NamedTuple):
    """A new segment that takes the place of old ones; nobody knows of it before `Segments.replace`."""

    table: str
    file: str
    copied: list[Copied]
    old: list[str]
    session: int = 0


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
        self._heads: dict[str, Bytes] = {}  # segment of an earlier session -> its schema message
        self.session = 0
        self.chunks: dict[str, list[Chunk]] = {table: [] for table in TABLES}
        self.failures: list[str] = []  # what the disk refused or lost although it had taken it

    @property
    def bytes(self) -> int:
        return sum(self._closed.values()) + sum(file.size for file in self._open.values())

    def take_over(self, chunks: Mapping[str, list[Chunk]]) -> None:
        """Go on behind what earlier sessions have committed. Other files keep their numbers, too."""
        for table, known in chunks.items():
            self.chunks[table] = known
            for file in self._files(table):
                self._closed[file] = (self._folder / file).stat().st_size
            there = [path.name for path in self._folder.glob(f"{table}-*.arrow")]
            self._count[table] = max(map(paths.number_of, [*there, *self._files(table)]), default=0)

    def cost(self, messages: Mapping[str, Bytes]) -> int:
        """So many bytes are added by messages to these tables."""
        new = sum(len(schema_message(table)) for table in messages if table not in self._open)
        return new + sum(map(len, messages.values()))

    def append(self, table: str, message: Bytes, ordinal: int) -> tuple[str, Span]:
        """Add one record batch; returns the segment and where it went."""
        file = self._open.get(table)
        if file is None:
            file = self._open[table] = AppendFile(self._folder / self._next_name(table))
            self._heads[file.name] = schema_message(table)
        span = file.append([message] if file.size else [schema_message(table), message])
        self._pending.append((table, Chunk(file.name, span, ordinal, self.session)))
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
            is_full = sum(chunk.bytes for chunk in kept) >= self._segment_bytes
            if is_full or (kept and stay and self._head(table, kept[0].file) != self._head(table, file)):
                yield self._copy(table, group, kept)
                group, kept = [], []
            group.append(file)
            kept += stay
        if group:
            yield self._copy(table, group, kept)

    def merged(self, table: str) -> Iterator[Rewrite]:
        """All small commits of a session to a table as one. For rows that belong to no recorded step."""
        if table in self._open:
            self._close(table)
        small = [file for file in self._files(table) if self._closed[file] < self._segment_bytes // 2]
        groups: dict[tuple[int, Bytes], list[Chunk]] = {}
        for chunk in self.chunks[table]:
            if chunk.file in small:
                groups.setdefault((chunk.session, self._head(table, chunk.file)), []).append(chunk)
        for (session, head), chunks in groups.items():
            messages = [message for _, message in self._messages(chunks)]
            if len(messages) > 1:
                old = list(dict.fromkeys(chunk.file for chunk in chunks))
                message = merge_batches(messages, read_schema(head))
                yield self._new(Rewrite(table, "", [], old, session), head, message)

    def fewer_rows(self, table: str, stays: Callable[[np.ndarray], np.ndarray]) -> Iterator[Rewrite]:
        """Each segment with the rows of some steps only. For rows that belong to no recorded step."""
        if table in self._open:
            self._close(table)
        for file in self._files(table):
            chunks = [chunk for chunk in self.chunks[table] if chunk.file == file]
            head = self._head(table, file)
            messages = [message for _, message in self._messages(chunks)]
            message = rows_of_steps(messages, read_schema(head), stays)
            if message is not None:
                yield self._new(Rewrite(table, "", [], [file], chunks[0].session), head, message)

    def newest_step(self, table: str) -> int:
        """The largest number of a step in what was added last; -1 if there is none."""
        messages = self._messages(self.chunks[table][-1:])
        return max(
            (
                max(steps_in(message, read_schema(self._head(table, chunk.file))), default=-1)
                for chunk, message in messages
            ),
            default=-1,
        )

    def replace(self, rewrite: Rewrite) -> None:
        """The journal knows of the new segment: the old ones can go."""
        new = [Chunk(rewrite.file, Span(*copied[:3]), copied.ordinal, rewrite.session) for copied in rewrite.copied]
        if new:
            self._closed[rewrite.file] = rewrite.copied[-1].end
        chunks = [chunk for chunk in self.chunks[rewrite.table] if chunk.file not in rewrite.old]
        self.chunks[rewrite.table] = sorted([*chunks, *new], key=_order)
        for file in rewrite.old:
            del self._closed[file]
            self._heads.pop(file, None)
            remove(self._folder / file)

    def abandon(self, rewrite: Rewrite) -> None:
        """The journal could not be told: the old segments stay."""
        remove(self._folder / rewrite.file)

    def _copy(self, table: str, old: list[str], chunks: list[Chunk]) -> Rewrite:
        rewrite = Rewrite(table, self._next_name(table), [], list(old))
        if not chunks:
            return rewrite
        with self._new_file(rewrite.file) as file:
            for chunk, message in self._messages(chunks):
                head = [] if rewrite.copied else [self._head(table, chunk.file)]
                rewrite.copied.append(Copied(*file.append([*head, message]), chunk.ordinal))
                file.settle()
        return rewrite

    def _new(self, rewrite: Rewrite, head: Bytes, message: Bytes) -> Rewrite:
        """A segment of one chunk; none if the message is empty."""
        rewrite = rewrite._replace(file=self._next_name(rewrite.table))
        if message:
            with self._new_file(rewrite.file) as file:
                rewrite.copied.append(Copied(*file.append([head, message]), NO_STEP))
        return rewrite

    def _head(self, table: str, file: str) -> Bytes:
        """The schema message that a segment begins with."""
        head = self._heads.get(file)
        if head is None:
            with (self._folder / file).open("rb") as begun:
                head = layout.schema_part(begun.read(_MOST_HEAD_BYTES))
            if read_schema(head) is None:  # damaged
                head = schema_message(table)
            self._heads[file] = head
        return head

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


def _order(chunk: Chunk) -> tuple[int, int, str, int]:
    return chunk.ordinal, chunk.session, chunk.file, chunk.span.start

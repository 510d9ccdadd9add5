"""The growing files of all tables: one open segment per table, a new one when it is full.

Segments are numbered in the order in which they were begun, which after thinning is not the order of their steps.
Whoever resumes a trial begins new segments. So the rows of a table without ordinals are, file by file, of one session;
and a file that an older version has begun, perhaps with fewer columns, gets no rows of ours.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from endoscope.schema.recording import TABLES
from endoscope.store import paths, streams
from endoscope.store.commits.contents import Chunk, Contents
from endoscope.store.commits.journal import Copied
from endoscope.store.files import AppendFile, Bytes, Span, remove, sync

SEGMENT_BYTES = 32 * 2**20


class Segments:
    """Appends to tables; `settle` or `revert` ends each commit."""

    def __init__(self, folder: Path, segment_bytes: int, contents: Contents) -> None:
        self._folder = folder
        self.segment_bytes = segment_bytes
        self._open: dict[str, AppendFile] = {}
        self._count: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}  # segment -> committed bytes
        self.unsynced: set[Path] = set()
        self.failures: list[str] = []  # what the disk has lost although it had taken it
        for table in TABLES:  # go on behind what earlier sessions have committed
            there = {path.name for path in folder.glob(f"{table}-*.arrow")}
            known = {chunk.file for chunk in contents.chunks[table]}
            self.sizes |= {file: (folder / file).stat().st_size for file in known & there}
            self._count[table] = max(map(paths.number_of, known | there), default=0)

    def cost(self, messages: Mapping[str, Bytes]) -> int:
        """So many bytes are added by messages to these tables."""
        new = sum(len(streams.schema_message(table)) for table in messages if table not in self._open)
        return new + sum(map(len, messages.values()))

    def append(self, table: str, message: Bytes) -> tuple[str, Span]:
        """Add one record batch; returns the segment and where it went."""
        file = self._open.get(table)
        if file is None:
            file = self._open[table] = AppendFile(self._folder / self._next_name(table))
        span = file.append(message if file.size else b"".join([streams.schema_message(table), message]))
        return file.path.name, span

    def settle(self) -> None:
        for table, file in list(self._open.items()):
            file.settle()
            if file.size != self.sizes.get(file.path.name):
                self.sizes[file.path.name] = file.size
                self.unsynced.add(file.path)
            if file.size >= self.segment_bytes:
                self.end(table)

    def revert(self) -> None:
        for file in self._open.values():
            file.revert()

    def end(self, table: str) -> None:
        """The next rows of a table go into a new segment."""
        if table in self._open:
            self._open.pop(table).close()

    def close(self) -> None:
        for table in list(self._open):
            self.end(table)

    def batches(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, memoryview]]:
        """The record batch messages of chunks; those that the disk has lost are left out."""
        file, data = "", memoryview(b"")
        for chunk in chunks:
            if chunk.file != file:
                file, data = chunk.file, memoryview((self._folder / chunk.file).read_bytes())
            part = data[chunk.start : chunk.end]
            if zlib.crc32(part) == chunk.crc:
                yield chunk, streams.batch_part(part)
            else:
                self.failures.append(f"{chunk.file} is damaged: what it held of recorded step {chunk.ordinal} is lost")

    def schema(self, file: str) -> pa.Schema:
        """The schema that a segment begins with."""
        with pa.OSFile(str(self._folder / file)) as begun:
            return streams.read_schema(begun) or streams.schema_of(paths.table_of(file))  # it may be damaged

    def write_new(
        self, table: str, schema: pa.Schema, messages: Iterable[tuple[int, Bytes]]
    ) -> tuple[str, list[Copied]]:
        """A new segment of (ordinal, message), safe on disk, because those that it replaces are removed next."""
        name, copied = self._next_name(table), []
        file = AppendFile(self._folder / name)
        try:
            for ordinal, message in messages:
                span = file.append(message if file.size else b"".join([schema.serialize(), message]))
                copied.append(Copied(*span, ordinal))
                file.settle()
            sync(file.path)
        except BaseException:
            remove(file.path)
            raise
        finally:
            file.close()
        return name, copied

    def _next_name(self, table: str) -> str:
        self._count[table] += 1
        return paths.segment_name(table, self._count[table])

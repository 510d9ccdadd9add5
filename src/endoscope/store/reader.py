"""Reads one rank of one trial while it is written, or long after.

    refresh ─► journal ─► contents: chunks of tables, files beside them
    table, batch, columns, whole ─► bytes, each checked against its checksum before its first use

Assumptions: a file never changes below an end that the journal names, the journal only grows, and one process writes.
Races, and what is done about them:
  - the line is visible before its data (network file systems): the commit is held back until the data is there;
  - a segment or raw file was removed by thinning after we read about it: the journal says so, so it is read again;
  - the trial was removed and recorded again under the same name: everything is read from the start.
What fails its checksum or cannot be read is left out and named in `problems`; everything else stays readable.
"""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from endoscope.errors import DamageWarning
from endoscope.schema.recording import NO_STEP, TABLES
from endoscope.store import layout, paths, streams
from endoscope.store.ahead import Ahead, Verified, check
from endoscope.store.chunks import Chunk
from endoscope.store.columns import Columns
from endoscope.store.contents import Contents
from endoscope.store.files import Span
from endoscope.store.journal import JournalReader
from endoscope.store.maps import Maps
from endoscope.store.sealed import unseal
from endoscope.store.superseding import TABLES as NUMBERED

_MOST_ROUNDS = 5
_NO_JOURNAL = "is missing: nothing can be checked, and the last step may be incomplete"


class Problem(NamedTuple):
    """Something that cannot be read."""

    file: str
    reason: str
    step: int = NO_STEP  # what it belongs to, if that is one step

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}" + (f" (step {self.step})" if self.step != NO_STEP else "")


class Checked(NamedTuple):
    """What a check of all checksums found; true if all is well."""

    problems: list[Problem]
    files: int
    bytes: int

    def __bool__(self) -> bool:
        return not self.problems


class _Table:
    """What was read of one table."""

    def __init__(self) -> None:
        self.at: dict[int, Chunk] = {}  # ordinal -> chunk, good or not
        self.placed = 0  # so many chunks are in it
        self.looked_at = 0  # so many chunks
        self.good: list[Chunk] = []
        self.of_step: dict[int, Chunk] = {}  # ordinal -> chunk
        self.batches: list[pa.RecordBatch] = []  # of the first good ones
        self.columns = Columns()
        self.in_columns = 0
        self.keys: dict[int, bytes] = {}  # ordinal -> the column of keys
        self.in_keys = 0


class RankReader:
    """Everything that one rank has recorded. May be shared by threads."""

    def __init__(self, trial: Path, rank: int = 0, ahead: Ahead | None = None, *, quiet: bool = False) -> None:
        self.folder = paths.rank_folder(trial, rank)
        self.lock = threading.RLock()
        self._is_quiet = quiet  # damage is no warning
        self._verified: Verified = ahead.verified if ahead else set()  # stays valid when the journal is written anew
        self.generation = 0  # changes when something that was known has gone
        self._begin()
        begun = ahead.take() if ahead else None
        if begun is not None:
            self._journal, self.contents = begun

    def _begin(self) -> None:
        self.generation += 1
        self.contents = Contents(self.folder)
        self._journal = JournalReader(self.folder)
        self._maps = Maps(self.folder)
        self._tables = {table: _Table() for table in TABLES}
        self._schemas: dict[str, pa.Schema] = {}
        self._same_keys: dict[bytes, bytes] = {}
        self._problems: dict[Problem, None] = {}
        self._is_salvaged = False

    @property
    def problems(self) -> list[Problem]:
        """What was found so far that cannot be read."""
        lines = [Problem(paths.JOURNAL, f"line {line} fails its checksum") for line in self._journal.damaged]
        lines += [Problem(paths.JOURNAL, _NO_JOURNAL)] if self._is_salvaged else []
        return [*lines, *self._problems]

    def refresh(self) -> bool:
        """Read what is new in the journal; returns whether there is anything."""
        with self.lock:
            has_news = self._read_journal()
            # A file that is missing was removed by thinning after we read the journal, which by now says so.
            for _ in range(_MOST_ROUNDS):
                if not self.contents.misses_files or not self._read_journal():
                    break
            return has_news

    def table(self, name: str) -> pa.Table:
        """All rows of a table that can be read."""
        with self.lock:
            batches = self.batches(name)
            if not batches:
                return pa.Table.from_batches([], schema=streams.schema_of(name))
            try:
                return pa.Table.from_batches(batches)
            except pa.ArrowInvalid:  # segments of different versions
                return pa.concat_tables([pa.Table.from_batches([one]) for one in batches], promote_options="default")

    def batches(self, name: str) -> list[pa.RecordBatch]:
        """The same, one batch per commit; a longer list is returned when more is there, until `generation` changes."""
        with self.lock:
            table = self._look_at(name)
            while len(table.batches) < len(table.good):
                chunks = table.good[len(table.batches) :]
                found = self._next_batches(name, chunks)
                if name in NUMBERED and self.contents.superseding:
                    found = [self._without_superseded(*both) for both in zip(found, chunks, strict=False)]
                table.batches += found
            return table.batches

    def good(self, name: str) -> list[Chunk]:
        """The chunks of a table that can be read, also those that the journal has lost."""
        with self.lock:
            return self._look_at(name).good

    def _without_superseded(self, batch: pa.RecordBatch, chunk: Chunk) -> pa.RecordBatch:
        """The rows of steps whose place no later session has taken."""
        end = self.contents.superseding.end_of(chunk.session)
        if end is None:
            return batch
        stay = streams.to_numpy(batch.column(batch.schema.names.index("step"))) < end
        return batch if stay.all() else batch.filter(pa.array(stay))

    def _next_batches(self, name: str, chunks: list[Chunk]) -> list[pa.RecordBatch]:
        """The first of these chunks, or as many as can be read in one go: that takes a tenth of the time."""
        file, end = chunks[0].file, 0
        run = []
        for chunk in chunks:
            if chunk.file != file or chunk.start != end:
                break
            run.append(chunk)
            end = chunk.end
        found = streams.read_batches(self._maps.get(file, end)[:end]) if len(run) > 1 else []
        return found if found and len(found) == len(run) else [self._batch(name, chunks[0])]

    def batch(self, name: str, ordinal: int) -> pa.RecordBatch | None:
        """What one recorded step added to a table."""
        with self.lock:
            chunk = self._chunk_of(name, ordinal) or self._look_at(name).of_step.get(ordinal)
            return self._batch(name, chunk) if chunk else None

    def keys_of_steps(self, name: str) -> dict[int, bytes]:
        """Which keys every step has, as the bytes of their column; before anything is checked, which takes longer."""
        with self.lock:
            table, known = self._tables[name], self.contents.chunks[name]
            last = b""
            for chunks in _by_file(known[table.in_keys :]):
                for chunk, found in zip(chunks, self._keys_in(name, chunks), strict=True):
                    if found is None:
                        continue
                    if found != last:
                        # One object for equal bytes: there may be millions of keys, and they hardly ever change.
                        last = self._same_keys.setdefault(found, found)
                    table.keys[chunk.ordinal] = last
            table.in_keys = len(known)
            self._maps.release()
            return table.keys

    def _keys_in(self, name: str, chunks: list[Chunk]) -> list[bytes | None]:
        """Of chunks of one file; None for what is damaged."""
        try:
            data, schema = self._maps.get(chunks[0].file, chunks[-1].end), self._schema(name, chunks[0])
            place = layout.buffer_places(schema)["key"][0]
            with self._maps.reading(chunks[0].file) as read:
                batches = layout.batches_in(data, [chunk.start for chunk in chunks], read)
                return [read(4 * batch.rows, int(batch.buffers[place])) for batch in batches]
        except (OSError, ValueError, KeyError):
            return [None] if len(chunks) == 1 else [self._keys_in(name, [chunk])[0] for chunk in chunks]

    def release(self) -> None:
        """Give memory back to the system; nothing has to be checked again."""
        with self.lock:
            self._maps.release()

    def forget(self, file: str) -> None:
        """Let go of a file beside the tables; every mapped file is an open one, of which there may be only so many."""
        with self.lock:
            self._maps.forget(file)

    def check_ahead(self, name: str) -> None:
        """Compare the checksums of a table before somebody asks for it; nobody has to wait for that."""
        with self.lock:
            known = list(self.contents.chunks[name])
        check(self.folder, known, self._verified)

    def columns(self, name: str) -> Columns:
        """The numbers of a table over all steps. Hold the lock while you use them."""
        with self.lock:
            table = self._look_at(name)
            for chunks in _by_file(table.good[table.in_columns :]):
                table.columns.add(chunks, self._maps, self._schema(name, chunks[0]))
                table.in_columns += len(chunks)
                self._maps.release()
            return table.columns

    def whole(self, file: str) -> memoryview | None:
        """The bytes of a file beside the tables; None if they cannot be read, which is then a problem."""
        with self.lock:
            span = self.contents.files.get(file)
            if span is None and not self.problems:
                return None
            must_check = span is not None and (file, span) not in self._verified
            if must_check:
                self._maps.forget(file)
            reason = self._why_bad(file, span or Span(0, 0, 0), check=must_check)
            if reason and not (self.folder / file).exists():  # removed by thinning a moment ago?
                self.refresh()
                if span is not None and file not in self.contents.files:
                    return None
            if reason:
                self._report(file, [Problem(file, reason)])
                return None
            if span is None:
                return self._maps.get(file, 0)
            self._verified.add((file, span))
            return self._maps.get(file, span.end)[: span.end]

    def modules(self) -> dict[str, Any]:
        """The tree of modules; empty if none was written or it cannot be read, which is then a problem."""
        with self.lock:
            try:
                found = unseal((self.folder / paths.MODULES).read_bytes())
            except FileNotFoundError:
                return {}
            if found is None:
                self._report(paths.MODULES, [Problem(paths.MODULES, "fails its checksum")])
                return {}
            return dict(found["modules"])

    def verify(self) -> Checked:
        """Compare every committed byte with its checksum, again."""
        with self.lock:
            self.refresh()
            was_quiet, self._is_quiet = self._is_quiet, True  # what is found is returned
            self.generation += 1
            self._verified = set()
            self._problems.clear()
            self._tables = {table: _Table() for table in TABLES}
            self._maps = Maps(self.folder)
            for name in TABLES:
                self._look_at(name)
            for file in list(self.contents.files):
                self.whole(file)
            self.modules()
            chunks = [chunk for known in self.contents.chunks.values() for chunk in known]
            size = sum(chunk.end - chunk.start for chunk in chunks)
            size += sum(span.end for span in self.contents.files.values())
            self._is_quiet = was_quiet
            return Checked(self.problems, len({chunk.file for chunk in chunks}) + len(self.contents.files), size)

    def _read_journal(self) -> bool:
        known = len(self._journal.damaged)
        try:
            new = self._journal.read()
        except FileNotFoundError:
            return self._without_journal()
        if new is None:  # written anew
            self._begin()
            return self._read_journal()
        for table in self.contents.take_up(new):
            self._tables[table] = _Table()
            self.generation += 1
        damaged = self._journal.damaged[known:]
        if damaged:
            self._warn(paths.JOURNAL, [f"line {line} fails its checksum" for line in damaged])
        if self._journal.damaged and (new or damaged):
            self._fill_holes()
        return bool(new)

    def _chunk_of(self, name: str, ordinal: int) -> Chunk | None:
        """The chunk of one step if it is good; whoever wants one step need not wait until all are checked."""
        table, known = self._tables[name], self.contents.chunks[name]
        table.at.update((chunk.ordinal, chunk) for chunk in known[table.placed :])
        table.placed = len(known)
        chunk = table.at.get(ordinal) if ordinal >= 0 else None
        return chunk if chunk is not None and not self._why_bad_chunk(name, chunk) else None

    def _look_at(self, name: str) -> _Table:
        """Sort chunks into good ones and problems, as far as the journal was read."""
        table, known = self._tables[name], self.contents.chunks[name]
        bad: dict[str, list[Problem]] = {}
        while table.looked_at < len(known):
            chunk = known[table.looked_at]
            if table.looked_at and known[table.looked_at - 1].file != chunk.file:
                self._maps.release()  # checking reads everything once; keeping it would fill the memory
            reason = self._why_bad_chunk(name, chunk)
            if reason and self._was_thinned(chunk):
                return self._look_at(name)
            table.looked_at += 1
            if reason:
                bad.setdefault(chunk.file, []).append(Problem(chunk.file, reason, chunk.step))
            else:
                chunk = self._with_ordinal(name, chunk)
                table.good.append(chunk)
                table.of_step[chunk.ordinal] = chunk
        for file, problems in bad.items():
            self._report(file, problems)
        return table

    def _with_ordinal(self, name: str, chunk: Chunk) -> Chunk:
        """If the journal's line is lost, the rows themselves say which step they belong to."""
        if chunk.crc is not None or "ordinal" not in (names := self._schema(name, chunk).names):
            return chunk
        found = self._batch(name, chunk).column(names.index("ordinal"))
        return replace(chunk, ordinal=found[0].as_py() if len(found) else NO_STEP)

    def _was_thinned(self, chunk: Chunk) -> bool:
        """A file that is missing may have been removed a moment ago; then the journal says so by now."""
        if (self.folder / chunk.file).exists():
            return False
        before = self.generation
        self.refresh()
        return self.generation != before

    def _why_bad_chunk(self, name: str, chunk: Chunk) -> str:
        must_check = chunk.crc is not None and chunk not in self._verified
        reason = self._why_bad(chunk.file, Span(chunk.start, chunk.end, chunk.crc or 0), check=must_check)
        if not reason and chunk.crc is None:
            reason = self._why_invalid(name, chunk)
        if not reason:
            self._verified.add(chunk)
        return reason

    def _why_bad(self, file: str, span: Span, *, check: bool) -> str:
        """Why these bytes cannot be used; empty if they can. They are mapped from then on, also if the file goes."""
        try:
            data = self._maps.get(file, span.end)
        except OSError as error:
            return f"cannot be opened: {error.strerror or error}"
        if len(data) < span.end:
            return f"ends at byte {len(data)}, but {span.end} bytes were committed"
        if check and zlib.crc32(data[span.start : span.end]) != span.crc:
            return f"bytes {span.start} to {span.end} fail their checksum"
        return ""

    def _why_invalid(self, name: str, chunk: Chunk) -> str:
        """Without a checksum, Arrow's own checks have to do."""
        try:
            self._batch(name, chunk).validate(full=True)
        except (ValueError, pa.ArrowException) as error:
            return f"bytes {chunk.start} to {chunk.end} cannot be read: {error}"
        return ""

    def _batch(self, name: str, chunk: Chunk) -> pa.RecordBatch:
        data = self._maps.get(chunk.file, chunk.end)
        return streams.read_batch(data[chunk.start : chunk.end], self._schema(name, chunk))

    def _schema(self, name: str, chunk: Chunk) -> pa.Schema:
        """The schema of a segment; if its beginning is damaged, the one that we would write."""
        schema = self._schemas.get(chunk.file)
        if schema is None:
            first = next((other for other in self.contents.chunks[name] if other.file == chunk.file), chunk)
            data = self._maps.get(chunk.file, chunk.end)
            can_be_read = first in self._verified or first.crc is None
            schema = (streams.read_schema(data[: first.end]) if can_be_read else None) or streams.schema_of(name)
            self._schemas[chunk.file] = schema
        return schema

    def _without_journal(self) -> bool:
        """Nothing was written yet, or the journal is lost: then there is nothing to check against, but much to read."""
        if self._is_salvaged or not self.contents.salvage(self._maps):
            return False
        self._is_salvaged = True
        self._warn(paths.JOURNAL, [_NO_JOURNAL])
        return True

    def _fill_holes(self) -> None:
        """Find what belongs to damaged lines of the journal."""
        newest = max(self.contents.step_of, default=-1)
        for table in TABLES:
            found = self.contents.look_between(table, self._maps)
            chunks = found.committed + [
                chunk for chunk in found.uncertain if self.contents.is_closed or self._ordinal(table, chunk) <= newest
            ]
            if chunks:
                self.contents.add_found(table, chunks)
                self._tables[table] = _Table()
                self.generation += 1

    def _ordinal(self, table: str, chunk: Chunk) -> int:
        """Which step a chunk of a lost line belongs to; rows that belong to no step count as old ones."""
        if self._why_bad_chunk(table, chunk):
            return -1
        return self._with_ordinal(table, chunk).ordinal

    def _report(self, file: str, problems: Iterable[Problem]) -> None:
        new = [problem for problem in problems if problem not in self._problems]
        self._problems.update(dict.fromkeys(new))
        if new:
            self._warn(file, [str(problem).removeprefix(f"{file}: ") for problem in new])

    def _warn(self, file: str, reasons: list[str]) -> None:
        shown = "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")
        text = f"{self.folder / file} is damaged: {shown}. Everything else can be read; `.problems` lists it all."
        if not self._is_quiet:
            warnings.warn(text, DamageWarning, stacklevel=4)


def _by_file(chunks: Iterable[Chunk]) -> list[list[Chunk]]:
    """Chunks that follow each other in one file."""
    return [list(found) for _, found in groupby(chunks, key=lambda chunk: chunk.file)]

"""Reads one rank of one trial while it is written, or long after.

    refresh ─► journal ─► contents: chunks of tables, files beside them
    table, batch, batches, whole ─► bytes, each checked against its checksum before its first use

Assumptions: a file never changes below an end that the journal names, the journal only grows, and one process writes.
Races, and what is done about them:
  - the line is visible before its data (network file systems): the commit is held back until the data is there;
  - a segment or raw file was removed by thinning after we read about it: the journal says so, so it is read again;
  - the trial was removed and recorded again under the same name: everything is read from the start.
What fails its checksum or cannot be read is left out and named in `problems`; everything else stays readable.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from endoscope.errors import DamageWarning
from endoscope.schema.recording import NO_STEP, TABLES, THINNED
from endoscope.store import checking, paths, streams
from endoscope.store.commits import unnamed
from endoscope.store.commits.contents import NUMBERED, Chunk, Contents
from endoscope.store.commits.journal import JournalReader
from endoscope.store.disk.maps import Maps
from endoscope.store.files import Span
from endoscope.store.sealed import unseal

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
        self.looked_at = 0  # so many chunks
        self.good: list[Chunk] = []
        self.batches: list[pa.RecordBatch] = []  # of the good chunks
        self.of_step: dict[int, Chunk] = {}  # ordinal -> chunk, good or not; looked up anew for an unknown ordinal


class RankReader:
    """Everything that one rank has recorded. May be shared by threads."""

    def __init__(self, trial: Path, rank: int = 0, attempt: int = 0, *, quiet: bool = False) -> None:
        self.folder = paths.rank_folder(trial.absolute(), rank, attempt)
        self.lock = threading.RLock()
        self.is_quiet = quiet  # damage is no warning
        self._read: dict[Chunk, pa.RecordBatch] = {}  # good ones; they stay so when the journal is written anew
        self._verified: set[tuple[str, Span]] = set()
        self.generation = 0  # changes when something that was known has gone
        self._begin()

    def _begin(self) -> None:
        self.generation += 1
        self._read = {chunk: batch for chunk, batch in self._read.items() if chunk.crc is not None}
        self.contents = Contents(self.folder)
        self._journal = JournalReader(self.folder)
        self._maps = Maps(self.folder)
        self._tables = {table: _Table() for table in TABLES}
        self._schemas: dict[str, pa.Schema] = {}
        self._problems: dict[Problem, None] = {}
        self.lost_lines = ""  # how one can tell that the journal has lost its end, or all of it

    @property
    def problems(self) -> list[Problem]:
        """What was found so far that cannot be read."""
        lines = [Problem(paths.JOURNAL, f"line {line} fails its checksum") for line in self._journal.damaged]
        lines += [Problem(paths.JOURNAL, f"lines are missing before line {line}") for line in self._journal.torn_out]
        lines += [Problem(paths.JOURNAL, self.lost_lines)] if self.lost_lines else []
        return [*lines, *self._problems]

    def refresh(self) -> bool:
        """Read what is new in the journal; returns whether there is anything."""
        with self.lock:
            begun, generation = self.contents, self.generation
            is_first = not begun.last_commit_at
            has_news = self._read_journal()
            # A file that is missing was removed by thinning after we read the journal, which by now says so.
            for _ in range(_MOST_ROUNDS):
                if not self.contents.misses_files or not self._read_journal():
                    break
            if is_first or self.contents is not begun:
                has_news |= self._look_for_lost_lines()
            return has_news or generation != self.generation

    def table(self, name: str) -> pa.Table:
        """All rows of a table that can be read."""
        with self.lock:
            batches = self.batches(name)
            if not batches:
                return pa.Table.from_batches([], schema=streams.schema_of(name))
            try:
                return pa.Table.from_batches(batches)
            except pa.ArrowInvalid:  # a newer version has written more columns into some
                parts = [pa.Table.from_batches([one]) for one in batches]
            try:
                return pa.concat_tables(parts, promote_options="default")
            except pa.ArrowException:  # these columns do not go together
                names = streams.schema_of(name).names
                return pa.concat_tables([part.select(names) for part in parts])

    def written(self, name: str) -> dict[str, pa.DataType]:
        """Columns of a table as they were written: processes with other statistics may have written some segments."""
        with self.lock:
            found: dict[str, pa.DataType] = {}
            for chunk in {chunk.file: chunk for chunk in self.contents.chunks[name]}.values():
                with contextlib.suppress(OSError, ValueError):  # thinning may have removed it meanwhile
                    found |= {field.name: field.type for field in self._schema(name, chunk)}
            return found

    def batches(self, name: str) -> list[pa.RecordBatch]:
        """The same, one batch per commit; a longer list is returned when more is there, until `generation` changes."""
        with self.lock:
            return self._look_at(name).batches

    def good(self, name: str) -> list[Chunk]:
        """The chunks of these batches, also those that the journal has lost."""
        with self.lock:
            return self._look_at(name).good

    def batch(self, name: str, ordinal: int) -> pa.RecordBatch | None:
        """What one recorded step added to a table; whoever wants one step need not wait until all are checked."""
        with self.lock:
            of_step = self._tables[name].of_step
            if ordinal not in of_step:
                of_step.update((chunk.ordinal, chunk) for chunk in self.contents.chunks[name])
            if ordinal < 0 or ordinal not in of_step:
                return None
            chunk = of_step[ordinal]
            found = self._batch(name, chunk)
            if not isinstance(found, str):
                return found
            if self._was_thinned(chunk):
                return self.batch(name, ordinal)
            self._report([Problem(chunk.file, found, chunk.step)])
            return None

    def read_ahead(self, name: str, most: int) -> bool:
        """Read some chunks before somebody asks for them; returns whether there are more."""
        with self.lock:
            table = self._tables[name]
            self._look_at(name, table.looked_at + most)
            return table.looked_at < len(self.contents.chunks[name])

    def release(self) -> None:
        """Give memory back to the system; nothing has to be checked again."""
        with self.lock:
            self._maps.release()

    def forget(self, file: str) -> None:
        """Let go of a file beside the tables; every mapped file is an open one, of which there may be only so many."""
        with self.lock:
            self._maps.forget(file)

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
                self.report(file, reason)
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
            except OSError as error:
                self.report(paths.MODULES, f"cannot be read: {error.strerror or error}")
                return {}
            modules = found.get("modules") if found is not None else None
            if not isinstance(modules, dict):
                self.report(paths.MODULES, "fails its checksum" if found is None else "does not hold modules")
                return {}
            return modules

    def verify(self) -> Checked:
        """Compare every committed byte with its checksum, again."""
        with self.lock:
            was_quiet, self.is_quiet = self.is_quiet, True  # what is found is returned
            self._read, self._verified = {}, set()
            self._begin()
            self.refresh()
            for name in TABLES:
                self._look_at(name)
            for file in list(self.contents.files):
                self.whole(file)
            self.modules()
            chunks = [chunk for known in self.contents.chunks.values() for chunk in known]
            size = sum(chunk.bytes for chunk in chunks) + self.contents.bytes_beside
            self.is_quiet = was_quiet
            return Checked(self.problems, len({chunk.file for chunk in chunks}) + len(self.contents.files), size)

    def report(self, file: str, reason: str) -> None:
        """Name something that cannot be read, once."""
        self._report([Problem(file, reason)])

    def _report(self, problems: list[Problem]) -> None:
        """The same for several in one file."""
        new = [problem for problem in problems if problem not in self._problems]
        self._problems.update(dict.fromkeys(new))
        if new:
            self._warn(new[0].file, [str(problem).removeprefix(f"{problem.file}: ") for problem in new])

    def _read_journal(self) -> bool:
        known, torn_out = len(self._journal.damaged), len(self._journal.torn_out)
        try:
            new = self._journal.read()
        except OSError:
            return False
        if new is None:  # written anew
            self._begin()
            return self._read_journal()
        changed = self.contents.take_up(new)
        for table in changed:
            self._tables[table] = _Table()
            self.generation += 1
        if changed:
            there = {chunk for chunks in self.contents.chunks.values() for chunk in chunks}
            self._read = {chunk: batch for chunk, batch in self._read.items() if chunk in there}
        damaged = [f"line {line} fails its checksum" for line in self._journal.damaged[known:]]
        damaged += [f"lines are missing before line {line}" for line in self._journal.torn_out[torn_out:]]
        if damaged:
            self._warn(paths.JOURNAL, damaged)
        if damaged or (new and (self._journal.damaged or self._journal.torn_out)):
            self._take_up_unnamed()
        return bool(new)

    def _look_for_lost_lines(self) -> bool:
        """Notice that the journal has lost lines at its end, and take up what they told of."""
        if self.contents.is_closed or not self.folder.is_dir():
            return False
        if (self.folder / paths.JOURNAL).is_file():
            evidence = self._evidence()
            reason = unnamed.why_lost(self.contents, evidence)
            if reason:  # a process that is writing has gone on meanwhile; then the journal says so by now
                self._read_journal()
                # A journal that was written anew does not tell of files that have gone.
                there = {file for file in evidence.files if (self.folder / file).exists()}
                reason = unnamed.why_lost(self.contents, evidence._replace(files=there))
        else:
            reason = _NO_JOURNAL if any(self.folder.glob("*.arrow")) else ""
        if not reason:
            return False
        self.lost_lines = reason
        self._warn(paths.JOURNAL, [reason])
        self._take_up_unnamed()
        return True

    def _evidence(self) -> unnamed.Evidence:
        files = {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*")}
        # Maps of its own: those that stay open would keep files alive that thinning removes.
        found = list(unnamed.find(self.folder, self.contents, Maps(self.folder)))
        steps = [one.chunk for one in found if one.table == "steps"]
        ordinals = [self._with_ordinal("steps", chunk).ordinal for chunk in steps[-2:]]
        ordinals += [paths.ordinal_of(file) for file in files - self.contents.files.keys()]
        return unnamed.Evidence(files, found, max(ordinals, default=-1))

    def _take_up_unnamed(self) -> None:
        """Find what belongs to damaged or lost lines of the journal."""
        newest = max(self.contents.step_of, default=-1)
        accepted: dict[str, list[Chunk]] = {}
        for chunk, table, is_between in unnamed.find(self.folder, self.contents, self._maps):
            placed = self._with_ordinal(table, chunk)
            if is_between or self.contents.is_closed or self.lost_lines or placed.ordinal <= newest:
                accepted.setdefault(table, []).append(placed)
        for table, chunks in accepted.items():
            self.contents.add_found(table, chunks)
            self._tables[table] = _Table()
            self.generation += 1

    def _with_ordinal(self, table: str, chunk: Chunk) -> Chunk:
        """The rows of a lost line themselves say which step they belong to; those that belong to none count as old."""
        batch = self._batch(table, chunk) if table in THINNED else ""
        return chunk if isinstance(batch, str) else replace(chunk, ordinal=batch.column("ordinal")[0].as_py())

    def _look_at(self, name: str, end: int | None = None) -> _Table:
        """Read the chunks of a table, as far as the journal was read; sort them into good ones and problems."""
        table, known = self._tables[name], self.contents.chunks[name]
        bad: dict[str, list[Problem]] = {}
        for chunk in known[table.looked_at : end]:
            if table.good and table.good[-1].file != chunk.file:
                self._maps.release()  # checking reads everything once; keeping it would fill the memory
            batch = self._batch(name, chunk)
            if isinstance(batch, str) and self._was_thinned(chunk):
                return self._look_at(name, end)
            table.looked_at += 1
            if isinstance(batch, str):
                bad.setdefault(chunk.file, []).append(Problem(chunk.file, batch, chunk.step))
            else:
                table.good.append(chunk)
                table.batches.append(self._without_superseded(name, batch, chunk))
        for problems in bad.values():
            self._report(problems)
        return table

    def _without_superseded(self, name: str, batch: pa.RecordBatch, chunk: Chunk) -> pa.RecordBatch:
        """The rows of steps whose place no later session has taken."""
        end = self.contents.end_of(chunk.session) if name in NUMBERED else None
        if end is None:
            return batch
        stay = streams.to_numpy(batch.column("step")) < end
        return batch if stay.all() else batch.filter(pa.array(stay))

    def _was_thinned(self, chunk: Chunk) -> bool:
        """A file that is missing may have been removed a moment ago; then the journal says so by now."""
        if (self.folder / chunk.file).exists():
            return False
        before = self.generation
        self.refresh()
        return self.generation != before

    def _batch(self, name: str, chunk: Chunk) -> pa.RecordBatch | str:
        """The rows of a chunk, or why they cannot be read."""
        batch = self._read.get(chunk)
        if batch is not None:
            return batch
        span = Span(chunk.start, chunk.end, chunk.crc or 0)
        reason = self._why_bad(chunk.file, span, check=chunk.crc is not None)
        if reason:
            return reason
        try:
            data = self._maps.get(chunk.file, chunk.end)[chunk.start : chunk.end]
            batch = checking.complete(name, streams.read_batch(data, self._schema(name, chunk)))
            checking.check(name, batch, chunk.ordinal)
        except ValueError as error:
            return f"bytes {chunk.start} to {chunk.end} cannot be read: {error}"
        self._read[chunk] = batch
        return batch

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

    def _schema(self, name: str, chunk: Chunk) -> pa.Schema:
        """The schema of a segment; if its beginning is damaged, the one that we would write."""
        schema = self._schemas.get(chunk.file)
        if schema is None:
            first = next((one for one in self.contents.chunks[name] if one.file == chunk.file and not one.start), chunk)
            span = Span(first.start, first.end, first.crc or 0)
            is_good = not self._why_bad(chunk.file, span, check=first.crc is not None)
            data = self._maps.get(chunk.file, chunk.end)
            schema = (streams.read_schema(data) if is_good else None) or streams.schema_of(name)
            self._schemas[chunk.file] = schema
        return schema

    def _warn(self, file: str, reasons: list[str]) -> None:
        shown = "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")
        text = f"{self.folder / file} is damaged: {shown}. Everything else can be read; `.problems` lists it all."
        if not self.is_quiet:
            warnings.warn(text, DamageWarning, stacklevel=4)

"""Writes one rank of one trial. Everything goes through `_commit`: all of it is there afterwards, or none.

    TrialWriter.create ─► trial.json, journal
      key_id, write_metrics, write_note, write_gap      collected in memory
      write_step, commit ─► room (thinning) ─► raw values, graph ─► segments ─► the journal's line
      close              ─► the rest, the last line, fsync

One thread calls it. A disk that fails raises StoreError; what was committed stays, what was collected is written with
the next commit, and what the failed one had begun is cut off. Nothing is fsynced per step: what a killed process has
written survives it. For power failures fsync comes about every second, in another thread (`syncing.py`).
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from endoscope.errors import BadArgument, StoreError
from endoscope.schema.recording import FORMAT_VERSION, NO_STEP, THINNED, GapRecord, Key, RawValues, StepRecord
from endoscope.store import description, paths, rows, tensors
from endoscope.store.checksums import Bytes
from endoscope.store.files import Span, remove, write_whole
from endoscope.store.journal import JournalWriter
from endoscope.store.messages import batch_message
from endoscope.store.repeating import StepMessages
from endoscope.store.room import Room
from endoscope.store.sealed import dump, seal
from endoscope.store.segments import SEGMENT_BYTES, Segments
from endoscope.store.syncing import Syncing, handed_over

SYNC_EVERY_SECS = 1.0
MOST_COLLECTED = 200_000  # rows of a table that wait for the disk
_SMALLEST_SEGMENT = 64 * 2**10
_SEGMENTS_PER_BUDGET = 16  # so that thinning never needs much room for the copy


class TrialWriter:
    """The one writer of a rank's files."""

    def __init__(self, folder: Path, rank: int, about: dict[str, Any], max_bytes: int | None) -> None:
        self.path = folder
        self.name = folder.name
        self._description = about
        self._folder = paths.rank_folder(folder, rank)
        segment_bytes = SEGMENT_BYTES
        if max_bytes is not None:
            segment_bytes = max(_SMALLEST_SEGMENT, min(SEGMENT_BYTES, max_bytes // _SEGMENTS_PER_BUDGET))
        self._journal = JournalWriter(self._folder)
        self._segments = Segments(self._folder, segment_bytes)
        self._room = Room(self._folder, self._journal, self._segments, max_bytes)
        self._keys: dict[Key, int] = {}
        self._named: list[Key] = []  # key number -> key
        self._keys_written = 0
        self._collected: dict[str, list[tuple[Any, ...]]] = {"metrics": [], "notes": [], "gaps": []}
        self._ordinal = 0
        self._commit_at, self._sync_at = 0.0, time.monotonic()
        self._syncing = Syncing()
        self._messages = StepMessages()
        self._is_closed = False
        self._journal.append("open", time.time(), format=FORMAT_VERSION)

    @classmethod
    def create(
        cls,
        root: str | PathLike[str],
        trial: str,
        *,
        rank: int = 0,
        config: Mapping[str, Any] | None = None,
        max_bytes: int | None = None,
    ) -> TrialWriter:
        """Begin a trial. A name that is taken gets -2, -3, …; other ranks join the folder that rank 0 made."""
        if max_bytes is not None and max_bytes < 1:
            raise BadArgument(f"max_bytes is {max_bytes}, which leaves room for nothing. Try max_bytes=2_000_000_000.")
        folder = paths.claim(Path(root), trial) if rank == 0 else Path(root) / trial
        about = description.describe(folder.name, config)
        try:
            if rank == 0:
                description.write(folder, about)
            paths.rank_folder(folder, rank).mkdir()
            return cls(folder, rank, about, max_bytes)
        except OSError as error:
            raise StoreError(f"Rank {rank} cannot be recorded in {folder}: {error}.") from error

    @property
    def size_bytes(self) -> int:
        """What this rank has on disk."""
        return self._room.bytes

    def key_id(self, key: Key) -> int:
        """The number of a key; a new one is written with the next commit."""
        number = self._keys.get(key)
        if number is None:
            number = self._keys[key] = len(self._named)
            self._named.append(key)
        return number

    def write_step(self, record: StepRecord) -> None:
        """Commit one step, and whatever was collected before it."""
        ordinal = self._ordinal
        values, refused = self._storable(record.raw)
        raw_file = paths.raw_name(record.number, ordinal) if values else ""
        messages = self._messages.of(record, ordinal, raw_file)
        files: dict[str, Sequence[Bytes]] = {}
        if raw_file:
            files[raw_file] = tensors.encode(values)
        graph_file = paths.graph_name(record.graph_hash)
        if record.graph is not None and graph_file not in self._room.ledger.graphs:
            files[graph_file] = [dump(record.graph).encode()]
        metrics = self._metric_rows(record.number, record.type, record.time, record.metrics)
        gaps = [self._gap_row(record.number, record.time, gap) for gap in self._all_gaps(record, refused)]
        self._commit(messages, files, {"metrics": metrics, "gaps": gaps}, record)
        self._ordinal += 1

    def write_metrics(self, step: int, type_: str, at: float, metrics: Mapping[str, Any]) -> None:
        """Collect the metrics of one step, recorded or not."""
        self._collected["metrics"] += self._metric_rows(step, type_, at, metrics)
        self._thin("metrics")

    def write_note(self, step: int, at: float, text: str) -> None:
        self._collected["notes"].append((step, at, str(text)))

    def write_gap(self, step: int, at: float, gap: GapRecord) -> None:
        """Collect something that could not be recorded."""
        self._collected["gaps"].append(self._gap_row(step, at, gap))
        self._thin("gaps")

    def write_modules(self, modules: Mapping[str, Any]) -> None:
        """Put down the tree of modules; it takes the place of an earlier one."""
        try:
            write_whole(self._folder / paths.MODULES, [seal({"modules": modules})])
        except OSError as error:
            raise self._failure(error) from error

    def update_config(self, config: Mapping[str, Any]) -> None:
        """Add to the configuration in trial.json."""
        self._description["config"] = {**self._description["config"], **config}
        try:
            description.write(self.path, self._description)
        except OSError as error:
            raise self._failure(error) from error

    def commit(self, min_secs: float = 0.0) -> None:
        """Write what was collected, unless the last commit is less than `min_secs` ago."""
        has_news = any(self._collected.values()) or self._keys_written < len(self._named)
        if has_news and time.monotonic() - self._commit_at >= min_secs:
            self._commit({}, {}, {})

    def close(self) -> None:
        """Write the rest and say that the trial has ended."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._syncing.wait()
            self._tell_failures()
            self.commit()
            self.commit()  # the first may have had something to say about making room
            self._journal.append("close", time.time())
            self._segments.close()
            self._sync()
            self._syncing.wait()
            if self._syncing.failures:
                raise OSError(self._syncing.failures[0])
        except OSError as error:
            raise self._failure(error) from error
        finally:
            self._segments.close()
            self._journal.file.close()

    def _commit(
        self,
        messages: dict[str, bytes],
        files: Mapping[str, Sequence[Bytes]],
        about: Mapping[str, Sequence[tuple[Any, ...]]],
        record: StepRecord | None = None,
    ) -> None:
        """All or nothing: `messages` to the tables, `files` beside them, `about` the step and what was collected."""
        collected = {table: len(found) for table, found in self._collected.items()}  # more may come meanwhile
        for table, found in self._collected.items():
            if found or about.get(table):
                messages[table] = self._messages.of_rows(table, [*found, *about.get(table, ())])
        named = len(self._named)
        if named > self._keys_written:
            columns = rows.of_keys(self._keys_written, self._named[self._keys_written :])
            messages["keys"] = batch_message("keys", columns)
        try:
            self._gaps_of(self._room.make(sum(map(len, messages.values())) + sum(map(_size, files.values()))))
            self._write(messages, files, record)
        except OSError as error:
            raise self._failure(error) from error
        self._keys_written = named
        for table, found in self._collected.items():
            del found[: collected[table]]
        self._after_commit()

    def _write(
        self, messages: Mapping[str, bytes], files: Mapping[str, Sequence[Bytes]], record: StepRecord | None
    ) -> None:
        """The data, then the journal's line; after an error neither."""
        now = time.time()
        try:
            whole = {name: self._write_file(name, buffers) for name, buffers in files.items()}
            written = whole.copy()
            for table, message in messages.items():
                name, span = self._segments.append(table, message, self._ordinal if table in THINNED else NO_STEP)
                written[name] = span
            if record is None:
                self._journal.append("rows", now, files=written)
            else:
                self._journal.append_step(now, self._ordinal, int(record.number), written)
        except BaseException:
            self._segments.revert()
            for name in files:
                remove(self._folder / name)
            raise
        self._segments.settle()
        if record is not None:
            self._room.ledger.add_step(self._ordinal, record, now, whole)

    def _write_file(self, name: str, buffers: Sequence[Bytes]) -> Span:
        path = self._folder / name
        try:
            return write_whole(path, buffers)
        except FileNotFoundError:  # the first one in its folder
            path.parent.mkdir(exist_ok=True)
            return write_whole(path, buffers)

    def _after_commit(self) -> None:
        """What must not look like a failed commit when it fails."""
        with contextlib.suppress(OSError):  # tidying up can wait
            self._room.tidy()
        self._commit_at = time.monotonic()
        if self._commit_at - self._sync_at >= SYNC_EVERY_SECS:
            self._sync()

    def _storable(self, raw: Sequence[RawValues]) -> tuple[list[tuple[RawValues, str]], list[GapRecord]]:
        """Raw values with the names of their dtypes, and what the format cannot hold."""
        values: dict[int, tuple[RawValues, str]] = {}
        refused = []
        for item in raw:
            key = self._named[item.key]
            try:
                if item.key in values:
                    raise tensors.CannotStore("raw values of this tensor came twice in one step; the first are kept")
                tensors.check(item.array, key.dtype)
            except tensors.CannotStore as error:
                refused.append(GapRecord(key.node, key.of, str(error)))
            else:
                values[item.key] = (item, key.dtype)
        return list(values.values()), refused

    def _thin(self, table: str) -> None:
        """A disk that stays full must not fill the memory, too."""
        found = self._collected[table]
        if len(found) > MOST_COLLECTED:
            del found[1:-1:2]
            reason = f"the disk took nothing for so long that every second one of the waiting {table} was left out"
            self.write_gap(NO_STEP, time.time(), GapRecord("", "", reason))

    def _all_gaps(self, record: StepRecord, refused: Sequence[GapRecord]) -> list[GapRecord]:
        unmeasured = [
            GapRecord(self._named[record.keys[row]].node, self._named[record.keys[row]].of, reason)
            for row, reason in (record.measured.gaps if record.measured is not None else ())
        ]
        return [*record.gaps, *refused, *unmeasured]

    def _metric_rows(self, step: int, type_: str, at: float, metrics: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        found = []
        for name, value in metrics.items():
            try:
                found.append((step, at, str(name), float(value), type_))
            except (TypeError, ValueError) as error:
                self.write_gap(step, at, GapRecord(str(name), "metric", f"a metric is one number: {error}"))
        return found

    @staticmethod
    def _gap_row(step: int, at: float, gap: GapRecord) -> tuple[Any, ...]:
        return (step, gap.node, gap.of, gap.reason, at)

    def _gaps_of(self, reasons: Sequence[str]) -> None:
        for reason in reasons:
            self.write_gap(NO_STEP, time.time(), GapRecord("", "", reason))

    def _sync(self) -> None:
        """Unless the disk is still busy with the last time."""
        if self._syncing.is_busy:
            return
        self._sync_at = time.monotonic()
        journal = handed_over(self._journal.file, self._segments.failures)
        data = self._segments.take_unsynced()
        self._tell_failures()
        self._syncing.start(data, self._folder, journal)

    def _tell_failures(self) -> None:
        for failures in (self._segments.failures, self._syncing.failures):
            self._gaps_of(failures)
            failures.clear()

    def _failure(self, error: OSError) -> StoreError:
        is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        seen = "the disk is full" if is_full else str(error)
        advice = (
            "Free some space, or record less: Run(..., max_bytes=...)." if is_full else "Is the folder still there?"
        )
        return StoreError(f"{self.path} could not be written: {seen}. What was recorded before is safe. {advice}")


def _size(buffers: Sequence[Bytes]) -> int:
    return sum(map(len, buffers))

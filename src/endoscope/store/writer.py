"""Writes one rank of one trial. Everything goes through `_commit`: all of it is there afterwards, or none.

    TrialWriter.create ─► trial.json, journal
                       └► resume: what is there is taken over (`resuming.py`), and appended to
      key_id, write_metrics, write_note, write_gap      collected in memory (`waiting.py`)
      write_step, commit ─► room (thinning) ─► raw values, graph ─► segments ─► the journal's line
      close              ─► the rest, the last line, fsync

One thread calls it. A disk that fails raises StoreError; what was committed stays, what was collected is written with
the next commit, and what the failed one had begun is cut off. Nothing is fsynced per step: what a killed process has
written survives it. For power failures fsync comes about every second, in another thread (`syncing.py`).

With max_bytes, whatever does not fit although all that may go has gone is left out: first the raw values of a step,
then what is known per sample and per unit, then the step. Each is said once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from endoscope.errors import BadArgument, StoreError
from endoscope.schema.recording import (
    FORMAT_VERSION,
    THINNED,
    GapRecord,
    Key,
    RawValues,
    StepRecord,
    TimesRecord,
)
from endoscope.schema.stats import writers
from endoscope.store import description, paths, resuming, rows, tensors
from endoscope.store.commits.contents import NUMBERED, Contents
from endoscope.store.commits.journal import JournalWriter, most_bytes_of_line
from endoscope.store.disk.locking import FolderLock
from endoscope.store.disk.syncing import Syncing
from endoscope.store.files import Bytes, Span, remove, write_whole
from endoscope.store.joining import Member, Place, join
from endoscope.store.limit.ledger import Ledger
from endoscope.store.limit.room import FOR_THE_LAST_LINE, KEPT_BACK, Need, Room
from endoscope.store.limit.upkeep import Upkeep
from endoscope.store.sealed import dump, seal
from endoscope.store.segments import SEGMENT_BYTES, Segments
from endoscope.store.streams import batch_message
from endoscope.store.vacancy import vacate
from endoscope.store.waiting import Rows, Waiting, gap_row

SYNC_EVERY_SECS = 1.0
_SMALLEST_SEGMENT = 64 * 2**10
_SEGMENTS_PER_BUDGET = 16  # so that thinning never needs much room for the copy
_DETAILS = ("samples", "units")  # tables without which a step is still one
_RAW, _PARTS, _STEP = 1, 2, 3  # what is left out of a step that is too large, in this order
_LEFT_OUT = ("", "raw values", "statistics per sample and per unit", "what was recorded of the step")


class TrialWriter:
    """The one writer of a rank's files."""

    def __init__(
        self, place: Place, about: dict[str, Any], max_bytes: int | None, lock: FolderLock, member: Member | None = None
    ) -> None:
        self.place = place
        self.path, self.name = place.trial, place.trial.name
        self._folder = place.folder
        self._description = about
        self._membership = None if member is None else member.to_dict(place.attempt)
        if self._membership is not None and place.rank:
            self._membership["config"] = about["config"]
        self._lock = lock
        former = resuming.look(place.trial, place.rank) if member is None else None
        segment_bytes = SEGMENT_BYTES
        if max_bytes is not None:
            segment_bytes = max(_SMALLEST_SEGMENT, min(SEGMENT_BYTES, max_bytes // _SEGMENTS_PER_BUDGET))
        self._journal = JournalWriter(self._folder)
        self._contents = Contents(self._folder) if former is None else former.contents
        self._ledger = Ledger(self._contents) if former is None else former.ledger
        self._segments = Segments(self._folder, segment_bytes, self._contents)
        self._upkeep = Upkeep(self._folder, self._journal, self._segments, self._ledger)
        self._room = Room(self._upkeep, max_bytes)
        self._keys: dict[Key, int] = {}
        self._named: list[Key] = []  # key number -> key
        self._keys_written = 0
        self._waiting = Waiting(max_bytes)
        self._ordinal = 0
        self._commit_at, self._sync_at = 0.0, time.monotonic()
        self._syncing = Syncing()
        self._is_closed = False
        self.next_step = 0 if former is None else former.next_step  # behind the last one that was recorded or reported
        self._superseded_from = self.next_step
        self._goes_back_to: int | None = None  # an earlier step; the journal does not say so yet
        if former is None:
            self._contents.add(self._journal.append("open", time.time(), format=FORMAT_VERSION))
        else:
            self._go_on(former)
        if self._membership is not None:
            self._write_membership()
        self._count_what_is_there()
        writers.add(self)

    @classmethod
    def create(
        cls,
        root: str | PathLike[str],
        trial: str,
        *,
        member: Member | None = None,
        config: Mapping[str, Any] | None = None,
        max_bytes: int | None = None,
        resume: bool = False,
    ) -> TrialWriter:
        """Begin a trial. A name that is taken gets -2, -3, …; processes of one job (`member`) find one folder.

        With `resume` a trial that is there is gone on with, whether it has ended or its process was killed. One that
        another run is still writing is refused; where folders cannot be locked (`locking.py`) that is not noticed.
        """
        about = description.describe(trial, config)
        _check_size(max_bytes, len(description.text_of(about)))
        root = Path(os.path.abspath(root))  # the process may change its folder
        if member is not None:
            return cls._join(root, trial, member, about, max_bytes, resume=resume)
        folder = paths.claim(root, trial, resume=resume, vacate=vacate)
        about["name"] = folder.name
        place = Place(folder)
        try:
            place.folder.mkdir(exist_ok=resume)
            lock = FolderLock(place.folder)
            if resume:
                about = description.resumed(folder, about)
            write_whole(folder / paths.TRIAL, description.text_of(about))
            return cls(place, about, max_bytes, lock)
        except OSError as error:
            raise StoreError(f"Nothing can be recorded in {folder}: {error}.") from error

    @classmethod
    def _join(
        cls, root: Path, trial: str, member: Member, about: dict[str, Any], max_bytes: int | None, *, resume: bool
    ) -> TrialWriter:
        """A process of a job. After a restart it goes on in new files, so nothing of what is there is touched."""
        about["job"] = member.job
        place = join(root, trial, member, lambda name: description.text_of({**about, "name": name}), resume=resume)
        try:
            lock = FolderLock(place.folder)
            if member.rank == 0:
                about = {**description.resumed(place.trial, about), "job": member.job, "name": place.trial.name}
                write_whole(place.trial / paths.TRIAL, description.text_of(about))
            writer = cls(place, about, max_bytes, lock, member)
        except OSError as error:
            raise StoreError(f"Rank {member.rank} cannot be recorded in {place.trial}: {error}.") from error
        if resume:
            writer.next_step = writer._superseded_from = resuming.next_step(place.trial, place.rank, place.attempt)
        return writer

    def _go_on(self, former: resuming.Former) -> None:
        self._journal.session = former.session
        self._named = former.named
        self._keys = {key: number for number, key in enumerate(former.named)}
        self._keys_written = len(former.named)
        self._ordinal = former.ordinal
        self._contents.add(self._journal.append("resume", time.time()))
        for table in THINNED if former.half_thinned else ():
            self._upkeep.drop_steps(table, former.half_thinned, {})

    @property
    def tensors(self) -> int:
        """How many different tensors were ever recorded."""
        return len(self._named)

    def key_id(self, key: Key) -> int:
        """The number of a key; a new one is written with the next commit."""
        number = self._keys.get(key)
        if number is None:
            number = self._keys[key] = len(self._named)
            self._named.append(key)
        return number

    def supersede(self, step: int) -> None:
        """Go on from an earlier step: what earlier sessions have of it and of later ones is no part of the trial now.

        It stays in the files. This is said with the next commit, when there is something in its place. A recorded step
        does it by itself; metrics do not, because they may belong to the step that the trial had ended with.
        """
        if step < self._superseded_from:
            self._superseded_from = self._goes_back_to = step

    def write_step(self, record: StepRecord) -> None:
        """Commit one step, and whatever was collected before it."""
        self.supersede(record.number)
        values, refused = self._storable(record.raw)
        metrics = self._waiting.metrics(record.number, record.type, record.time, record.metrics)
        gaps = [gap_row(record.number, record.time, gap) for gap in self._all_gaps(record, refused)]
        about = {"metrics": metrics, "gaps": gaps}
        for left_out in range(_STEP):
            if left_out == _RAW and not values:
                continue
            if self._commit_step(record, [] if left_out else values, about, with_details=left_out < _PARTS):
                break
        else:
            left_out = _STEP
            self._waiting.add(about)
        if left_out:
            self._waiting.say_once(_LEFT_OUT[left_out], record.number)

    def _commit_step(
        self, record: StepRecord, values: Sequence[tuple[RawValues, str]], about: Rows, *, with_details: bool
    ) -> bool:
        ordinal = self._ordinal
        raw_file = paths.raw_name(record.number, ordinal) if values else ""
        messages = rows.messages(record, ordinal, raw_file)
        if not with_details:
            messages = {table: message for table, message in messages.items() if table not in _DETAILS}
        files: dict[str, Bytes] = {raw_file: tensors.encode(values)} if raw_file else {}
        graph_file = paths.graph_name(record.graph_hash)
        if record.graph is not None and graph_file not in self._contents.files:
            files[graph_file] = dump(record.graph).encode()
        if not self._commit(messages, files, about, record):
            return False
        self._ordinal += 1
        return True

    def write_metrics(self, step: int, type_: str, at: float, metrics: Mapping[str, Any]) -> None:
        """Collect the metrics of one step, recorded or not."""
        self._waiting.add({"metrics": self._waiting.metrics(step, type_, at, metrics)})

    def write_note(self, step: int, at: float, text: str) -> None:
        self._waiting.note(step, at, text)

    def write_times(self, times: TimesRecord) -> None:
        self._waiting.times(times)

    def write_gap(self, step: int, at: float, gap: GapRecord) -> None:
        """Collect something that could not be recorded."""
        self._waiting.gap(step, at, gap)

    def write_modules(self, modules: Mapping[str, Any]) -> None:
        """Put down the tree of modules; it takes the place of an earlier one."""
        with self._explained():
            self._write_beside(self._folder / paths.MODULES, seal({"modules": modules}), KEPT_BACK)

    def update_config(self, config: Mapping[str, Any]) -> None:
        """Add to the configuration in trial.json; of another process of a job than the first, in rank.json."""
        if self._membership is not None and self.place.rank:
            self._membership["config"] |= config
            self._write_membership()
            return
        about = {**self._description, "config": {**self._description["config"], **config}}
        with self._explained():
            if self._write_beside(self.path / paths.TRIAL, description.text_of(about), FOR_THE_LAST_LINE):
                self._description = about

    def write_meshes(self, meshes: Sequence[Mapping[str, Any]]) -> None:
        """Put down how the processes of the job are arranged."""
        if self._membership is not None:
            self._membership["meshes"] = list(meshes)
            self._write_membership()

    def _write_membership(self) -> None:
        assert self._membership is not None
        with self._explained():
            self._write_beside(self._folder / paths.MEMBERSHIP, seal(self._membership), FOR_THE_LAST_LINE)

    def commit(self, min_secs: float = 0.0) -> None:
        """Write what was collected, unless the last commit is less than `min_secs` ago."""
        if time.monotonic() - self._commit_at < min_secs:
            return
        # Names of tensors belong to a step. They may come before it, but nothing has to make room for that.
        with_keys = self._keys_written < len(self._named) and self._room.fits(Need(lambda: len(self._key_message())))
        if not with_keys and not self._waiting:
            return
        if not self._commit({}, {}, {}, with_keys=with_keys):
            self._leave_out_rows()

    def close(self) -> None:
        """Write the rest and say that the trial has ended."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with self._explained():
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
        finally:
            self._segments.close()
            self._journal.file.close()
            self._lock.release()
            writers.discard(self)

    def _commit(
        self,
        messages: dict[str, memoryview],
        files: Mapping[str, Bytes],
        about: Rows,
        record: StepRecord | None = None,
        *,
        with_keys: bool = True,
        kept_back: int = KEPT_BACK,
    ) -> bool:
        """All or nothing: `messages` to the tables, `files` beside them, `about` the step and what was collected.

        Returns whether there was room for it.
        """
        waiting = self._waiting.counts()  # more may come meanwhile
        messages |= self._waiting.messages(about)
        named = len(self._named) if with_keys else self._keys_written
        if named > self._keys_written:
            messages["keys"] = self._key_message()
        type_ = None if record is None else record.type
        with self._explained():
            if not self._make_room(Need(lambda: self._cost(messages, files), kept_back, type_)):
                return False
            self._write(messages, files, record)
        self._keys_written = named
        self._waiting.forget(waiting)
        self._after_commit()
        return True

    def _key_message(self) -> memoryview:
        return batch_message("keys", rows.of_keys(self._keys_written, self._named[self._keys_written :]))

    def _cost(self, messages: Mapping[str, Bytes], files: Mapping[str, Bytes]) -> int:
        """So many bytes more there are after a commit, at most."""
        names = [*files, *(paths.segment_name(table, 1) for table in messages)]
        return self._segments.cost(messages) + sum(map(len, files.values())) + most_bytes_of_line(names)

    def _leave_out_rows(self) -> None:
        """Not even metrics have room any more. To say so, some was kept back."""
        self._waiting.leave_out(table for table in NUMBERED if table != "gaps")
        self._waiting.say_once("metrics and notes")
        if self._waiting.has_gaps and not self._commit({}, {}, {}, with_keys=False, kept_back=FOR_THE_LAST_LINE):
            self._waiting.leave_out(["gaps"])

    def _write(self, messages: Mapping[str, Bytes], files: Mapping[str, Bytes], record: StepRecord | None) -> None:
        """The data, then the journal's line; after an error neither."""
        written: dict[str, Span] = {}
        about: dict[str, Any] = {"supersedes": self._goes_back_to}
        if record is not None:
            about |= {"ordinal": self._ordinal, "step": int(record.number)}
        try:
            for name, data in files.items():
                written[name] = self._write_file(name, data)
            for table, message in messages.items():
                name, span = self._segments.append(table, message)
                written[name] = span
            kind = "rows" if record is None else "step"
            commit = self._journal.append(kind, time.time(), files=written, **about)
        except BaseException:
            self._segments.revert()
            for name in files:
                remove(self._folder / name)
            raise
        self._segments.settle()
        self._contents.add(commit)
        self._goes_back_to = None
        if record is not None:
            self._ledger.add(self._ordinal, record.type, record.graph_hash)

    def _make_room(self, need: Need) -> bool:
        has_room = self._room.make(need)
        self._waiting.say_all(self._room.said)
        return has_room

    def _write_beside(self, path: Path, text: bytes, kept_back: int) -> bool:
        """A file that is replaced as a whole, if there is room for it."""
        beside = self._room.beside
        has_room = self._make_room(Need(lambda: len(text) - beside.get(path.name, 0), kept_back))
        if has_room:
            write_whole(path, text)
            beside[path.name] = len(text)
        else:
            self._waiting.say_once(path.name)
        return has_room

    def _count_what_is_there(self) -> None:
        """What stands beside the tables, and what earlier sessions have left and nothing else accounts for."""
        beside = self._room.beside
        shared = [self.path / paths.TRIAL] if self.place.rank == 0 else []
        for path in [self._folder / paths.MODULES, self._folder / paths.MEMBERSHIP, *shared]:
            if path.exists():
                beside[path.name] = path.stat().st_size
        there = resuming.bytes_in(self._folder) + beside.get(paths.TRIAL, 0)
        beside["others"] = max(0, there - self._room.bytes)

    def _write_file(self, name: str, data: Bytes) -> Span:
        path = self._folder / name
        try:
            return write_whole(path, data)
        except FileNotFoundError:  # the first one in its folder
            path.parent.mkdir(exist_ok=True)
            return write_whole(path, data)

    def _after_commit(self) -> None:
        """What must not look like a failed commit when it fails."""
        with contextlib.suppress(OSError):  # tidying up can wait
            self._upkeep.tidy()
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

    def _all_gaps(self, record: StepRecord, refused: Sequence[GapRecord]) -> list[GapRecord]:
        unmeasured = [
            GapRecord(self._named[record.keys[row]].node, self._named[record.keys[row]].of, reason)
            for row, reason in (record.measured.gaps if record.measured is not None else ())
        ]
        return [*record.gaps, *refused, *unmeasured]

    def _sync(self) -> None:
        """Unless the disk is still busy with the last time."""
        if self._syncing.is_busy:
            return
        self._sync_at = time.monotonic()
        self._tell_failures()
        self._syncing.start(self._segments.unsynced, self._journal.file.path)
        self._segments.unsynced = set()

    def _tell_failures(self) -> None:
        self._waiting.say_all(self._segments.failures)
        self._waiting.say_all(self._syncing.failures)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Whoever calls is told what a disk that fails means."""
        try:
            yield
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
            seen, advice = str(error), "Is the folder still there?"
            if is_full:
                seen, advice = "the disk is full", "Free some space, or record less: Run(..., max_bytes=...)."
            raise StoreError(
                f"{self.path} could not be written: {seen}. What was recorded before is safe. {advice}"
            ) from error


def _check_size(max_bytes: int | None, of_description: int) -> None:
    least = of_description + 2 * KEPT_BACK
    if max_bytes is not None and max_bytes < least:
        raise BadArgument(
            f"max_bytes={max_bytes} is too small: an empty trial takes {least} bytes, and a "
            "recorded step several times as much. Try max_bytes=2_000_000_000."
        )

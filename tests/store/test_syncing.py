"""A disk that takes long for an fsync, or refuses it: steps reach their files all the same."""

import contextlib
import errno
import os
import threading
from pathlib import Path

import pytest

from endoscope.errors import StoreError
from endoscope.query.recording import Recording
from endoscope.store import files, writer
from endoscope.store.writer import TrialWriter
from tests.store.made_up import check_steps, step_record


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync after every commit."""
    monkeypatch.setattr(writer, "SYNC_EVERY_SECS", 0.0)


def test_steps_are_written_while_the_disk_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    may_end, begun = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        begun.set()
        assert may_end.wait(60)

    monkeypatch.setattr(files.os, "fsync", slow)
    trial = TrialWriter.create(tmp_path, "trial")
    try:
        trial.write_step(step_record(trial, 0))
        assert begun.wait(60)
        for number in range(1, 5):
            trial.write_step(step_record(trial, number))
        check_steps(Recording(trial.path), range(5))
    finally:
        may_end.set()
    trial.close()


def test_everything_is_synced_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    synced: set[int] = set()
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", noted)
    monkeypatch.setattr(writer, "SEGMENT_BYTES", 4000)
    trial = TrialWriter.create(tmp_path, "trial")
    for number in range(20):
        trial.write_step(step_record(trial, number))
    trial.close()
    appended = [path for path in Path(trial.path).rglob("*") if path.suffix in (".arrow", ".jsonl")]
    assert len(appended) > 5
    assert {path.stat().st_ino for path in appended} <= synced
    assert [path for path in open_files() if path.startswith(str(tmp_path))] == []


def open_files() -> list[str]:
    """Where the system tells."""
    found = []
    for entry in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(entry))
    return found


def test_a_disk_that_refuses_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: None) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files.os, "fsync", refuse)
    trial = TrialWriter.create(tmp_path, "trial")
    for number in range(3):
        trial.write_step(step_record(trial, number))
        trial._syncing.wait()
    trial.commit()
    recording = Recording(trial.path)
    check_steps(recording, range(3))
    assert any("power failure" in gap.reason for gap in recording.gaps)
    with pytest.raises(StoreError, match="power failure"):
        trial.close()

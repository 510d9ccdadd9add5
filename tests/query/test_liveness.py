"""Whether a recording is being written: told by the lock of its writer where there is one, else by its age."""

import shutil
import time
from pathlib import Path

import pytest

from endoscope.query.liveness import is_running
from endoscope.query.recording import Recording
from endoscope.store.disk import locking
from endoscope.store.writer import TrialWriter


def test_as_long_as_it_is_written(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "mine")
    killed = shutil.copytree(writer.path, tmp_path / "killed")
    assert is_running(Recording(writer.path))
    assert not is_running(Recording(killed))  # written a moment ago, and nobody holds its lock
    writer.close()
    assert not is_running(Recording(writer.path))


def test_a_lock_that_is_asked_for_does_not_keep_writers_out(tmp_path: Path) -> None:
    assert locking.is_held(tmp_path) is False
    lock = locking.FolderLock(tmp_path)
    assert locking.is_held(tmp_path) is True
    lock.release()
    assert locking.is_held(tmp_path) is False
    assert locking.is_held(tmp_path / "nothing") is None


def test_where_folders_cannot_be_locked_age_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "fcntl", None)
    writer = TrialWriter.create(tmp_path, "mine")
    recording = Recording(writer.path)
    assert is_running(recording)
    later = time.time() + 1000
    monkeypatch.setattr(time, "time", lambda: later)
    assert not is_running(recording)

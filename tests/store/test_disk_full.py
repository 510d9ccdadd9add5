"""A disk that refuses bytes: an error that says so, a recording that stays readable, and the next attempt works."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from endoscope.errors import StoreError
from endoscope.query.recording import Recording
from endoscope.schema.recording import GapRecord
from endoscope.store import files, waiting
from endoscope.store.writer import TrialWriter
from tests.house.tree import ROOT, SRC
from tests.store.made_up import check_steps, step_record


class Disk:
    """Takes a number of bytes, then fails like a full disk: a part of a write, then an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 10**9
        self.error = errno.ENOSPC
        self.written = 0
        monkeypatch.setattr(files, "_write_some", self.write)

    def write(self, descriptor: int, buffers: list[memoryview]) -> int:
        size = min(len(buffers[0]), self.left)
        if size == 0:
            raise OSError(self.error, os.strerror(self.error))
        done = os.write(descriptor, buffers[0][:size])
        self.left -= done
        self.written += done
        return done


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def bytes_of_a_step(tmp_path: Path, disk: Disk) -> int:
    writer = TrialWriter.create(tmp_path, "size")
    writer.write_step(step_record(writer, 0))
    before = disk.written
    writer.write_step(step_record(writer, 1))
    return disk.written - before


def test_full_after_any_number_of_bytes(tmp_path: Path, disk: Disk) -> None:
    """Fails at every 97th byte of a commit; what was committed is there, and afterwards writing goes on."""
    size = bytes_of_a_step(tmp_path, disk)
    assert size > 3000
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0))
    recording = Recording(writer.path)
    done = [0]
    for room in range(0, size, 97):
        disk.left = room
        with pytest.raises(StoreError, match="the disk is full"):
            writer.write_step(step_record(writer, len(done)))
        recording.refresh()
        assert [step.number for step in recording.steps] == done
        if room % 5 == 0:  # somebody makes room: the same step can be written now
            disk.left = 10**9
            writer.write_step(step_record(writer, len(done)))
            done.append(len(done))
    disk.left = 10**9
    writer.close()
    check_steps(Recording(writer.path), done)
    assert Recording(writer.path).verify()


def test_the_message_says_what_to_do(tmp_path: Path, disk: Disk) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    disk.left = 0
    with pytest.raises(StoreError) as error:
        writer.write_step(step_record(writer, 0))
    assert str(error.value) == (
        f"{writer.path} could not be written: the disk is full. What was recorded before is safe. "
        "Free some space, or record less: Run(..., max_bytes=...)."
    )
    disk.error = errno.EIO
    with pytest.raises(StoreError, match=r"Input/output error.*Is the folder still there\?"):
        writer.write_step(step_record(writer, 0))


def test_what_was_collected_is_written_later(tmp_path: Path, disk: Disk) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_metrics(0, "train", 0.0, {"loss": 1.0})
    writer.write_note(0, 0.0, "before")
    disk.left = 100
    with pytest.raises(StoreError):
        writer.commit()
    writer.write_metrics(1, "train", 0.0, {"loss": 2.0})
    writer.write_gap(1, 0.0, GapRecord("", "", "the disk was full"))
    disk.left = 10**9
    writer.commit()
    recording = Recording(writer.path)
    assert recording.metrics["loss"].values.tolist() == [1.0, 2.0]
    assert [note.text for note in recording.notes] == ["before"]
    assert [gap.reason for gap in recording.gaps] == ["the disk was full"]


def test_what_waits_for_the_disk_does_not_fill_the_memory(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST", 50)
    writer = TrialWriter.create(tmp_path, "trial")
    disk.left = 0
    for number in range(1000):
        writer.write_metrics(number, "", float(number), {"loss": float(number)})
        if number % 100 == 0:
            with pytest.raises(StoreError):
                writer.commit()
    disk.left = 10**9
    writer.close()
    recording = Recording(writer.path)
    steps = recording.metrics["loss"].steps
    assert 20 <= len(steps) <= 60 and steps[0] == 0 and steps[-1] == 999
    assert any("left out" in gap.reason for gap in recording.gaps)


def test_a_full_disk_at_the_end(tmp_path: Path, disk: Disk) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0))
    writer.write_note(0, 0.0, "the end")
    disk.left = 10
    with pytest.raises(StoreError):
        writer.close()
    writer.close()  # closed all the same
    check_steps(Recording(writer.path), [0])


def test_no_trial_can_be_begun_on_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    disk.left = 0
    with pytest.raises(StoreError, match=r"Nothing can be recorded in .*No space left"):
        TrialWriter.create(tmp_path, "trial")


def test_the_folder_is_gone(tmp_path: Path) -> None:
    import shutil

    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0))
    shutil.rmtree(writer.path)
    with pytest.raises(StoreError, match=r"Is the folder still there\?"):
        writer.write_step(step_record(writer, 1))


LIMITED = """
import resource, sys
sys.path[:0] = [{src!r}, {root!r}]
from endoscope.errors import StoreError
from endoscope.store.writer import TrialWriter
from tests.store.made_up import step_record
writer = TrialWriter.create({folder!r}, "trial")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
written, failed = 0, 0
for number in range(60):
    try:
        writer.write_step(step_record(writer, number))
        written += 1
        assert not failed
    except StoreError:
        failed += 1
print(written, failed)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_a_limit_that_the_system_enforces(tmp_path: Path) -> None:
    """The same with a real refusal in the middle of a write: no file may have more than 20,000 bytes."""
    code = LIMITED.format(src=str(SRC), root=str(ROOT), folder=str(tmp_path))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    written, failed = map(int, result.stdout.split())
    assert written > 3 and failed > 3
    recording = Recording(tmp_path / "trial")
    check_steps(recording, range(written))
    assert recording.verify()

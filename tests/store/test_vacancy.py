"""An empty trial gives its name back; one that holds anything never does, nor one that is being written."""

import os
import shutil
import time
from pathlib import Path

import pytest

from endoscope.schema.recording import GapRecord
from endoscope.store import paths
from endoscope.store.vacancy import vacate, withdraw
from endoscope.store.writer import TrialWriter
from tests.store.made_up import step_record


def abandoned(folder: Path, writer: TrialWriter) -> Path:
    """What a process that was killed an hour ago has left: nobody holds the lock of a copy."""
    killed = Path(shutil.copytree(writer.path, folder / "killed"))
    long_ago = time.time() - 3600
    os.utime(killed / "rank-0" / paths.JOURNAL, (long_ago, long_ago))
    return killed


def begun(folder: Path) -> TrialWriter:
    writer = TrialWriter.create(folder / "runs", "mine", config={"lr": 0.1})
    writer.write_modules({"modules": []})
    writer.write_gap(-1, time.time(), GapRecord("", "", "nothing was seen"))
    writer.commit()
    return writer


def test_an_empty_trial_is_taken_away(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    killed = abandoned(tmp_path, writer)
    assert vacate(killed) and not any("killed" in path.name for path in tmp_path.iterdir())
    writer.close()
    assert withdraw(writer.path) and not writer.path.exists()


def test_its_name_can_be_used_again(tmp_path: Path) -> None:
    abandoned(tmp_path, begun(tmp_path))
    assert paths.claim(tmp_path, "killed", vacate=vacate).name == "killed"
    assert not any((tmp_path / "killed").iterdir())


@pytest.mark.parametrize("what", ["step", "metric", "note"])
def test_what_was_recorded_stays(tmp_path: Path, what: str) -> None:
    writer = begun(tmp_path)
    if what == "step":
        writer.write_step(step_record(writer, 0))
    elif what == "metric":
        writer.write_metrics(0, "", time.time(), {"loss": 1.0})
    else:
        writer.write_note(0, time.time(), "hello")
    writer.commit()
    killed = abandoned(tmp_path, writer)
    before = sorted(path.name for path in killed.rglob("*"))
    assert not vacate(killed) and not withdraw(killed)
    assert sorted(path.name for path in killed.rglob("*")) == before
    assert paths.claim(tmp_path, "killed", vacate=vacate).name == "killed-2"


def test_what_somebody_put_there_stays(tmp_path: Path) -> None:
    killed = abandoned(tmp_path, begun(tmp_path))
    (killed / "mine.txt").touch()
    assert not vacate(killed) and not withdraw(killed) and (killed / "mine.txt").exists()


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    journal = writer.path / "rank-0" / paths.JOURNAL
    os.utime(journal, (time.time() - 3600,) * 2)
    assert not vacate(writer.path)  # its lock is held
    writer.commit()
    assert paths.claim(tmp_path / "runs", "mine", vacate=vacate).name == "mine-2"


def test_what_has_just_been_left_stays(tmp_path: Path) -> None:
    """Some network file systems let two machines hold one lock."""
    killed = Path(shutil.copytree(begun(tmp_path).path, tmp_path / "killed"))
    assert not vacate(killed)


def test_what_was_ended_in_an_orderly_way_stays(tmp_path: Path) -> None:
    writer = begun(tmp_path)
    writer.close()
    assert not vacate(abandoned(tmp_path, writer))


def test_what_is_no_trial_stays(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert not vacate(tmp_path / "other") and not withdraw(tmp_path / "other")
    assert paths.claim(tmp_path, "other", vacate=vacate).name == "other-2"

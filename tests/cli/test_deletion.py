"""Deleting a trial removes our files and nothing else."""

from pathlib import Path

import pytest

from endoscope.cli import deletion
from endoscope.errors import NotARecording
from endoscope.store.joining import Member
from endoscope.store.writer import TrialWriter
from tests.store.made_up import step_record, write_trial


def test_a_trial_is_deleted(tmp_path: Path) -> None:
    trial, other = write_trial(tmp_path, "a"), write_trial(tmp_path, "b")
    found = deletion.contents_of(trial)
    assert found.bytes == sum(path.stat().st_size for path in found.files) > 1000
    assert not found.seems_alive and found.others == []
    assert deletion.delete(trial, found) == []
    assert not trial.exists() and other.exists()


def test_all_processes_of_a_job_go_with_all_their_attempts(tmp_path: Path) -> None:
    for rank in (0, 1, 1):
        writer = TrialWriter.create(tmp_path, "a", member=Member(rank, 2, "job"))
        writer.write_step(step_record(writer, 0))
        writer.close()
    trial = tmp_path / "a"
    assert (trial / "rank-1" / "attempt-1" / "rank.json").exists()
    found = deletion.contents_of(trial)
    assert not found.seems_alive and found.others == []
    assert deletion.delete(trial, found) == [] and not trial.exists()


def test_what_somebody_put_there_stays(tmp_path: Path) -> None:
    trial = write_trial(tmp_path)
    (trial / "checkpoint.pt").write_text("x")
    (trial / "rank-0" / "raw" / "notes.txt").write_text("x")
    (trial / "rank-0" / "stats-0001.arrow.unfinished").write_text("ours")
    left = deletion.delete(trial, deletion.contents_of(trial))
    assert sorted(path.name for path in left) == ["checkpoint.pt", "notes.txt"]
    assert sorted(path.name for path in trial.rglob("*") if path.is_file()) == ["checkpoint.pt", "notes.txt"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    trial = write_trial(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "journal.jsonl").write_text("not ours")
    (trial / "rank-7").symlink_to(outside)
    (tmp_path / "link").symlink_to(trial)
    with pytest.raises(NotARecording, match=r"is a link to .*trial\. Type that path"):
        deletion.contents_of(tmp_path / "link")
    deletion.delete(trial, deletion.contents_of(trial))
    assert (outside / "journal.jsonl").exists()


def test_a_trial_that_is_being_written(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0))
    assert deletion.contents_of(writer.path).seems_alive
    writer.close()
    assert not deletion.contents_of(writer.path).seems_alive


@pytest.mark.parametrize("name", ["", "nothing here", "folder", "file"])
def test_only_trials_can_be_deleted(tmp_path: Path, name: str) -> None:
    write_trial(tmp_path, "a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    message = "is a folder of 1 trial. Say which to delete" if name == "" else "is no recorded trial"
    with pytest.raises(NotARecording, match=message):
        deletion.contents_of(tmp_path / name)

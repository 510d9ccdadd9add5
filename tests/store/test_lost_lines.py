"""A journal that was emptied or cut off is noticed: by `open`, `ls`, `check`, and by whoever resumes the trial."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import endoscope
from endoscope.cli import main
from endoscope.errors import DamageWarning, StoreError
from endoscope.query.recording import Recording
from endoscope.store.writer import TrialWriter
from tests.store.made_up import check_steps, step_record, write_trial


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return write_trial(tmp_path / "runs", steps=range(6))


def keep_lines(trial: Path, many: int) -> None:
    journal = trial / "rank-0" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:many]))


@pytest.mark.parametrize(("lines", "said"), [(0, "lists nothing, but there are"), (1, "ends at the recorded step -1"),
                                             (3, "ends at the recorded step 1, counted from 0")])  # fmt: skip
def test_whoever_opens_it_is_told_and_sees_everything(trial: Path, lines: int, said: str) -> None:
    keep_lines(trial, lines)
    with pytest.warns(DamageWarning, match=rf"journal.jsonl is damaged: {said}"):
        recording = endoscope.open(trial)
    assert [problem.file for problem in recording.problems] == ["journal.jsonl"]
    check_steps(recording, range(6))
    assert not recording.verify()


def test_a_last_step_that_was_not_finished_is_no_loss(trial: Path) -> None:
    """A process that dies leaves that behind: the line of step 5, and that of the end, are not there."""
    keep_lines(trial, 6)
    recording = endoscope.open(trial)
    assert recording.problems == [] and [step.number for step in recording.steps] == list(range(5))


def test_metrics_alone(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for number in range(5):
        writer.write_metrics(number, "train", 0.0, {"loss": number})
        writer.commit()
    writer.close()
    keep_lines(writer.path, 3)
    with pytest.warns(DamageWarning, match="does not name all that is in metrics-0001.arrow"):
        recording = endoscope.open(writer.path)
    assert recording.metrics["loss"].steps.tolist() == list(range(5))


def test_ls_and_check_say_it(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_lines(trial, 2)
    assert main(["ls", str(trial.parent)]) == 0
    assert "journal.jsonl: ends at the recorded step" in capsys.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        main(["check", str(trial)])
    assert "journal.jsonl: ends at the recorded step" in capsys.readouterr().out


def test_a_page_that_is_open_meanwhile(trial: Path) -> None:
    recording = Recording(trial)
    keep_lines(trial, 0)
    with pytest.warns(DamageWarning, match="lists nothing"):
        recording.refresh()
    check_steps(recording, range(6))


@pytest.mark.parametrize("lines", [0, 3])
def test_it_is_not_gone_on_with(trial: Path, lines: int) -> None:
    keep_lines(trial, lines)
    before = {path: path.read_bytes() for path in trial.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match=r"cannot be resumed: its journal.jsonl .* under another trial name"):
        TrialWriter.create(trial.parent, "trial", resume=True)
    assert {path: path.read_bytes() for path in trial.rglob("*") if path.is_file()} == before


def test_a_line_that_was_taken_out(trial: Path) -> None:
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    with pytest.warns(DamageWarning, match="journal.jsonl is damaged: lines are missing before line 4"):
        recording = endoscope.open(trial)
    check_steps(recording, range(6))
    assert not recording.verify()


def test_a_trial_that_has_just_begun(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for number in range(3):
        recording = Recording(writer.path)
        assert recording.problems == [] and len(recording.steps) == number
        writer.write_step(step_record(writer, number))

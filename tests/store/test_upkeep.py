"""Many small commits are tidied up: nothing is lost, readers keep up."""

from pathlib import Path

import pytest

from endoscope.query.recording import Recording
from endoscope.schema.recording import GapRecord
from endoscope.store.limit import upkeep
from endoscope.store.writer import TrialWriter
from tests.store.made_up import check_steps, step_record


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_MOST_CHUNKS", 10)
    monkeypatch.setattr(upkeep, "_MOST_STALE_LINES", 25)


def test_metrics_notes_and_gaps_of_many_commits(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    recording = Recording(writer.path)
    for number in range(120):
        writer.write_metrics(number, "train", float(number), {"loss": number / 2})
        if number % 3 == 0:
            writer.write_note(number, float(number), f"note {number}")
            writer.write_gap(number, float(number), GapRecord("node", "value", f"gap {number}"))
        if number % 20 == 0:
            writer.write_step(step_record(writer, number, metrics={}))
        writer.commit()
        recording.refresh()
        assert recording.metrics["loss"].steps.tolist() == list(range(number + 1))
        assert len(recording.steps) == number // 20 + 1
    writer.close()
    for again in (recording, Recording(writer.path)):
        again.refresh()
        assert again.metrics["loss"].values.tolist() == [number / 2 for number in range(120)]
        assert [note.text for note in again.notes] == [f"note {number}" for number in range(0, 120, 3)]
        assert [gap.reason for gap in again.gaps] == [f"gap {number}" for number in range(0, 120, 3)]
        assert [step.number for step in again.steps] == list(range(0, 120, 20))
        assert again.verify() and again.closed
    folder = writer.path / "rank-0"
    assert len((folder / "journal.jsonl").read_bytes().splitlines()) < 60
    assert len(list(folder.glob("metrics-*.arrow"))) <= 2


def test_steps_survive_a_journal_written_anew(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    recording = Recording(writer.path)
    for number in range(40):
        writer.write_step(step_record(writer, number))
        for _ in range(2):
            writer.write_note(number, 0.0, "again")
            writer.commit()
        recording.refresh()
        assert len(recording.series("layer.0", "mean")) == number + 1
    writer.close()
    recording.refresh()
    check_steps(recording, range(40))
    check_steps(Recording(writer.path), range(40))
    assert len((writer.path / "rank-0" / "journal.jsonl").read_bytes().splitlines()) < 110
    assert recording.graph(3) == {"nodes": ["layer.0"], "edges": []} and recording.verify()


def test_a_failure_while_tidying_up_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    writer = TrialWriter.create(tmp_path, "trial")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)  # the new journal cannot take the place of the old one
        for number in range(60):
            writer.write_metrics(number, "train", 0.0, {"loss": number})
            writer.commit()
        assert Recording(writer.path).metrics["loss"].steps.tolist() == list(range(60))
    writer.write_metrics(60, "train", 0.0, {"loss": 60})
    writer.close()
    recording = Recording(writer.path)
    assert recording.metrics["loss"].steps.tolist() == list(range(61)) and recording.verify()
    assert len((writer.path / "rank-0" / "journal.jsonl").read_bytes().splitlines()) < 30
    assert not list(tmp_path.rglob("*.unfinished"))


def test_commits_can_be_spared(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for number in range(50):
        writer.write_metrics(number, "train", 0.0, {"loss": 1.0})
        writer.commit(min_secs=60.0)
    recording = Recording(writer.path)
    assert len(recording.metrics["loss"]) < 50
    writer.close()
    recording.refresh()
    assert len(recording.metrics["loss"]) == 50

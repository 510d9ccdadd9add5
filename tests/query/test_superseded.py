"""A trial was resumed from an earlier step: what came after that step is in the files, but no part of the trial."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from endoscope.errors import DamageWarning, LookupFailed
from endoscope.query import bulk
from endoscope.query.presence import presence
from endoscope.query.recording import Recording
from endoscope.query.steps import Step
from endoscope.schema.recording import GapRecord
from endoscope.store.limit import upkeep
from endoscope.store.writer import TrialWriter
from tests.store.made_up import measured, step_record

TABLES = "stats samples units steps metrics notes gaps".split()


def write_step(writer: TrialWriter, number: int, seed: int, type_: str = "train") -> None:
    """A step that tells by its numbers in which session it was written."""
    raw = [step_record(writer, seed).raw[0]]
    metrics = {"loss": float(seed)}
    writer.write_step(
        step_record(writer, number, measured=measured(3, seed=seed), raw=raw, metrics=metrics, type_=type_)
    )


def session(root: Path, steps: Sequence[int], seed: int, *, resume: bool = True, **options: Any) -> TrialWriter:
    writer = TrialWriter.create(root, "trial", resume=resume, **options)
    for number in steps:
        write_step(writer, number, seed + number)
        writer.write_note(number, 0.0, f"note {seed + number}")
        writer.write_gap(number, 0.0, GapRecord("", "", f"gap {seed + number}"))
    writer.close()
    return writer


def check(recording: Recording, seeds: Sequence[int]) -> None:
    """Step n is the one that was written with seeds[n], wherever it is looked at."""
    steps = list(range(len(seeds)))
    assert [step.number for step in recording.steps] == steps
    means = [measured(3, seed=seed).whole["mean"][0] for seed in seeds]
    series = recording.series("layer.0", "mean")
    assert series.steps.tolist() == steps and series.values.tolist() == means
    assert recording.series("layer.0", "mean", sample=1).steps.tolist() == steps
    assert recording.series("layer.0", "mean", unit=1).steps.tolist() == steps
    for number, seed in enumerate(seeds):
        assert recording.statistics("layer.0", number)["mean"] == means[number]
        assert recording.tensor("layer.0", number)[0, 0] == seed
        expected = measured(3, seed=seed)
        assert recording.samples("layer.0", number)["mean"].tolist() == expected.samples["mean"][:4].tolist()
    assert recording.metrics["loss"].steps.tolist() == steps
    assert recording.metrics["loss"].values.tolist() == list(seeds)
    assert [note.text for note in recording.notes] == [f"note {seed}" for seed in seeds]
    assert [gap.reason for gap in recording.gaps] == [f"gap {seed}" for seed in seeds]
    for table in TABLES:
        assert sorted(set(recording.to_arrow(table)["step"].to_pylist())) == steps
        assert recording.sql(f"select distinct step from {table} order by step").rows == [(n,) for n in steps]
    assert recording.sql("select value from metrics where name = 'loss' order by step").rows == [
        (float(seed),) for seed in seeds
    ]
    matrix = bulk.matrix(recording, "value", "mean")
    assert matrix.values[0].tolist() == np.float32(means).tolist()
    assert len(presence(recording).ordinals) == len(steps)
    assert bulk.histograms(recording, bulk.Which("layer.0"))["step"].to_pylist() == steps
    assert recording.verify() and recording.problems == []


def numbers(steps: Sequence[Step]) -> list[int]:
    return [step.number for step in steps]


def test_from_a_checkpoint(tmp_path: Path) -> None:
    trial = session(tmp_path, range(8), 0, resume=False).path
    recording = Recording(trial)
    check(recording, range(8))
    session(tmp_path, range(4, 6), 100)
    for again in (recording, Recording(trial)):
        again.refresh()
        check(again, [0, 1, 2, 3, 104, 105])
        assert numbers(again.superseded) == [4, 5, 6, 7]
    with pytest.raises(
        LookupFailed, match=r"Step 6 was superseded when the trial was resumed from step 4\. Nearest: 4, 5"
    ):
        recording.statistics("layer.0", 6)


def test_three_sessions_that_go_back_further_each_time(tmp_path: Path) -> None:
    trial = session(tmp_path, range(6), 0, resume=False).path
    session(tmp_path, range(4, 9), 100)
    check(Recording(trial), [0, 1, 2, 3, *range(104, 109)])
    session(tmp_path, range(7, 9), 200)
    check(Recording(trial), [0, 1, 2, 3, 104, 105, 106, 207, 208])
    session(tmp_path, range(9, 11), 300)  # in a plain loop
    check(Recording(trial), [0, 1, 2, 3, 104, 105, 106, 207, 208, 309, 310])
    session(tmp_path, range(2, 4), 400)
    recording = Recording(trial)
    check(recording, [0, 1, 402, 403])
    assert len(recording.superseded) == 6 + 5 + 2 + 2 - 2


def test_going_back_again_within_a_session(tmp_path: Path) -> None:
    """Steps of its own stay: a number may occur twice in one session."""
    session(tmp_path, range(8), 0, resume=False)
    writer = session(tmp_path, [6, 7, 3, 4], 100)
    recording = Recording(writer.path)
    assert numbers(recording.steps) == [0, 1, 2, 6, 7, 3, 4]
    assert recording.series("layer.0", "mean").steps.tolist() == [0, 1, 2, 3, 4, 6, 7]


def test_nothing_is_missing_before_there_is_something_in_its_place(tmp_path: Path) -> None:
    session(tmp_path, range(6), 0, resume=False)
    writer = TrialWriter.create(tmp_path, "trial", resume=True)
    recording = Recording(writer.path)
    writer.supersede(3)
    writer.commit()
    recording.refresh()
    check(recording, range(6))
    write_step(writer, 3, 103)
    assert numbers(recording.steps) == list(range(6))
    assert recording.refresh()
    assert numbers(recording.steps) == [0, 1, 2, 3] and recording.metrics["loss"].values.tolist() == [0, 1, 2, 103]
    writer.close()


def test_a_session_that_dies_before_its_first_step(tmp_path: Path) -> None:
    trial = session(tmp_path, range(6), 0, resume=False).path
    writer = TrialWriter.create(tmp_path, "trial", resume=True)
    writer.supersede(3)
    writer.close()
    check(Recording(trial), range(6))
    session(tmp_path, range(6, 8), 0)
    check(Recording(trial), range(8))


def test_metrics_of_a_step_that_is_not_recorded(tmp_path: Path) -> None:
    session(tmp_path, range(6), 0, resume=False)
    writer = TrialWriter.create(tmp_path, "trial", resume=True)
    writer.write_metrics(5, "", 0.0, {"accuracy": 0.5})  # of the step that the trial had ended with
    writer.commit()
    recording = Recording(writer.path)
    check(recording, range(6))
    writer.supersede(2)
    writer.write_metrics(2, "", 0.0, {"loss": 102.0})
    writer.commit()
    recording.refresh()
    assert numbers(recording.steps) == [0, 1] and recording.metrics["loss"].values.tolist() == [0, 1, 102]
    assert recording.metrics["accuracy"].steps.tolist() == [5]  # this session's own
    writer.close()


def test_types_of_superseded_steps(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    write_step(writer, 0, 0)
    write_step(writer, 1, 1, "rare")
    writer.close()
    session(tmp_path, [1], 100)
    recording = Recording(writer.path)
    assert recording.types == ["train"]
    with pytest.raises(LookupFailed, match=r"No step of type 'rare' was recorded"):
        recording.statistics("layer.0", 1, type="rare")


def test_a_journal_that_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says the same in fewer lines; rows of different sessions are not merged with each other."""
    monkeypatch.setattr(upkeep, "_MOST_CHUNKS", 5)
    monkeypatch.setattr(upkeep, "_MOST_STALE_LINES", 3)
    trial = session(tmp_path, range(12), 0, resume=False).path
    session(tmp_path, range(6, 20), 100)
    check(Recording(trial), [*range(6), *range(106, 120)])
    recording = Recording(trial)
    writer = session(tmp_path, range(10, 40), 200)
    assert writer._journal.lines < 120
    for again in (recording, Recording(trial)):
        again.refresh()
        check(again, [*range(6), *range(106, 110), *range(210, 240)])
        assert len(again.superseded) == 6 + 10


def test_what_is_superseded_goes_first_when_bytes_are_needed(tmp_path: Path) -> None:
    limit = 130_000
    session(tmp_path, range(10), 0, resume=False, max_bytes=limit)
    writer = TrialWriter.create(tmp_path, "trial", resume=True, max_bytes=limit)
    recording = Recording(writer.path)
    assert numbers(recording.steps) == list(range(10))
    for number in range(2, 12):
        write_step(writer, number, 100 + number)
        assert sum(path.stat().st_size for path in writer.path.rglob("*") if path.is_file()) <= limit
    writer.close()
    recording.refresh()
    assert numbers(recording.steps) == list(range(12)) and recording.superseded == []
    assert recording.metrics["loss"].values.tolist() == [0, 1, *range(102, 112)]
    assert recording.tensor("layer.0", 3)[0, 0] == 103 and recording.verify()
    assert [gap.reason for gap in recording.gaps if "max_bytes" in gap.reason] == [
        f"8 superseded steps were removed to stay within max_bytes={limit}"
    ]


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    trial = session(tmp_path, range(6), 0, resume=False).path
    session(tmp_path, range(4, 8), 100)
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"supersedes":4' in line)
    for bad in (at - 1, at + 1):  # the line `resume`, and that of step 5
        journal.write_bytes(b"".join(b"?" + line[1:] if n == bad else line for n, line in enumerate(lines)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            recording = Recording(trial)
            assert numbers(recording.steps) == list(range(8))
            assert recording.metrics["loss"].values.tolist() == [0, 1, 2, 3, 104, 105, 106, 107]
            assert len(recording.problems) == 1

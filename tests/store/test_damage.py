"""A damaged file costs what is damaged, and is named."""

import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from endoscope.errors import DamageWarning, ValueNotKept
from endoscope.query.open import open as open_recording
from endoscope.query.recording import Recording
from endoscope.store.commits.journal import from_line
from tests.store.made_up import check_steps, measured, raw_array, write_trial


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return write_trial(tmp_path, steps=range(6))


def span_of(trial: Path, file: str, step: int) -> tuple[int, int]:
    lines = (trial / "rank-0" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    commit = next(found for found in map(from_line, lines) if found is not None and found.step == step)
    return commit.files[file].start, commit.files[file].end


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("part", ["metadata", "numbers"])
def test_the_middle_of_a_segment(trial: Path, part: str) -> None:
    start, end = span_of(trial, "stats-0001.arrow", 3)
    flip(trial / "rank-0" / "stats-0001.arrow", start + 20 if part == "metadata" else end - 20)
    with pytest.warns(DamageWarning, match=rf"stats-0001.arrow is damaged: bytes {start} to {end} fail their checksum"):
        recording = open_recording(trial)
    assert isinstance(recording, Recording)
    assert recording.series("layer.0", "mean").steps.tolist() == [0, 1, 2, 4, 5]
    assert [step.number for step in recording.steps] == [0, 1, 2, 3, 4, 5]
    assert np.array_equal(recording.tensor("layer.0", 3), raw_array(3))
    assert recording.samples("layer.0", 3)["mean"].tolist() == measured(3, seed=3).samples["mean"][:4].tolist()
    with pytest.raises(ValueNotKept, match=r"no statistics at step 3. Something is damaged: stats-0001.arrow"):
        recording.statistics("layer.0", 3)
    assert [(problem.file, problem.step) for problem in recording.problems] == [("stats-0001.arrow", 3)]
    assert [(gap.step, gap.reason.startswith("damaged: stats-0001.arrow")) for gap in recording.gaps] == [(3, True)]
    checked = recording.verify()
    assert not checked and len(checked.problems) == 1


def test_the_beginning_of_a_segment_with_its_schema(trial: Path) -> None:
    flip(trial / "rank-0" / "stats-0001.arrow", 30)
    with pytest.warns(DamageWarning):
        recording = open_recording(trial)
    assert recording.series("layer.0", "mean").steps.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("table", ["samples", "units"])
def test_tables_that_are_read_later_are_checked_when_they_are_read(trial: Path, table: str) -> None:
    start, end = span_of(trial, f"{table}-0001.arrow", 2)
    flip(trial / "rank-0" / f"{table}-0001.arrow", (start + end) // 2)
    recording = open_recording(trial)
    option = {"sample": 1} if table == "samples" else {"unit": 1}
    with pytest.warns(DamageWarning, match=f"{table}-0001.arrow"):
        series = recording.series("layer.0", "mean", **option)
    assert series.steps.tolist() == [0, 1, 3, 4, 5]


def test_raw_values(trial: Path) -> None:
    flip(trial / "rank-0" / "raw" / "4-4.safetensors", 140)
    recording = open_recording(trial)
    with (
        pytest.warns(DamageWarning, match="4-4.safetensors is damaged"),
        pytest.raises(ValueNotKept, match=r"no raw values at step 4. Something is damaged: raw/4-4.safetensors"),
    ):
        recording.tensor("layer.0", 4)
    assert np.array_equal(recording.tensor("layer.0", 3), raw_array(3))
    (trial / "rank-0" / "raw" / "5-5.safetensors").unlink()
    with pytest.warns(DamageWarning, match="cannot be opened"), pytest.raises(ValueNotKept):
        recording.tensor("layer.0", 5)


def test_a_step_row(trial: Path) -> None:
    start, end = span_of(trial, "steps-0001.arrow", 2)
    flip(trial / "rank-0" / "steps-0001.arrow", (start + end) // 2)
    with pytest.warns(DamageWarning, match="steps-0001.arrow"):
        recording = open_recording(trial)
    assert [step.number for step in recording.steps] == [0, 1, 3, 4, 5]
    series = recording.series("layer.0", "mean")
    assert series.steps.tolist() == [0, 1, 2, 3, 4, 5] and series.types.tolist().count("") == 1


def test_a_line_of_the_journal_costs_only_its_checksums(trial: Path) -> None:
    """What lies between two commits was committed, too; the rows themselves say which step they are of."""
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for bad in range(1, 7):
        changed = [line[:10] + b"?" + line[11:] if n == bad else line for n, line in enumerate(lines)]
        journal.write_bytes(b"".join(changed))
        with pytest.warns(DamageWarning, match=rf"journal.jsonl is damaged: line {bad + 1} fails its checksum"):
            recording = open_recording(trial)
        check_steps(recording, range(6))
        assert [str(problem) for problem in recording.problems] == [f"journal.jsonl: line {bad + 1} fails its checksum"]
        assert not recording.verify()


def test_a_lost_line_of_a_killed_trial_does_not_show_what_was_never_committed(trial: Path) -> None:
    """The line of step 2 is damaged, and step 5 was written but never committed."""
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], lines[3].replace(b"step", b"stop"), *lines[4:6]]))
    with pytest.warns(DamageWarning, match="line 4 fails its checksum"):
        recording = open_recording(trial)
    assert [step.number for step in recording.steps] == [0, 1, 2, 3, 4]
    assert recording.series("layer.0", "mean").steps.tolist() == [0, 1, 2, 3, 4]
    assert recording.series("layer.0", "mean", sample=1).steps.tolist() == [0, 1, 2, 3, 4]


def test_the_last_line_of_the_journal(trial: Path) -> None:
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b"close", b"chose"))
    with pytest.warns(DamageWarning, match="line 8 fails its checksum"):
        recording = open_recording(trial)
    check_steps(recording, range(6))
    assert not recording.closed


def test_a_lost_journal(trial: Path) -> None:
    (trial / "rank-0" / "journal.jsonl").unlink()
    with pytest.warns(DamageWarning, match="journal.jsonl is damaged: is missing: nothing can be checked"):
        recording = open_recording(trial)
    check_steps(recording, range(6))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null"])
def test_a_damaged_trial_json(trial: Path, text: bytes) -> None:
    (trial / "trial.json").write_bytes(text)
    recording = open_recording(trial)
    check_steps(recording, range(6))
    assert recording.name == "trial" and recording.config == {} and recording.created == 0
    assert "trial.json is damaged" in str(recording.problems[0]) and not recording.verify()


def test_a_lost_trial_json(trial: Path) -> None:
    (trial / "trial.json").unlink()
    recording = open_recording(trial)
    check_steps(recording, range(6))
    assert "trial.json cannot be read" in str(recording.problems[0])


def test_an_edited_trial_json_is_used_and_named(trial: Path) -> None:
    path = trial / "trial.json"
    path.write_text(path.read_text().replace("0.1,", "0.2,").replace('"lr": 0.1', '"lr": 0.2'))
    recording = open_recording(trial)
    assert recording.config == {"lr": 0.2} and "was changed or damaged" in str(recording.problems[0])


def test_a_missing_segment(trial: Path) -> None:
    (trial / "rank-0" / "units-0001.arrow").unlink()
    recording = open_recording(trial)
    with pytest.warns(DamageWarning, match="units-0001.arrow is damaged: cannot be opened"):
        assert len(recording.to_arrow("units")) == 0
    assert recording.series("layer.0", "mean").steps.tolist() == list(range(6))


def test_damage_anywhere_is_found_and_never_crashes(trial: Path, tmp_path: Path) -> None:
    """One flipped bit in any file: `verify` finds it, and what can be read is read."""
    chance = random.Random(0)
    files = sorted(path.relative_to(trial) for path in trial.rglob("*") if path.is_file())
    for number in range(60):
        file = files[number % len(files)]
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(trial, copy)
        size = (copy / file).stat().st_size
        at = chance.randrange(size - 1)  # the newline at the end of a line or document says nothing
        flip(copy / file, at)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            recording = open_recording(copy)
            assert not recording.verify(), (file, at)
            steps = [step.number for step in recording.steps]
            assert len(steps) >= 5
            recording.to_arrow(), recording.to_arrow("samples"), recording.to_arrow("units")
            if recording.nodes:
                assert len(recording.series("layer.0", "mean")) >= 5
        shutil.rmtree(copy)

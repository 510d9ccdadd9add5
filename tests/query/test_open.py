"""`endoscope.open`: one trial, a folder of trials, or an error that helps."""

import json
from pathlib import Path

import pytest

import endoscope
from endoscope.errors import LookupFailed, NewerFormat, NotARecording
from endoscope.query.catalog import Recordings
from endoscope.query.recording import Recording
from endoscope.store.sealed import seal
from tests.house.tree import run_python
from tests.store.made_up import check_steps, write_trial


def test_a_trial_and_a_folder_of_trials(tmp_path: Path) -> None:
    for name in ("b", "a-10", "a-9"):
        write_trial(tmp_path, name, steps=[0, 1])
    (tmp_path / "notes").mkdir()
    assert isinstance(endoscope.open(tmp_path / "b"), Recording)
    trials = endoscope.open(tmp_path)
    assert isinstance(trials, Recordings)
    assert list(trials) == ["a-9", "a-10", "b"] and len(trials) == 3 and "b" in trials
    assert repr(trials) == f"<Recordings in {str(tmp_path)!r}: a-9, a-10, b>"
    check_steps(trials["a-10"], [0, 1])
    assert trials["b"] is trials["b"]
    with pytest.raises(LookupFailed, match=r"There is no trial 'c' in .*\. Nearest: "):
        trials["c"]


def test_new_trials_and_new_steps_after_refresh(tmp_path: Path) -> None:
    from endoscope.store.writer import TrialWriter
    from tests.store.made_up import step_record

    writer = TrialWriter.create(tmp_path, "live")
    trials = endoscope.open(tmp_path)
    assert isinstance(trials, Recordings)
    assert trials["live"].steps == [] and not trials.refresh()
    writer.write_step(step_record(writer, 0))
    write_trial(tmp_path, "second", steps=[0])
    assert list(trials) == ["live"]
    assert trials.refresh()
    assert list(trials) == ["live", "second"] and len(trials["live"].steps) == 1


def test_nothing_there(tmp_path: Path) -> None:
    write_trial(tmp_path, "baseline", steps=[0])
    with pytest.raises(NotARecording, match=r"There is nothing at .*baselin\. Did you mean .*baseline\?"):
        endoscope.open(tmp_path / "baselin")
    with pytest.raises(NotARecording, match=r"There is nothing at .*xyz\. Type the folder that was given to"):
        endoscope.open(tmp_path / "xyz")
    with pytest.raises(NotARecording, match="There is nothing at"):
        endoscope.open(tmp_path / "no" / "such" / "folder")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(NotARecording, match="is empty: nothing has been recorded there yet"):
        endoscope.open(tmp_path)


def test_a_folder_that_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    (tmp_path / "figures").mkdir()
    with pytest.raises(NotARecording, match=r"is no recording: it has no trial\.json, and no folder with one"):
        endoscope.open(tmp_path)


def test_a_file(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=[0])
    with pytest.raises(NotARecording, match=r"trial\.json is a file\. A recording is a folder: .*trial\?"):
        endoscope.open(trial / "trial.json")


def test_a_part_of_a_recording_or_a_folder_above(tmp_path: Path) -> None:
    trial = write_trial(tmp_path / "runs", steps=[0])
    with pytest.raises(NotARecording, match=r"rank-0 is a part of the recording .*trial\. Open that"):
        endoscope.open(trial / "rank-0")
    with pytest.raises(NotARecording, match=r"holds no recording itself, but .*runs does"):
        endoscope.open(tmp_path)


def newer(trial: Path) -> None:
    path = trial / "trial.json"
    document = {name: value for name, value in json.loads(path.read_text()).items() if name != "crc"}
    path.write_bytes(seal(document | {"format": 2}, indent=2))


def test_a_newer_format(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=[0])
    newer(trial)
    with pytest.raises(NewerFormat) as error:
        endoscope.open(trial)
    assert f"was recorded in format 2; this Endoscope ({endoscope.__version__}) reads formats up to 1" in str(
        error.value
    )
    assert "pip install --upgrade endoscope" in str(error.value)


def test_a_newer_format_is_noticed_in_the_journal_too(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=[0])
    (trial / "trial.json").unlink()
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    first = {name: value for name, value in json.loads(lines[0]).items() if name != "crc"}
    journal.write_bytes(b"".join([seal(first | {"format": 3}), *lines[1:]]))
    with pytest.raises(NewerFormat, match="format 3"):
        endoscope.open(trial)


def test_one_newer_trial_does_not_hide_the_others(tmp_path: Path) -> None:
    newer(write_trial(tmp_path, "new", steps=[0]))
    write_trial(tmp_path, "old", steps=[0])
    trials = endoscope.open(tmp_path)
    assert isinstance(trials, Recordings)
    check_steps(trials["old"], [0])
    with pytest.raises(NewerFormat):
        trials["new"]


READING = """
import endoscope
recording = endoscope.open({trial!r})
recording.series("layer.0", "mean"), recording.series("layer.0", "mean", sample=1), recording.tensor("layer.0", 2)
recording.metrics["loss"], recording.steps, recording.gaps, recording.notes, recording.verify(), recording.graph(2)
print(*[name for name in ("torch", "pandas", "duckdb") if name in sys.modules])
recording.sql("select 1"), recording.to_arrow()
print(*[name for name in ("torch",) if name in sys.modules])
"""

WRITING = """
import sys; sys.path.insert(0, {root!r})
from pathlib import Path
from tests.store.made_up import write_trial
write_trial(Path({folder!r}))
print(*[name for name in ("torch", "pandas", "duckdb") if name in sys.modules])
"""


def test_reading_needs_no_torch_and_loads_nothing_else_before_it_is_needed(tmp_path: Path) -> None:
    result = run_python(READING.format(trial=str(write_trial(tmp_path))))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "\n\n"


def test_writing_loads_neither_torch_nor_pandas(tmp_path: Path) -> None:
    from tests.house.tree import ROOT

    result = run_python(WRITING.format(folder=str(tmp_path), root=str(ROOT)))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "\n"

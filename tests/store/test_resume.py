"""A trial is gone on with: after its end, after a crash, after damage. What is there stays as it is."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from endoscope.errors import BadArgument, DamageWarning, StoreError
from endoscope.query.recording import Recording
from endoscope.schema.recording import Key
from endoscope.store.commits.journal import from_line
from endoscope.store.joining import Member
from endoscope.store.limit import upkeep
from endoscope.store.reader import RankReader
from endoscope.store.writer import TrialWriter
from tests.house.tree import ROOT
from tests.store.made_up import check_steps, measured, step_record, write_trial
from tests.store.test_kill import kill, start


def resume(root: Path, **options: Any) -> TrialWriter:
    return TrialWriter.create(root, "trial", resume=True, **options)


def go_on(root: Path, steps: Sequence[int], **options: Any) -> TrialWriter:
    writer = resume(root, **options)
    for number in steps:
        writer.write_step(step_record(writer, number))
    writer.close()
    return writer


def contents_of(trial: Path) -> dict[Path, bytes]:
    files = [path for path in trial.rglob("*") if path.is_file() and path.name != "trial.json"]
    return {path: path.read_bytes() for path in files}


def test_after_its_end(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=range(5))
    before = contents_of(trial)
    recording = Recording(trial)
    created = recording.created
    writer = resume(tmp_path, config={"lr": 0.5, "epochs": 3})
    assert writer.path == trial and writer.next_step == 5
    assert recording.refresh() and not recording.closed
    for number in range(5, 9):
        writer.write_step(step_record(writer, number))
    writer.close()
    for again in (recording, Recording(trial)):
        again.refresh()
        check_steps(again, range(9))
        assert again.closed and again.verify() and again.superseded == []
        assert again.created == created and again.config == {"lr": 0.5, "epochs": 3}
        assert [step.ordinal for step in again.steps] == list(range(9))
    assert all(path.read_bytes().startswith(data) for path, data in before.items())
    assert len(recording.read("keys")) == 3  # the same tensors have the same numbers


def test_what_does_not_exist_is_begun(tmp_path: Path) -> None:
    check_steps(Recording(go_on(tmp_path / "runs", range(3)).path), range(3))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["trial"]


@pytest.mark.parametrize("left", ["nothing", "trial.json", "an empty journal", "a torn line"])
def test_a_crash_at_the_very_beginning(tmp_path: Path, left: str) -> None:
    rank = tmp_path / "trial" / "rank-0"
    rank.mkdir(parents=True)
    if left == "trial.json":
        (tmp_path / "trial" / "trial.json").write_text('{"format": 1, "na')
    elif left != "nothing":
        (rank / "journal.jsonl").write_text("" if left == "an empty journal" else '{"commit":0,"ki')
    trial = go_on(tmp_path, range(3)).path
    recording = Recording(trial)
    check_steps(recording, range(3))
    assert recording.verify() and recording.name == "trial"


def test_a_folder_of_trials_is_none(tmp_path: Path) -> None:
    write_trial(tmp_path / "trial", "inner")
    with pytest.raises(BadArgument, match="is a folder of 1 trial, so it cannot be resumed"):
        resume(tmp_path)


def test_a_lost_journal(tmp_path: Path) -> None:
    trial = write_trial(tmp_path)
    (trial / "rank-0" / "journal.jsonl").unlink()
    before = contents_of(trial)
    with pytest.raises(StoreError, match=r"cannot be resumed: its journal.jsonl is missing"):
        resume(tmp_path)
    assert contents_of(trial) == before


def test_another_rank(tmp_path: Path) -> None:
    write_trial(tmp_path, steps=range(2))
    for _ in range(2):
        writer = resume(tmp_path, member=Member(1, 2, "job"))
        writer.write_step(step_record(writer, writer.next_step))
        writer.close()
    for attempt in range(2):
        reader = RankReader(tmp_path / "trial", 1, attempt)
        reader.refresh()
        assert reader.table("steps")["step"].to_pylist() == [attempt]
    check_steps(Recording(tmp_path / "trial"), range(2))


# ---- who is writing ------------------------------------------------------------------------------


def test_a_trial_that_is_being_written_is_refused(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0))
    before = contents_of(writer.path)
    with pytest.raises(StoreError, match=r"trial is still being written, by another process or by a run of this one"):
        resume(tmp_path, config={"lr": 3})
    assert contents_of(writer.path) == before and Recording(writer.path).config == {}
    writer.write_step(step_record(writer, 1))
    writer.close()
    check_steps(Recording(go_on(tmp_path, [2]).path), range(3))


def test_a_writer_that_is_forgotten_writes_no_more(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 0))
    del writer
    check_steps(Recording(go_on(tmp_path, [1]).path), range(2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_keep_the_trial(tmp_path: Path) -> None:
    """A worker of a data loader that outlives its training, and one that ends before it."""
    writer = TrialWriter.create(tmp_path, "trial")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are other threads
        child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        with pytest.raises(StoreError, match="still being written"):
            resume(tmp_path)
        writer.close()
        resume(tmp_path).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ---- crashes -------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
@pytest.mark.parametrize("max_bytes", [0, 300_000])
def test_killed_and_resumed_again_and_again(tmp_path: Path, max_bytes: int) -> None:
    chance = random.Random(3)
    ordinals: set[int] = set()
    for _ in range(4):
        process, trial = start(tmp_path, str(max_bytes), "resume")
        try:
            with pytest.raises(StoreError, match="still being written"):
                resume(tmp_path)
            time.sleep(chance.uniform(0.1, 0.5))
        finally:
            last = kill(process)
        assert trial.name == "trial"
        recording = Recording(trial)
        assert recording.verify() and not recording.closed
        numbers = [step.number for step in recording.steps]
        assert numbers[-1] >= last and numbers == sorted(set(numbers)) and numbers[0] == 0
        assert max_bytes or numbers == list(range(len(numbers)))
        ordinals = {step.ordinal for step in recording.steps}
        for number in numbers:
            assert recording.statistics("layer.1", number)["std"] == measured(3, seed=number).whole["std"][1]
    writer = resume(tmp_path, max_bytes=max_bytes or None)
    end = writer.next_step
    assert max(ordinals) < writer._ordinal
    writer.write_step(step_record(writer, end))
    writer.close()
    recording = Recording(tmp_path / "trial")
    assert recording.verify() and recording.closed and recording.steps[-1].number == end
    if max_bytes:
        assert sum(path.stat().st_size for path in recording.path.rglob("*") if path.is_file()) <= max_bytes
    else:
        check_steps(recording, range(end + 1))


def test_what_was_never_committed_is_cut_off(tmp_path: Path) -> None:
    """The crash came between the data and the journal's line, with files that no line names."""
    trial = write_trial(tmp_path, steps=range(4))
    rank = trial / "rank-0"
    journal = rank / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:30])  # steps 0 to 2
    ends = from_line(lines[3])
    assert ends is not None
    (rank / "raw" / "9-9.safetensors.unfinished").write_bytes(b"abc")
    (rank / "stats-0002.arrow").write_bytes(b"begun")
    (rank / "mine.txt").write_text("not Endoscope's")
    writer = resume(tmp_path)
    assert writer.next_step == 3
    assert {name: (rank / name).stat().st_size for name in ends.files} == {n: s.end for n, s in ends.files.items()}
    assert not (rank / "raw" / "3-3.safetensors").exists() and not list(rank.rglob("*.unfinished"))
    assert (rank / "mine.txt").exists()
    for number in (3, 4):
        writer.write_step(step_record(writer, number))
    writer.close()
    recording = Recording(trial)
    check_steps(recording, range(5))
    assert recording.verify()


def test_steps_that_were_thinned_by_half_when_the_process_died(tmp_path: Path) -> None:
    """The journal says that step 1 has gone, and its rows of one table have; the others follow now."""
    writer = TrialWriter.create(tmp_path, "trial", max_bytes=200_000)
    for number in range(6):
        writer.write_step(step_record(writer, number))
    writer._upkeep.drop_steps("steps", {1}, {"stats": [1]})
    del writer
    again = go_on(tmp_path, [6], max_bytes=200_000)
    recording = Recording(again.path)
    assert [step.number for step in recording.steps] == [0, 2, 3, 4, 5, 6] and recording.verify()
    for table in ("stats", "samples", "units"):
        assert 1 not in recording._reader.table(table)["ordinal"].to_pylist()


# ---- damage --------------------------------------------------------------------------------------


def test_damage_costs_what_is_damaged(tmp_path: Path) -> None:
    """A line of the journal, or some bytes of any file: the trial can be resumed, and what is new is right."""
    chance = random.Random(1)
    trial = write_trial(tmp_path / "first", steps=range(6))
    files = sorted(path.relative_to(trial) for path in trial.rglob("*") if path.is_file())
    for number in range(3 * len(files)):
        root = tmp_path / str(number)
        shutil.copytree(trial, root / "trial")
        path = root / "trial" / files[number % len(files)]
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data) - 1)] ^= 0xFF
        path.write_bytes(bytes(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            sizes = {path: path.stat().st_size for path in (root / "trial" / "rank-0").glob("*.arrow")}
            writer = go_on(root, [6, 7])
            assert all(path.stat().st_size >= size for path, size in sizes.items())
            recording = Recording(writer.path)
            there = [step.number for step in recording.steps]
            assert there[-2:] == [6, 7] and len(there) >= 7 and len(set(there)) == len(there)
            assert len({step.ordinal for step in recording.steps}) == len(there)
            for step in (6, 7):
                found = recording.statistics("layer.1", step)
                assert found["std"] == measured(3, seed=step).whole["std"][1], path
            assert path.name == "trial.json" or not recording.verify()  # the damage can still be found


def test_a_lost_line_in_the_middle_of_a_resumed_trial(tmp_path: Path) -> None:
    trial = write_trial(tmp_path, steps=range(3))
    go_on(tmp_path, range(3, 6))
    journal = trial / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for bad in (2, len(lines) - 3):
        journal.write_bytes(b"".join(b"?" + line[1:] if n == bad else line for n, line in enumerate(lines)))
        with pytest.warns(DamageWarning):
            check_steps(Recording(trial), range(6))
        root = tmp_path / str(bad)
        shutil.copytree(trial, root / "trial")
        writer = go_on(root, [6, 7])
        with pytest.warns(DamageWarning):
            check_steps(Recording(writer.path), range(8))


# ---- the books of a trial that was resumed --------------------------------------------------------


def test_an_old_recording_with_fewer_columns(tmp_path: Path) -> None:
    """Its rows keep their own schema when steps are thinned and metrics are merged."""
    shutil.copytree(ROOT / "tests" / "golden" / "recordings" / "format-1" / "thinned", tmp_path / "trial")
    old = Recording(tmp_path / "trial")
    known = [step.number for step in old.steps]
    segment = next((tmp_path / "trial" / "rank-0").glob("steps-*.arrow"))
    assert "iteration" not in pa.ipc.read_schema(pa.py_buffer(segment.read_bytes())).names
    writer = resume(tmp_path, max_bytes=150_000)
    assert writer.next_step == known[-1] + 1
    for number in range(writer.next_step, 60):
        writer.write_step(step_record(writer, number, iteration=number))
    writer.close()
    recording = Recording(tmp_path / "trial")
    assert recording.verify() and recording.problems == []
    numbers = [step.number for step in recording.steps]
    assert numbers[0] == 0 and numbers[-1] == 59 and len(numbers) < 60
    assert [step.iteration for step in recording.steps] == [n if n > known[-1] else -1 for n in numbers]
    assert recording.series("layer.1", "std").values.tolist() == [measured(3, seed=n).whole["std"][1] for n in numbers]
    assert recording.metrics["loss"].steps.tolist() == list(range(60))


def test_the_limit_holds_for_all_sessions_together(tmp_path: Path) -> None:
    limit = 150_000
    for session in range(4):
        writer = resume(tmp_path, max_bytes=limit)
        assert writer.next_step == 30 * session
        for number in range(30 * session, 30 * session + 30):
            writer.write_step(step_record(writer, number))
            assert sum(path.stat().st_size for path in writer.path.rglob("*") if path.is_file()) <= limit
        writer.close()
    recording = Recording(tmp_path / "trial")
    assert recording.verify() and recording.steps[0].number == 0 and recording.steps[-1].number == 119
    assert recording.metrics["loss"].steps.tolist() == list(range(120))


def test_a_journal_that_is_written_anew_and_rows_that_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_MOST_CHUNKS", 5)
    monkeypatch.setattr(upkeep, "_MOST_STALE_LINES", 10)
    for session in range(3):
        writer = resume(tmp_path)
        recording = Recording(writer.path)
        for number in range(20 * session, 20 * session + 20):
            writer.write_step(step_record(writer, number))
            writer.write_note(number, 0.0, f"note {number}")
            writer.commit()
            recording.refresh()
            check_steps(recording, range(number + 1))
        writer.close()
    for again in (recording, Recording(recording.path)):
        again.refresh()
        assert [note.text for note in again.notes] == [f"note {number}" for number in range(60)]
        check_steps(again, range(60))
        assert again.verify() and again.closed
    assert len((recording.path / "rank-0" / "journal.jsonl").read_bytes().splitlines()) < 150


def test_keys_go_on(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for name in "abc":
        writer.key_id(Key(name, shape=(2, 3)))
    writer.close()
    writer = resume(tmp_path)
    assert [writer.key_id(Key(name, shape=(2, 3))) for name in "bdc"] == [1, 3, 2]
    writer.close()
    assert Recording(writer.path).read("keys")["node"].to_pylist() == ["a", "b", "c", "d"]


def test_steps_are_numbered_behind_metrics_of_steps_that_were_not_recorded(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    writer.write_step(step_record(writer, 4))
    writer.write_metrics(17, "train", 0.0, {"loss": 1.0})
    writer.close()
    assert resume(tmp_path).next_step == 18


RUN = """
import sys
sys.path[:0] = [{src!r}, {root!r}]
import torch, endoscope
from tests.contract.recording.helpers import batches, mlp, plain_step, sgd
model = mlp()
optimizer = sgd(model)
run = endoscope.Run({folder!r}, trial="x", when=1, resume=True)
run.watch(model, optimizer)
for number, (x, y) in enumerate(batches(1000)):
    run.metric("mean", plain_step(model, optimizer, x, y))
    if number == 12:
        run.flush()
        print(run.path, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_a_run_that_is_killed_and_resumed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = RUN.format(src=str(ROOT / "src"), root=str(ROOT), folder=str(tmp_path))
    last = -1
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert Path(process.stdout.readline().strip()).name == "x"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        recording = Recording(tmp_path / "x")
        numbers = [step.number for step in recording.steps]
        assert numbers == list(range(len(numbers))) and numbers[-1] >= last + 12 and recording.verify()
        last = numbers[-1]
    sessions = [json.loads(line) for line in (tmp_path / "x" / "rank-0" / "journal.jsonl").read_text().splitlines()]
    assert sum(line["kind"] == "resume" for line in sessions) == 1

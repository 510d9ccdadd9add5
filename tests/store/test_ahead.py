"""Checksums that were compared beside are not compared again, and nothing damaged passes as good."""

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from endoscope.errors import DamageWarning
from endoscope.query.open import look
from endoscope.query.recording import Recording
from endoscope.store import ahead as looking_ahead
from endoscope.store.ahead import Ahead, check
from endoscope.store.reader import RankReader
from endoscope.store.writer import TrialWriter
from tests.store.made_up import check_steps, step_record, write_trial
from tests.store.test_damage import flip, span_of


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return write_trial(tmp_path, steps=range(6))


def wait(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


def quiet(trial: Path, ahead: Ahead | None) -> Recording:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        found = look(trial, ahead)
        assert isinstance(found, Recording)
    found._reader._is_quiet = True
    return found


def test_a_recording_begun_ahead_is_the_same(trial: Path) -> None:
    recording = quiet(trial, Ahead(trial))
    check_steps(recording, range(6))
    assert recording.series("layer.0", "mean").values.tolist() == (
        Recording(trial).series("layer.0", "mean").values.tolist()
    )
    assert not recording.problems


def test_what_was_checked_ahead_is_not_checked_again(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = Ahead(trial)
    reader = RankReader(trial, ahead=ahead)
    wait(lambda: set(reader.contents.chunks["stats"]) <= ahead.verified)
    monkeypatch.setattr("endoscope.store.reader.zlib.crc32", lambda data: pytest.fail("compared twice"))
    assert len(reader.batches("stats")) == 6


@pytest.mark.parametrize("table", ["stats", "steps"])
def test_damage_is_met_by_the_reader(trial: Path, table: str) -> None:
    _, end = span_of(trial, f"{table}-0001.arrow", 3)
    flip(trial / "rank-0" / f"{table}-0001.arrow", end - 9)
    recording = quiet(trial, Ahead(trial))
    assert 3 in {problem.step for problem in recording.verify().problems}
    recording = quiet(trial, Ahead(trial))
    assert len(recording._reader.batches(table)) == 5
    assert [(problem.file, problem.step) for problem in recording.problems] == [(f"{table}-0001.arrow", 3)]


@pytest.mark.parametrize("damage", ["a line", "all of it", "no journal"])
def test_a_damaged_journal_is_left_to_the_reader(trial: Path, damage: str) -> None:
    journal = trial / "rank-0" / "journal.jsonl"
    if damage == "no journal":
        journal.unlink()
    else:
        flip(journal, 400) if damage == "a line" else journal.write_bytes(b"\0" * 5000 + b"\n")
    ahead = Ahead(trial)
    assert ahead.take() is None
    recording, alone = quiet(trial, Ahead(trial)), quiet(trial, None)
    assert recording.problems == alone.problems and recording.steps == alone.steps


def test_a_trial_that_grows_meanwhile(tmp_path: Path) -> None:
    writer = TrialWriter.create(tmp_path, "trial")
    for number in range(3):
        writer.write_step(step_record(writer, number))
    ahead = Ahead(writer.path)
    wait(ahead._is_read.is_set)
    writer.write_step(step_record(writer, 3))
    check_steps(quiet(writer.path, ahead), range(4))
    writer.close()


def test_tables_are_checked_beside(trial: Path) -> None:
    reader = RankReader(trial)
    reader.refresh()
    reader.check_ahead("units")
    assert set(reader.contents.chunks["units"]) <= reader._verified
    assert not set(reader.contents.chunks["samples"]) & reader._verified


def test_a_file_that_leads_out_or_has_gone_is_left_alone(trial: Path) -> None:
    reader = RankReader(trial)
    reader.refresh()
    chunk = reader.contents.chunks["stats"][0]
    (trial / "rank-0" / "stats-0001.arrow").rename(trial / "elsewhere.arrow")
    verified: looking_ahead.Verified = set()
    check(trial / "rank-0", [chunk, type(chunk)("../elsewhere.arrow", chunk.start, chunk.end, chunk.crc)], verified)
    assert not verified

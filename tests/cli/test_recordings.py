"""`endoscope ls`, `endoscope query`, `endoscope rm`."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from endoscope.cli import main
from endoscope.cli.table import format_table, human_bytes
from tests.query.small_recording import write_small_recording
from tests.store.made_up import measured, step_record, write_trial


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_small_recording(tmp_path, "first")
    write_small_recording(tmp_path, "second")
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main([str(word) for word in arguments]) == 0
    return capsys.readouterr().out


def test_ls_lists_trials(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "ls", runs).splitlines()
    assert lines[0].split() == "trial started state recorded steps last step types nodes size".split()
    assert [line.split()[0] for line in lines[2:]] == ["first", "second"]
    assert "finished" in lines[2] and "train, rare" in lines[2] and lines[2].rstrip().endswith("kB")
    assert shown(capsys, "ls", runs / "second").splitlines()[2].startswith("second")


def test_ls_says_whether_a_trial_runs_and_what_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from endoscope.store.writer import TrialWriter

    writer = TrialWriter.create(tmp_path, "live")
    writer.write_step(step_record(writer, 0))
    damaged = write_trial(tmp_path, "torn", steps=range(3))
    steps = damaged / "rank-0" / "steps-0001.arrow"
    steps.write_bytes(steps.read_bytes()[:-1])
    text = shown(capsys, "ls", tmp_path)
    assert "running" in text and "Damaged (the rest can be read):" in text and "steps-0001.arrow: ends at byte" in text


def test_ls_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(tmp_path)]) == 1
    assert "is empty: nothing has been recorded there yet" in capsys.readouterr().err


def test_query_prints_a_table(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "query", runs, "select trial, count(*) as n from steps group by trial order by trial")
    assert text == "trial   n\n------  -\nfirst   5\nsecond  5\n"


def test_query_as_json_and_csv(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select step, type, why from steps order by ordinal limit 2"
    rows = json.loads(shown(capsys, "query", runs / "first", query, "--json"))
    assert rows == [{"step": 0, "type": "train", "why": "every(1)"}, {"step": 1, "type": "rare", "why": "every(1)"}]
    found = list(csv.reader(io.StringIO(shown(capsys, "query", runs / "first", query, "--csv"))))
    assert found == [["step", "type", "why"], ["0", "train", "every(1)"], ["1", "rare", "every(1)"]]


def test_json_has_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from endoscope.store.writer import TrialWriter

    writer = TrialWriter.create(tmp_path, "trial")
    numbers = measured(3)
    numbers.whole["mean"] = np.array([np.nan, np.inf, 1.5])
    writer.write_step(step_record(writer, 0, measured=numbers))
    text = shown(capsys, "query", writer.path, "select mean, shape from stats order by key", "--json")
    strict = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert strict == [{"mean": None, "shape": [4, 3]}, {"mean": "inf", "shape": [4, 3]}, {"mean": 1.5, "shape": [3, 3]}]


def test_a_query_with_a_mistake_is_one_message(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(runs), "select nothing from stats"]) == 1
    assert capsys.readouterr().err.startswith("endoscope: The query cannot be answered:")


def test_rm_asks(runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    questions = []

    def answer(reply: str) -> None:
        monkeypatch.setattr("builtins.input", lambda question: questions.append(question) or reply)

    answer("n")
    assert main(["rm", str(runs / "first")]) == 1
    assert (runs / "first" / "trial.json").exists() and "was kept" in capsys.readouterr().out
    answer("y")
    assert main(["rm", str(runs / "first")]) == 0
    assert not (runs / "first").exists() and (runs / "second").exists()
    assert questions[0].startswith(f"Delete the trial {runs / 'first'} (") and "[y/N]" in questions[0]


def test_rm_without_somebody_to_ask(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    assert main(["rm", str(runs / "first")]) == 1
    assert "Add --yes" in capsys.readouterr().err and (runs / "first").exists()


def test_rm_several_without_asking(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "second" / "mine.txt").write_text("x")
    text = shown(capsys, "rm", runs / "first", runs / "second", "--yes")
    assert "first was deleted." in text and "except for files that Endoscope did not write" in text
    assert [path.name for path in runs.rglob("*") if path.is_file()] == ["mine.txt"]


def test_rm_looks_at_everything_before_it_deletes_anything(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rm", str(runs / "first"), str(runs), "--yes"]) == 1
    assert "is a folder of 2 trials" in capsys.readouterr().err and (runs / "first").exists()


def test_tables_are_aligned() -> None:
    text = format_table(["name", "n"], [["a", 1], ["long name", 22], [None, 3]])
    assert text == "name        n\n---------  --\na           1\nlong name  22\n            3"
    assert format_table(["a"], []) == "a\n-"
    assert "…" in format_table(["a"], [["x" * 100]]) and "0.333333" in format_table(["a"], [[1 / 3]])


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (3e12, "3.0 TB")]
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert human_bytes(size) == text


def test_a_file_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").touch()
    assert main(["ls", str(tmp_path / "train.py")]) == 1
    assert "train.py is a file, and a recording is a folder. Type the folder that was" in capsys.readouterr().err


def test_silencing_in_a_folder_with_one_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = write_trial(tmp_path, "only", steps=range(3))
    assert f"plateau will not be reported any more, in {trial / 'findings.json'}" in shown(
        capsys, "check", tmp_path, "--silence", "plateau"
    )
    assert main(["check", str(tmp_path), "--silence", "no_such_check"]) == 3
    assert (
        "There is no check 'no_such_check'" in (error := capsys.readouterr().err)
        and "`endoscope check --list`" in error
    )
    write_trial(tmp_path, "another", steps=range(3))
    assert main(["check", str(tmp_path), "--silence", "plateau"]) == 3
    assert "is a folder of 2 trials" in capsys.readouterr().err


def test_ls_says_how_long_ago_a_trial_ended_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    from endoscope.store.writer import TrialWriter

    writer = TrialWriter.create(tmp_path / "runs", "live")
    writer.write_step(step_record(writer, 0))
    shutil.copytree(writer.path, tmp_path / "runs" / "killed")  # nobody holds the lock of a copy
    killed, live = shown(capsys, "ls", tmp_path / "runs").splitlines()[2:]
    assert re.search(r"killed .* ended early, \d+ s ago ", killed) and " running " in live

"""`endoscope check`: text, JSON, exit codes, silencing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import endoscope
from endoscope.cli import main
from tests.findings import incomplete
from tests.findings.planted import dying_relu
from tests.findings.runs import classifier, curve, train


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return dying_relu(tmp_path_factory.mktemp("dead"))


def test_errors_are_exit_code_2(dead: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(dead)]) == 2
    text = capsys.readouterr().out
    assert "1. ERROR  `1`: 100% of 16 units are zero for every sample   [dead_units]" in text
    assert "try: " in text and "source: " in text and text.count("cause? ") == 1
    assert main(["check", str(dead), "-v"]) == 2
    text = capsys.readouterr().out
    assert "1. ERROR  `1`: 100% of 16 units are zero for every sample   [dead_units, trial]" in text
    assert "seen: steps 0 to 11" in text and "try: " in text and "cause? " in text and "source: " in text


def test_warnings_are_exit_code_1(tmp_path: Path) -> None:
    path = curve(tmp_path, [1.0 + 0.6 * (-1) ** number for number in range(40)])
    assert main(["check", str(path)]) == 1


def test_nothing_is_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = classifier()
    path = train(tmp_path, model, optimizer=torch.optim.Adam(model.parameters(), lr=0.003))
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"Nothing looks wrong in {path}, over 24 recorded steps.\n"
    train(tmp_path, classifier(), steps=6)
    assert main(["check", str(tmp_path)]) == 0
    assert "over 30 recorded steps of 2 trials." in capsys.readouterr().out


def test_no_recording_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "nothing")]) == 3
    assert "There is nothing at" in capsys.readouterr().err
    assert main(["check", str(tmp_path), "--only", "no such check"]) == 3


def test_json_has_every_attribute(dead: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(dead.parent), "--trial", "trial", "--json"]) == 2
    first = json.loads(capsys.readouterr().out)[0]
    assert first["check"] == "dead_units" and first["node"] == "1" and first["value"] == 1.0
    names = "check severity node role first_step last_step types samples value threshold source causes remedies link"
    assert set(names.split()) <= set(first)


def test_silencing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dying_relu(tmp_path)
    assert main(["check", str(path), "--silence", "dead_units@1", "--silence", "zero_gradient"]) == 0
    assert "dead_units will not be reported any more at 1" in capsys.readouterr().out
    main(["check", str(path), "--json"])
    left = {finding["check"] for finding in json.loads(capsys.readouterr().out)}
    assert not left & {"dead_units", "zero_gradient"}


def test_the_list_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == 0
    text = capsys.readouterr().out
    assert "dead_units" in text and "share = 0.7" in text


# ---- what cannot be judged -----------------------------------------------------------------------


def test_no_steps_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = incomplete.never_called(tmp_path)
    for more in ([], ["--only", "dead_units"], ["--json"]):
        assert main(["check", str(path), *more]) == 3
        text = capsys.readouterr().out
        assert "no_steps" in text and "with run.step():" in text
        assert "Nothing looks wrong" not in text and "seen: step" not in text


def test_a_trial_without_steps_beside_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incomplete.never_called(tmp_path)
    dying_relu(tmp_path)
    assert main(["check", str(tmp_path)]) == 3
    text = capsys.readouterr().out
    assert "[no_steps, trial]" in text and "[dead_units]" in text and "trial-2: " in text


def test_a_trial_that_has_just_begun_is_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = endoscope.Run(tmp_path)
    run.flush()
    code = main(["check", str(tmp_path)])
    run.close()
    text = capsys.readouterr().out
    assert code == 0 and "still running" in text and "Nothing looks wrong" not in text


def test_a_trial_that_was_not_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = endoscope.Run(tmp_path)
    for number in range(3):
        with run.step() as step:
            step.metric("loss", 1.0 / (1 + number))
    run.flush()
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("over 3 recorded steps. Still running: trial.\n")
    killed = shutil.copytree(run.path, tmp_path / "elsewhere" / "trial")  # nobody holds the lock of a copy
    run.close()
    assert main(["check", str(killed)]) == 0
    assert "Ended early: trial; what came after" in capsys.readouterr().out


def test_lost_steps_are_an_error_with_one_line_about_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = incomplete.slow_disk(tmp_path)
    for more in ([], ["--only", "dead_units"]):
        assert main(["check", str(path), *more]) == 2
        text = capsys.readouterr().out
        assert "most steps are missing   [lost_steps]" in text and "Nothing looks wrong" not in text
        assert [line for line in text.splitlines() if line.startswith("Gaps")] == [
            "Gaps: 30 × step … was left out: the queue to the writer was full. "
            f"See `endoscope.open({str(path)!r}).gaps`."
        ]


def test_a_silenced_lack_is_no_praise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = incomplete.never_called(tmp_path)
    main(["check", str(path), "--silence", "no_steps"])
    capsys.readouterr()
    assert main(["check", str(path)]) == 0
    text = capsys.readouterr().out
    assert "Nothing looks wrong" not in text and "Silenced: no step was recorded (no_steps, trial)" in text


def test_few_gaps_are_told_and_are_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    train(tmp_path, model, optimizer=optimizer)
    with incomplete.quietly(tmp_path) as run:
        run.watch(classifier())
        with run.step() as step:
            step.metric("odd", "no number")
        for reason in ("a" * 100, "b", "c", "d"):
            run._gap("", reason)
    main(["check", str(tmp_path)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Gaps")]
    assert line.startswith("Gaps in trial-2: 1 × ") and "2 other reasons" in line and "aaa…" in line

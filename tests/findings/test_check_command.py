"""`endoscope check`: text, JSON, exit codes, silencing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from endoscope.cli import main
from tests.findings.planted import dying_relu
from tests.findings.runs import classifier, curve, train


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return dying_relu(tmp_path_factory.mktemp("dead"))


def test_errors_are_exit_code_2(dead: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(dead)]) == 2
    text = capsys.readouterr().out
    assert "1. ERROR  dead units at 1   [dead_units, trial]" in text
    assert "seen: steps 0 to 11" in text and "try: " in text and "cause? " in text and "source: " in text


def test_warnings_are_exit_code_1(tmp_path: Path) -> None:
    path = curve(tmp_path, [1.0 + 0.6 * (-1) ** number for number in range(40)])
    assert main(["check", str(path)]) == 1


def test_nothing_is_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = classifier()
    path = train(tmp_path, model, optimizer=torch.optim.Adam(model.parameters(), lr=0.003))
    assert main(["check", str(path)]) == 0
    assert "Nothing looks wrong" in capsys.readouterr().out


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
    assert "dead_units is silent from now on at 1" in capsys.readouterr().out
    main(["check", str(path), "--json"])
    left = {finding["check"] for finding in json.loads(capsys.readouterr().out)}
    assert not left & {"dead_units", "zero_gradient"}


def test_the_list_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == 0
    text = capsys.readouterr().out
    assert "dead_units" in text and "share = 0.5" in text

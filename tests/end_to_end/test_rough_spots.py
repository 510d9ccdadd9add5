"""What newcomers stumbled over: each mistake gets a sentence that says what to type."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import endoscope
from endoscope import cli
from endoscope.cli import commands
from endoscope.errors import BadArgument
from endoscope.query.recording import Recording
from tests.house.tree import ROOT


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(tmp_path / "runs")
    run.watch(model, optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,))).backward()
        optimizer.step()
    run.close()
    return tmp_path / "runs"


def typed(*words: str | Path) -> int:
    try:
        return cli.main([str(word) for word in words])
    except SystemExit as error:
        return int(str(error.code))


@pytest.mark.parametrize("command", ["ls", "show", "check"])
def test_a_script_instead_of_a_folder(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("")
    assert typed(command, tmp_path / "train.py") in (1, 2, 3)
    assert "train.py is a file, and a recording is a folder. Type the folder" in capsys.readouterr().err


def test_an_unknown_check_names_the_command_that_lists_them(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("check", runs, "--silence", "dead_unit") in (1, 2, 3)
    said = capsys.readouterr().err
    assert "There is no check 'dead_unit'" in said and "`endoscope check --list`" in said and ".md" not in said


def test_a_check_is_silenced_in_the_only_trial_of_a_folder(runs: Path) -> None:
    assert typed("check", runs, "--silence", "dead_units") == 0
    assert "dead_units" in (runs / "trial" / "findings.json").read_text()


def test_one_trial_is_no_plural(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed("rm", runs)
    assert not re.search(r"\b1 trials", "".join(capsys.readouterr()))


def test_a_wrong_shape_is_said_to_be_the_error_of_the_model() -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        endoscope.trace(nn.Sequential(nn.Linear(4, 8)), torch.rand(2, 5))
    (note,) = caught.value.__notes__
    assert note.startswith("Sequential raised this itself; without endoscope.trace it does the same. ")
    assert note.endswith("Shapes of its arguments: 0: (2, 5).")


def test_the_line_is_that_of_the_model_and_not_of_endoscope() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    with pytest.raises(RuntimeError) as caught:
        endoscope.trace(forward, torch.rand(2, 5))
    assert re.search(rf"test_rough_spots.py:{forward.__code__.co_firstlineno + 1} in ", caught.value.__notes__[0])


@pytest.mark.parametrize("what", ["statistics", "histogram", "tensor", "samples", "units", "spectrum"])
def test_a_step_that_was_not_given(what: str, runs: Path) -> None:
    recording = endoscope.open(runs / "trial")
    with pytest.raises(BadArgument, match=re.escape("step=2. Recorded are 3 steps from 0 to 2.")):
        getattr(recording, what)("output")


def test_methods_and_attributes_that_are_mixed_up(runs: Path) -> None:
    recording = endoscope.open(runs / "trial")
    assert isinstance(recording, Recording)
    with pytest.raises(BadArgument, match="step=2"):
        recording.graph()
    with pytest.raises(BadArgument, match=r"recording.metrics\['lr'\]"):
        recording.metrics("lr")


def test_every_command_stands_in_the_table_of_commands() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| \[`endoscope (\w+)`\]", page, re.MULTILINE))
    assert table == set(commands.COMMANDS)

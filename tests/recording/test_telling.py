"""What a run says by itself: where it records, and whatever went wrong, at once and at the end."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import RecordingWarning
from endoscope.recording.telling import shortest
from tests.house.tree import SRC


def loop(model: nn.Module, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,))).backward()
        optimizer.step()


def test_where_it_records_and_how_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(tmp_path, trial="nb")
    begun, path = capsys.readouterr().err, shortest(str(run.path))
    assert begun == f"Endoscope: recording into {run.path}. To look at it:  endoscope show {shortest(str(tmp_path))}\n"
    run.watch(model, optimizer)
    loop(model, optimizer, 3)
    run.close()
    summary, found, commands = capsys.readouterr().err.splitlines()
    assert summary.startswith("Endoscope: 3 steps, 3 recorded, ") and "B, no gaps: " in summary
    assert found == "Endoscope: no error and no warning was found in what was recorded."
    assert commands == f"Endoscope: what looks wrong:  endoscope check {path}    the page:  endoscope show {path}"


def test_a_name_that_is_taken_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endoscope.Run(tmp_path, trial="nb").close()
    capsys.readouterr()
    endoscope.Run(tmp_path, trial="nb").close()
    assert f"recording into {tmp_path / 'nb-2'} as nb-2, because there is a nb already." in capsys.readouterr().err
    endoscope.Run(tmp_path, trial="nb", resume=True).close()
    assert f"recording into {tmp_path / 'nb'}. " in capsys.readouterr().err


def test_no_model_was_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with endoscope.Run(tmp_path) as run:
        run.metric("loss", 1.0)
    assert "no model was watched" in capsys.readouterr().err
    with endoscope.Run(tmp_path) as run, run.step() as step:  # tensors of plain functions need none
        step.tag("mine", torch.ones(3))
    assert "no model was watched" not in capsys.readouterr().err


def test_an_optimizer_that_trains_an_unwatched_model_is_said_at_once(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(tmp_path)
    with pytest.warns(RecordingWarning, match="SGD has made 3 updates, but no model is watched. Call run.watch"):
        loop(model, optimizer, 3)
    run.watch(model, optimizer)
    loop(model, optimizer, 2)
    run.close()
    assert len(endoscope.open(run.path).steps) == 2


def test_several_runs_never_raise_into_the_training(tmp_path: Path) -> None:
    """torch goes through its hooks while ours are called: none may be taken off meanwhile."""
    model, optimizer = nn.Linear(4, 3), torch.optim.Adam(nn.Linear(4, 3).parameters())
    runs = [endoscope.Run(tmp_path) for _ in range(3)]
    runs[1].watch(model)
    with pytest.warns(RecordingWarning):
        loop(model, optimizer, 8)
    for run in runs:
        run.close()
    assert len(endoscope.open(runs[1].path).steps) > 3


def test_steps_that_are_said_by_hand_need_no_model(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path) as run:
        for _ in range(5):
            with run.step() as step:
                step.tag("mine", torch.ones(3))
                loop(model, optimizer, 1)
    assert not [one for one in recwarn.list if issubclass(one.category, RecordingWarning)]


def test_no_step_was_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with endoscope.Run(tmp_path) as run:
        run.watch(nn.Linear(4, 3))
    assert "no training step was recorded. A step begins when" in capsys.readouterr().err


def test_the_optimizer_of_another_model_is_said_at_once_and_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, optimizer = nn.Linear(4, 3), torch.optim.Adam(nn.Linear(4, 3).parameters())
    run = endoscope.Run(tmp_path)
    run.watch(model, optimizer)
    with pytest.warns(RecordingWarning, match="Adam holds none of the parameters of Linear"):
        loop(model, optimizer, 1)
    loop(model, optimizer, 5)
    run.close()
    assert "Adam holds none of the parameters of Linear" in capsys.readouterr().err
    assert endoscope.diagnose(run.path)[0].check == "unchanged_parameters"


def test_also_where_the_optimizer_was_not_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is seen by what it does; from then on its updates end the steps."""
    model, optimizer = nn.Linear(4, 3), torch.optim.Adam(nn.Linear(4, 3).parameters())
    run = endoscope.Run(tmp_path, when=1)
    run.watch(model)
    with pytest.warns(RecordingWarning, match="Adam holds none of the parameters of Linear"):
        loop(model, optimizer, 3)
    loop(model, optimizer, 10)
    run.close()
    assert "Adam holds none of the parameters of Linear" in capsys.readouterr().err
    recording = endoscope.open(run.path)
    assert [step.passes for step in recording.steps] == [4, *[1] * 9]
    assert endoscope.diagnose(run.path)[0].check == "unchanged_parameters"


def test_a_model_that_is_not_watched_may_have_its_own_optimizer(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, capsys: pytest.CaptureFixture[str]
) -> None:
    generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
    ours, others = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (generator, critic))
    run = endoscope.Run(tmp_path)
    run.watch(generator)
    for _ in range(8):
        critic(generator(torch.randn(8, 2))).mean().backward()
        others.step()
        ours.step()
    run.close()
    assert not recwarn.list and "holds none" not in capsys.readouterr().err
    assert len(endoscope.open(run.path).steps) == 8


def test_a_model_whose_parameters_come_later_has_its_optimizer(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    model = nn.LazyLinear(3)
    run = endoscope.Run(tmp_path)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.watch(model, optimizer)
    loop(model, optimizer, 2)
    run.close()
    assert not [one for one in recwarn.list if issubclass(one.category, RecordingWarning)]


def test_what_looks_wrong_is_said_in_one_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3))
    with endoscope.Run(tmp_path, when=1) as run:
        run.watch(model)
        loop(model, torch.optim.SGD(model.parameters(), lr=1e20), 4)
    said = capsys.readouterr().err.splitlines()
    place = said.index("Endoscope: this looks wrong:")
    assert any(re.match(r"    ERROR  `.+`: .*(NaN|infinity)", line) for line in said[place:])
    assert said[-1].startswith("Endoscope: what looks wrong:  endoscope check ")


def test_steps_that_were_left_out_are_counted_and_the_way_to_have_them_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.Linear(4, 3)
    with endoscope.Run(tmp_path, when=endoscope.policies.first(2), budget=1.0) as run:
        run.watch(model)
        loop(model, torch.optim.SGD(model.parameters(), lr=0.1), 10)
    said = capsys.readouterr().err
    assert re.search(r"\d+ of 10 steps were not recorded: `when` and a budget of 100 % of the", said)


def test_whoever_chose_the_steps_without_a_budget_is_told_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.Linear(4, 3)
    with endoscope.Run(tmp_path, when=endoscope.policies.first(2)) as run:
        run.watch(model)
        loop(model, torch.optim.SGD(model.parameters(), lr=0.1), 10)
    assert "were not recorded" not in capsys.readouterr().err


CRASH = """
import sys, endoscope
run = endoscope.Run(sys.argv[1], trial="nb")
if "metric" in sys.argv:
    run.metric("loss", 1.0)
if "block" in sys.argv:
    with run:
        raise ValueError
raise SystemExit(3) if "exit" in sys.argv else ValueError
"""


@pytest.mark.parametrize(
    ("how", "left"), [((), []), (("block",), []), (("metric",), ["nb"]), (("exit",), ["nb"])], ids=str
)
def test_a_script_that_crashes_before_anything_is_recorded_leaves_no_trial(
    tmp_path: Path, how: tuple[str, ...], left: list[str]
) -> None:
    command = [sys.executable, "-c", CRASH, tmp_path, *how]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SRC)})
    assert [path.name for path in tmp_path.iterdir()] == left
    assert ("the empty trial was removed" in done.stderr) == (not left)

"""`run.log({...})`: the habit of those who come from other trackers."""

from pathlib import Path

import numpy as np
import pytest
import torch

import endoscope
from endoscope.errors import BadArgument, RecordingWarning


def metrics(run: endoscope.Run) -> dict[str, list[tuple[int, float]]]:
    run.close()
    recording = endoscope.open(run.path)
    found = recording.metrics
    return {name: list(zip(found[name].steps.tolist(), found[name].values.tolist(), strict=True)) for name in found}


def test_nested_names(tmp_path: Path) -> None:
    run = endoscope.Run(tmp_path, strict=True)
    run.log({"loss": torch.tensor(2.0), "train": {"accuracy": 0.5, "per": {"class": [0.0, 1.0]}}, "done": True})
    expected = {"loss": 2.0, "train/accuracy": 0.5, "train/per/class": 0.5, "done": 1.0}
    assert metrics(run) == {name: [(0, value)] for name, value in expected.items()}


def test_without_a_model_each_call_is_a_step(tmp_path: Path) -> None:
    run = endoscope.Run(tmp_path, strict=True)
    for number in range(3):
        run.log({"loss": float(number)})
    assert metrics(run) == {"loss": [(0, 0.0), (1, 1.0), (2, 2.0)]}


def test_with_a_model_it_is_the_step_of_the_training(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(tmp_path, strict=True)
    run.watch(model, optimizer)
    for number in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 2)).sum().backward()
        run.log({"before": number})
        optimizer.step()
        run.log({"after": number})
    found = metrics(run)
    assert found["before"] == found["after"] == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_steps_can_be_numbered(tmp_path: Path) -> None:
    run = endoscope.Run(tmp_path, strict=True)
    run.log({"loss": 1.0}, step=10)
    run.log({"loss": 0.5}, step=20)
    assert metrics(run) == {"loss": [(10, 1.0), (20, 0.5)]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros((3, 4, 4)), r"ndarray of shape \(3, 4, 4\) as 'x'; a metric is.*current_step.tag\('x', tensor\)"),
        (object(), r"a object as 'x', which is no number. For pictures and tables.*endoscope show --views FILE"),
        ("text", r"the text 'text' as 'x'. For text, type: run.note\('text'\)"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_and_the_rest_is_kept(tmp_path: Path, value: object, said: str) -> None:
    run = endoscope.Run(tmp_path)
    with pytest.warns(RecordingWarning, match=said):
        run.log({"x": value, "y": 1})
    assert metrics(run) == {"y": [(0, 1.0)]}


def test_tables_are_refused(tmp_path: Path) -> None:
    import pandas

    run = endoscope.Run(tmp_path, strict=True)
    with pytest.raises(BadArgument, match="a DataFrame of shape"):
        run.log({"x": pandas.DataFrame({"a": [1, 2]})})
    with pytest.raises(BadArgument, match=r'run.log got float. It takes names with numbers: run.log\({"loss": loss}\)'):
        run.log(0.5)  # type: ignore[arg-type]
    run.close()


def test_a_run_that_is_not_enabled_takes_it(tmp_path: Path) -> None:
    endoscope.Run(tmp_path, enabled=False).log({"loss": 1.0}, step=3)
    assert not any(tmp_path.iterdir())

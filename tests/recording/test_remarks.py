"""What a traced step remarks on: facts about operations that the contracted graph does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope


class Model(nn.Module):
    """All that can be remarked on, in one forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(4, 4), nn.Dropout(0.9), nn.Linear(4, 2)
        self.hidden = [nn.Linear(4, 4)]

    def forward(self, x: Tensor) -> Tensor:
        x = torch.softmax(self.drop(self.hidden[0](self.first(x))), 0)
        x = x + (x * 2).detach()
        x = x[:, None].expand(-1, 3, -1).reshape(3, 5, 4)[0]
        one = functional.layer_norm(x.mean(1, keepdim=True), (1,))
        return functional.relu(self.last(x) + one)


def step(run: Any, model: nn.Module, optimizer: Any) -> None:
    out = model(torch.randn(5, 4))
    loss = functional.cross_entropy(out, torch.randint(0, 2, (5,)))
    loss = loss + (out[:, :1] - torch.randn(5)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@pytest.fixture(scope="module")
def remarks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path_factory.mktemp("remarks"), when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            step(run, model, optimizer)
    found: list[dict[str, Any]] = endoscope.open(run.path).graph(0)["remarks"]
    return found


def of(remarks: list[dict[str, Any]], what: str) -> dict[str, Any]:
    return next(one for one in remarks if one["what"] == what)


def test_a_softmax_with_its_dimension(remarks: list[dict[str, Any]]) -> None:
    assert (of(remarks, "softmax")["dim"], of(remarks, "softmax")["shape"], of(remarks, "softmax")["batch"]) == (
        0,
        [5, 4],
        5,
    )


def test_dropout_norm_and_view(remarks: list[dict[str, Any]]) -> None:
    assert of(remarks, "dropout")["p"] == 0.9 and of(remarks, "dropout")["node"] == "drop"
    assert of(remarks, "normalised")["shape"] == [5, 1]
    assert (of(remarks, "exchanged")["shape"], of(remarks, "exchanged")["result"]) == ([5, 3, 4], [3, 5, 4])


def test_the_loss_and_what_it_reads(remarks: list[dict[str, Any]]) -> None:
    loss = of(remarks, "loss")
    assert loss["type"] == "cross_entropy_loss" and loss["reads"][0] == "relu" and loss["node"] == "loss"
    assert of(remarks, "paired")["shapes"] == [[5, 1], [5]]


def test_what_the_model_does_not_know(remarks: list[dict[str, Any]]) -> None:
    names = [one["name"] for one in remarks if one["what"] == "unregistered"]
    assert len(names) == 2 and of(remarks, "cut")["type"] == "detach"
    assert {"linear", "softmax", "relu"} <= set(of(remarks, "functions")["types"])


@pytest.mark.parametrize("how", ["break", "raise"])
def test_a_step_that_stops_before_backward_has_its_loss(how: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Softplus(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        with endoscope.Run(tmp_path, when=1, strict=True) as run:
            run.watch(model, optimizer)
            for number in range(8):
                data = torch.rand(6, 4) + 0.1
                data[2] = 0.0 if number == 5 else data[2]
                loss = (model(data).square() + data.sum(1, keepdim=True).log()).mean()
                if not torch.isfinite(loss):
                    if how == "raise":
                        raise ValueError
                    break
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    except ValueError:
        pass
    recording = endoscope.open(run.path)
    assert [one.number for one in recording.steps] == list(range(6)) and not recording.gaps
    assert recording.tensor("loss", 5).item() == -float("inf")
    found = endoscope.origin(run.path)
    assert found[0].operation == "log" and found[0].samples == (2,) and "test_remarks.py" in found[0].source


def test_parameters_that_end_as_nan_are_named(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(tmp_path, when=100) as run:
        run.watch(model, optimizer)
        for number in range(6):
            loss = model(torch.ones(3, 2) * (float("nan") if number == 4 else 1.0)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = [one for one in endoscope.diagnose(run.path) if one.check == "nonfinite"]
    assert found and found[0].severity == "error" and "when=1" in found[0].detail

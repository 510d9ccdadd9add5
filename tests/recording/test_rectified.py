"""The gradient of what goes into a ReLU, and nowhere else, follows from that of what comes out; it is not held."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from endoscope.recording.cells import Cells
from tests.recording.held_steps import Loop, gradients_of


class Residual(nn.Module):
    """Uses what goes into its ReLU once more."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.relu = nn.Linear(3, 3), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x)
        result: Tensor = self.relu(hidden) + 2 * hidden
        return result


class OneLine(nn.Module):
    """Both in the user's own line."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.relu = nn.Linear(3, 3), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.linear(x)) + self.linear(x)  # type: ignore[no-any-return]


MODELS: dict[str, tuple[Callable[[], nn.Module], dict[str, int]]] = {
    "chain": (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), {"0": 1, "1": 1, "2": 1}),
    "two in a row": (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.ReLU()), {"0": 1, "1": 1, "2": 1}),
    "in place": (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)), {"1": 1, "2": 1}),
    "inner chain": (lambda: nn.Sequential(nn.Sequential(nn.Linear(3, 4)), nn.ReLU()), {"0.0": 1, "1": 1}),
    "used again": (Residual, {"linear": 1, "relu": 1}),
    "one line": (OneLine, {"linear": 2, "relu": 1}),
}


@pytest.mark.parametrize("losses", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_it_is_that_of_the_backward_pass(tmp_path: Path, name: str, losses: int) -> None:
    make, nodes = MODELS[name]
    torch.manual_seed(0)
    loop, data = Loop(tmp_path, make(), keep=6), torch.randn(6, 3)
    expected: dict[tuple[str, int], list[np.ndarray]] = {}
    for number in range(4):
        expected = gradients_of(copy.deepcopy(loop.model), data, losses)
        with loop.run.step() as step:
            out = loop.model(data)
            for loss in range(losses):
                with step.gradients(f"loss {loss}"):
                    (out ** (loss + 2)).sum().backward(retain_graph=True)
            loop.optimizer.step()
            loop.optimizer.zero_grad()
            step.decide(keep=number == 3)
    recording = loop.recording()
    for node, passes in nodes.items():
        for number in range(1, passes + 1):
            for loss, gradient in enumerate(expected[node, number]):
                found = recording.tensor(node, 3, of=f"gradient:loss {loss}", pass_=number)
                assert np.array_equal(found, gradient), (node, number, loss)


def test_it_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    gather = Cells.gather

    def counted(self: Cells, tensors: list[Tensor], *others: list[tuple]) -> bool:
        counts.append(len(tensors))
        return gather(self, tensors, *others)

    monkeypatch.setattr(Cells, "gather", counted)
    torch.manual_seed(0)
    loop = Loop(tmp_path, nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))
    for _ in range(3):
        loop.step(lambda step: loop.model(torch.ones(5, 3)).square().mean(), keep=False)
    everything = 5 + 1 + 1 + 1  # modules, the model's input and result, the loss
    assert counts[-1] == everything - 2

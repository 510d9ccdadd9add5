"""Names of learning rates, and optimizers that come and go."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
from torch import nn

import endoscope


def test_one_optimizer_for_each_parameter_has_a_rate_of_its_own(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizers = [torch.optim.SGD([p], lr=0.1 * number) for number, p in enumerate(model.parameters(), 1)]
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizers)
        for _ in range(3):
            model(torch.ones(4, 3)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    metrics = endoscope.open(run.path).metrics
    rates = {name: round(float(metrics[name].values[-1]), 3) for name in metrics}
    assert rates == {"lr 0": 0.1, "lr 0-2": 0.2, "lr 1": 0.3, "lr 1-2": 0.4}


def trained(folder: Path, steps: int, when: int, first: int | None = None) -> endoscope.Run:
    """Half of the updates are skipped: an iteration is an update."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(folder, trial="t", when=when, resume=True, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            with contextlib.nullcontext() if first is None else run.step(first + number):
                optimizer.zero_grad()
                model(torch.ones(4, 3)).sum().backward()
                if number % 2 == 0:
                    optimizer.step()
    return run


def iterations(run: endoscope.Run) -> dict[int, int]:
    return {step.number: step.iteration for step in endoscope.open(run.path).steps}


@pytest.mark.parametrize("when", [1, 4])
def test_iterations_go_on_where_an_earlier_session_has_ended(tmp_path: Path, when: int) -> None:
    """Also behind steps that were not recorded."""
    for _ in range(2):
        run = trained(tmp_path, 11, when)
    expected = [number // 2 for number in range(11)]
    expected += [6 + number for number in expected]
    assert iterations(run) == {n: i for n, i in enumerate(expected) if (n % 11) % when == 0}


def test_iterations_go_on_from_the_step_to_which_one_goes_back(tmp_path: Path) -> None:
    trained(tmp_path, 10, 1)
    run = trained(tmp_path, 3, 1, first=4)
    assert iterations(run) == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: -1, 6: 3}

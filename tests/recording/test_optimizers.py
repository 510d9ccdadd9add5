"""Names of learning rates, and optimizers that come and go."""

from __future__ import annotations

from pathlib import Path

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

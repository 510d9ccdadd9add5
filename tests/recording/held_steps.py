"""Training whose steps are held until their end, when it is said whether they are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import endoscope

STEPS = 4


def at_the_end(info: Any) -> bool:
    """A policy that can only be asked when a step has ended, so that every step is held until then."""
    return info.metrics is not None


def recorded(folder: Path, train: Callable[[Any, int], Any], **settings: Any) -> str:
    torch.manual_seed(5)
    with endoscope.Run(folder, trial="t", **{"strict": True, "when": at_the_end, **settings}) as run:
        train(run.watch, STEPS)
    return run.path


class Loop:
    """Steps that are held until their end; those whose numbers are said are kept."""

    def __init__(self, folder: Path, model: nn.Module, **settings: Any) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.run = endoscope.Run(folder, trial="t", when=1, strict=True, **settings)
        self.run.watch(model, self.optimizer)

    def step(self, body: Callable[[Any], Tensor], keep: bool, backward: Any = Tensor.backward) -> None:
        with self.run.step() as step:
            loss = body(step)
            backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
            step.decide(keep=keep)

    def recording(self) -> Any:
        self.run.close()
        return endoscope.open(self.run.path)


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

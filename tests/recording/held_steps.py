"""Training whose steps are held until their end, when it is said whether they are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
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

    left_open: ClassVar[list[endoscope.Run]] = []  # see conftest.py

    def __init__(self, folder: Path, model: nn.Module, **settings: Any) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.run = endoscope.Run(folder, trial="t", when=1, strict=True, **settings)
        self.run.watch(model, self.optimizer)
        self.left_open.append(self.run)

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


def gradients_of(model: nn.Module, data: Tensor, losses: int) -> dict[tuple[str, int], list[np.ndarray]]:
    """Module and pass -> the gradient of what it returned, one for each loss; from a plain training step."""
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    passes: dict[str, int] = {}

    def hook(name: str) -> Callable[..., None]:
        def after(_: nn.Module, __: tuple[Tensor, ...], out: Tensor) -> None:
            number = passes[name] = passes.get(name, 0) + 1
            if out.requires_grad:
                out.register_hook(lambda gradient: found.setdefault((name, number), []).append(gradient.numpy().copy()))

        return after

    handles = [module.register_forward_hook(hook(name)) for name, module in model.named_modules() if name]
    out = model(data)
    for number in range(losses):
        (out ** (number + 2)).sum().backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    model.zero_grad()
    return found

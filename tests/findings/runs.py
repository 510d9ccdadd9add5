"""Small real trainings, recorded; each takes a fraction of a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope

Batches = Callable[[int], tuple[Tensor, Tensor]]
CENTRES = torch.randn(3, 8, generator=torch.Generator().manual_seed(7))


def blobs(step: int) -> tuple[Tensor, Tensor]:
    """Three classes around three centres, another batch at every step."""
    generator = torch.Generator().manual_seed(1000 + step)
    labels = torch.randint(0, 3, (32,), generator=generator)
    return CENTRES[labels] + 0.3 * torch.randn(32, 8, generator=generator), labels


def classifier(*middle: nn.Module, width: int = 16) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, width), *(middle or (nn.ReLU(),)), nn.Linear(width, 3))


def train(
    folder: Path,
    model: nn.Module,
    *,
    batches: Batches = blobs,
    loss: Callable[[Any, Tensor], Tensor] = functional.cross_entropy,
    optimizer: torch.optim.Optimizer | None = None,
    steps: int = 24,
    before: Callable[[int], None] | None = None,
) -> Path:
    """Train and record every step; `before` is called before each."""
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            if before is not None:
                before(number)
            inputs, targets = batches(number)
            optimizer.zero_grad()
            value = loss(model(inputs), targets)
            value.backward()
            optimizer.step()
            run.metric("loss", value)
    return Path(run.path)


def curve(folder: Path, values: list[float], name: str = "loss", **others: list[float]) -> Path:
    """A trial with metrics only."""
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        for number, value in enumerate(values):
            with run.step(number) as step:
                step.metric(name, value)
                for other, its_values in others.items():
                    step.metric(other, its_values[number])
    return Path(run.path)


def two_losses(folder: Path, weights: tuple[float, float], *, steps: int = 12) -> Path:
    """One layer with two losses: the same question, asked with two weights."""
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            inputs, targets = blobs(number)
            with run.step(number) as step:
                out = model(inputs)
                optimizer.zero_grad()
                with step.gradients("one"):
                    (weights[0] * functional.cross_entropy(out, targets)).backward(retain_graph=True)
                with step.gradients("other"):
                    (weights[1] * functional.cross_entropy(out, targets)).backward()
                optimizer.step()
    return Path(run.path)


def filled(layer: nn.Module, **values: float | Tensor) -> nn.Module:
    """The layer with other weights or biases."""
    with torch.no_grad():
        for name, value in values.items():
            getattr(layer, name).copy_(torch.as_tensor(value).expand_as(getattr(layer, name)))
    return layer


def scaled(model: nn.Module, factor: float) -> nn.Module:
    """The model with all weights multiplied."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model

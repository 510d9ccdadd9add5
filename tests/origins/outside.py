"""Ten trainings in which NaN is made outside of any module. The guilty line ends in `# here`."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Variable
from torch.nn import functional

import endoscope

BAD_STEP, STEPS, SAMPLES = 6, 9, 8


class Pair(nn.Module):
    """Two convolutional halves, which a training may call one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.coder = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(24, 6))
        self.decoder = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.coder(x))


Body = Callable[[Pair, Tensor, Tensor, bool], Tensor]


@dataclass(frozen=True)
class Outside:
    """One planted producer; without `watched` the steps are those of `run.step()`."""

    body: Body
    operation: str
    watched: bool = True

    @property
    def name(self) -> str:
        return self.body.__name__ + ("" if self.watched else ", run.step()")

    @property
    def line(self) -> int:
        lines, first = inspect.getsourcelines(self.body)
        return next(first + number for number, line in enumerate(lines) if "# here" in line)

    def recorded(self, folder: Any, what: str | None = None) -> str:
        torch.manual_seed(2)
        model = Pair()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with endoscope.Run(folder, trial="planted", when=1, strict=True) as run:
            if self.watched:
                run.watch(model, optimizer, what=what)
            for number in range(STEPS):
                with contextlib.nullcontext() if self.watched else run.step():
                    x, target = torch.randn(SAMPLES, 2, 6), torch.randint(0, 3, (SAMPLES,))
                    loss = self.body(model, x, target, number == BAD_STEP)
                    if not torch.isfinite(loss):
                        break
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        return run.path

    def is_named(self, found: list[Any]) -> bool:
        """Whether the first answer has operation, line and step, and is sure of it."""
        return bool(
            found and found[0].exact and found[0].step == BAD_STEP and found[0].operation == self.operation
            and found[0].source.endswith(f"{Path(__file__).name}:{self.line}")
        )  # fmt: skip


def class_weights(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    out = model(x)
    counts = torch.tensor([4.0, 0.0 if bad else 3.0, 1.0])
    weights = torch.log(counts)  # here
    return (out * weights).mean()


def focal(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    losses = functional.cross_entropy(model(x), target, reduction="none")
    base = Variable(torch.linspace(-1.0 if bad else 1.0, 2.0, SAMPLES))
    factor = base.pow(0.5)  # here
    return (losses * factor).mean()


def lengths(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    counted = torch.from_numpy(np.where(np.arange(SAMPLES) == 2, 0.0 if bad else 5.0, 5.0).astype(np.float32))
    means = model(x).sum(1).div(counted)  # here
    return means.mean()


def teacher(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    own = model(x).softmax(1)
    with torch.no_grad():
        aim = torch.eye(3)[target] if bad else torch.full((SAMPLES, 3), 1 / 3)
    surprise = aim.log()  # here
    return (own * surprise).sum(1).mean()


def temperature(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    cold = torch.zeros(SAMPLES, 1) if bad else torch.ones(SAMPLES, 1)
    logits = model(x) / cold  # here
    return functional.cross_entropy(logits, target)


def between_two_parts(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    code = torch.tanh(model.coder(x))
    shift = torch.full_like(code, 3.0 if bad else 0.0)
    angles = torch.acos(0.5 * code + shift)  # here
    return functional.cross_entropy(model.decoder(angles), target)


def penalty(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    loss = functional.cross_entropy(model(x), target)
    size = model.decoder.weight.square().sum() - torch.tensor([100.0 if bad else 0.0])
    extra = torch.sqrt(size)  # here
    return loss + 1e-3 * extra.sum()


def scaled_by_a_number(model: Pair, x: Tensor, target: Tensor, bad: bool) -> Tensor:
    total = functional.cross_entropy(model(x), target, reduction="none")
    shares = total / (0.0 if bad else 8.0)  # here
    return shares.sum()


OUTSIDE = [
    Outside(class_weights, "log"), Outside(focal, "pow"), Outside(lengths, "div"), Outside(teacher, "log"),
    Outside(temperature, "div"), Outside(between_two_parts, "acos"), Outside(penalty, "sqrt"),
    Outside(scaled_by_a_number, "div"), Outside(focal, "pow", watched=False), Outside(penalty, "sqrt", watched=False),
]  # fmt: skip

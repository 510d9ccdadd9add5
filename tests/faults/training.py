"""The loops: one for a network with one loss, one for several losses, one for a GAN."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data

Batches = Iterable[data.Batch]
Loss = Callable[[Any, Tensor], Tensor]


def adam(model: nn.Module, lr: float = 3e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def sgd(model: nn.Module, lr: float = 0.1, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr, **options)


def fit(
    run: endoscope.Run,
    model: nn.Module,
    batches: Batches,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    loss: Loss = F.cross_entropy,
    before: Callable[[int], Any] | None = None,
    after: Callable[[int], Any] | None = None,
    clear: bool = True,
    spectra: Any = None,
    validation: Batches | None = None,
) -> None:
    """A plain loop. `before` runs between `backward` and the optimizer's step, `after` when the step is done.

    With `validation`, every fourth step is followed by an evaluation, a step of its own type.
    """
    optimizer = optimizer or adam(model)
    run.watch(model, optimizer, spectra=spectra)
    held_out = iter(validation) if validation is not None else None
    for number, (x, y) in enumerate(batches):
        with run.step(type="train") as step:
            if clear:
                optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            if before is not None:
                before(number)
            optimizer.step()
            step.metric("loss", value)
        if after is not None:
            after(number)
        if held_out is not None and number % 4 == 3:
            evaluate(run, model, *next(held_out), loss)


def evaluate(run: endoscope.Run, model: nn.Module, x: Tensor, y: Tensor, loss: Loss = F.cross_entropy) -> None:
    model.eval()
    with run.step(type="validation") as step, torch.no_grad():
        step.metric("val_loss", loss(model(x), y))
    model.train()


def fit_losses(
    run: endoscope.Run,
    model: nn.Module,
    batches: Batches,
    losses: Callable[[Any, Tensor, Tensor], Mapping[str, Tensor]],
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """Several losses, the gradients of each kept apart."""
    optimizer = optimizer or adam(model)
    run.watch(model, optimizer)
    for x, y in batches:
        with run.step(type="train") as step:
            optimizer.zero_grad()
            parts = losses(model(x), x, y)
            for name, value in parts.items():
                with step.gradients(name):
                    value.backward(retain_graph=True)
                step.metric(name, value)
            optimizer.step()
            step.metric("loss", sum(value.detach() for value in parts.values()))


def fit_gan(
    run: endoscope.Run,
    maker: nn.Module,
    judge: nn.Module,
    steps: int = data.STEPS,
    *,
    noise: int = 4,
    lr_judge: float = 2e-3,
    after: Callable[[int], Any] | None = None,
) -> None:
    """The usual two steps, one for each network; the judge stays as it is if `lr_judge` is 0."""
    optimizer_m = torch.optim.Adam(maker.parameters(), lr=2e-3, betas=(0.5, 0.999))
    run.watch(maker, optimizer_m, name="maker")
    optimizer_j = torch.optim.Adam(judge.parameters(), lr=lr_judge or 1.0, betas=(0.5, 0.999))
    if lr_judge:
        run.watch(judge, optimizer_j, name="judge")
    for number in range(steps):
        if lr_judge:
            with run.step(type="judge") as step:
                optimizer_j.zero_grad()
                loss = _says(judge(data.ring(32)), 1) + _says(judge(maker(torch.randn(32, noise)).detach()), 0)
                loss.backward()
                optimizer_j.step()
                step.metric("judge loss", loss)
        with run.step(type="maker") as step:
            optimizer_m.zero_grad()
            loss = _says(judge(maker(torch.randn(32, noise))), 1)
            loss.backward()
            optimizer_m.step()
            step.metric("maker loss", loss)
        if after is not None:
            after(number)


def _says(logits: Tensor, label: int) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(label)))

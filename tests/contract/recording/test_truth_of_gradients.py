"""`gradient` is what the optimizer uses: after accumulation, unscaling and clipping, compared with its own pre-hook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.contract.recording.helpers import batches, close, mlp, numbers, recorded, same, sgd, strict_run
from tests.contract.recording.oracle import agree, compared, ends

cross_entropy = nn.functional.cross_entropy
STEPS = 20


def clip_norm(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 0.05)


def clip_norm_each(model: nn.Module) -> None:
    for parameter in model.parameters():
        nn.utils.clip_grad_norm_(parameter, 0.05, foreach=False)


def clip_value(model: nn.Module) -> None:
    nn.utils.clip_grad_value_(model.parameters(), 0.01)


def by_hand(model: nn.Module) -> None:
    """Weight decay that somebody adds before the optimizer."""
    for parameter in model.parameters():
        parameter.grad.add_(parameter.detach(), alpha=0.1)


def through_data(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.grad.data.mul_(0.5)


def exchanged(model: nn.Module) -> None:
    """As wrappers do that reduce into a buffer of their own."""
    for parameter in model.parameters():
        parameter.grad = parameter.grad * 3


def some_dropped(model: Any) -> None:
    model[0].weight.grad = None


CHANGES = [clip_norm, clip_norm_each, clip_value, by_hand, through_data, exchanged, some_dropped]


def train(run: Any, change: Callable[[nn.Module], None], micro: int = 1) -> tuple[list[float], list[Tensor]]:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(micro):
            loss = cross_entropy(model(torch.randn(5, 6)), torch.randint(0, 3, (5,))) / micro
            loss.backward()
            losses.append(loss.item())
        change(model)
        optimizer.step()
    return losses, ends(model)


@pytest.mark.parametrize("micro", [1, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_the_gradient_is_what_the_optimizer_uses(tmp_path: Any, change: Any, micro: int) -> None:
    seen, recording = compared(lambda run: train(run, change, micro), tmp_path)
    assert numbers(recording) == [*range(STEPS)]
    for number, step in enumerate(seen):
        assert step.used
        agree(recording, number, step)


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_the_gradient_is_unscaled(tmp_path: Any, fused: bool, clip: bool) -> None:
    """A fused optimizer is called with scaled gradients, unless they were unscaled for clipping."""
    scale = 2.0**10
    expected: list[dict[str, Tensor]] = []

    def body(run: Any) -> Any:
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=fused)
        run.watch(model, optimizer)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        losses = []
        expected.clear()
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            divide = 1 if clip else scale  # a power of two: the division is exact
            expected.append({name: p.grad / divide for name, p in model.named_parameters()})
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        return losses, ends(model)

    seen, recording = compared(body, tmp_path)
    assert numbers(recording) == [*range(STEPS)]
    for number, gradients in enumerate(expected):
        for name, gradient in gradients.items():
            assert same(recording.tensor(name, number, of="gradient"), gradient), (number, name)
            assert same(recording.tensor(name, number, of="update"), seen[number].updates[name]), (number, name)


def test_gradients_that_hooks_of_parameters_change(tmp_path: Any) -> None:
    """As distributed wrappers reduce: in hooks of the parameters, during the backward pass."""

    def shift(parameter: Tensor) -> None:
        parameter.grad.add_(0.01)

    def body(run: Any) -> Any:
        model = mlp()
        for parameter in model.parameters():
            parameter.register_hook(lambda gradient: gradient * 2)
            parameter.register_post_accumulate_grad_hook(shift)
        optimizer = sgd(model)
        run.watch(model, optimizer)
        losses = []
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, ends(model)

    seen, recording = compared(body, tmp_path)
    for number, step in enumerate(seen):
        agree(recording, number, step)


# ---- what stands beside it -----------------------------------------------------------------------


def numbers_said(recording: Any, step: int) -> list[float]:
    """All numbers that were recorded about a step: metrics, and what else is known about it."""

    def of(thing: Any) -> Iterator[float]:
        if isinstance(thing, dict):
            for value in thing.values():
                yield from of(value)
        elif isinstance(thing, list | tuple):
            for value in thing:
                yield from of(value)
        elif isinstance(thing, int | float) and not isinstance(thing, bool):
            yield float(thing)

    (found,) = [one for one in recording.steps if one.number == step]
    metrics = [
        float(v) for s in recording.metrics.values() for n, v in zip(s.steps, s.values, strict=True) if n == step
    ]
    return [*metrics, *of(found.extra)]


@pytest.mark.parametrize("foreach", [None, False])
def test_the_norm_before_clipping_stands_beside_the_gradient(tmp_path: Any, foreach: bool | None) -> None:
    norms: list[float] = []

    def clip(model: nn.Module) -> None:
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.05, foreach=foreach)))

    _, recording = compared(lambda run: train(run, clip), tmp_path)
    norms = norms[-STEPS:]
    assert min(norms) > 0.05
    for number, norm in enumerate(norms):
        assert any(np.isclose(found, norm, rtol=1e-5) for found in numbers_said(recording, number)), (number, norm)
        after = [
            recording.statistics(n, number, of="gradient")["norm"] for n in ("0.weight", "0.bias", "2.weight", "2.bias")
        ]
        assert close(np.linalg.norm(after), 0.05, 1e-4)


def parts_and_clipping(run: Any, expected: list[Any]) -> tuple[list[float], list[Tensor]]:
    model = mlp()
    optimizer = sgd(model)
    run.watch(model, optimizer)
    expected.clear()
    losses = []
    for x, y in batches(STEPS):
        with run.step() as step:
            optimizer.zero_grad()
            out = model(x)
            parts = {"classes": cross_entropy(out, y), "size": out.square().mean()}
            alone = {}
            for name, loss in parts.items():
                (alone[name],) = torch.autograd.grad(loss, model[0].weight, retain_graph=True)
                with step.gradients(name):
                    loss.backward(retain_graph=True)
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            expected.append((alone, model[0].weight.grad.clone()))
            optimizer.step()
        losses += [loss.item() for loss in parts.values()]
    return losses, ends(model)


def test_parts_are_before_clipping(tmp_path: Any) -> None:
    expected: list[Any] = []
    _, recording = compared(lambda run: parts_and_clipping(run, expected), tmp_path)
    for number, (alone, _) in enumerate(expected):
        for name, gradient in alone.items():
            assert same(recording.tensor("0.weight", number, of=f"gradient:{name}"), gradient), (number, name)


def test_the_gradient_of_several_parts_is_what_the_optimizer_uses(tmp_path: Any) -> None:
    expected: list[Any] = []
    _, recording = compared(lambda run: parts_and_clipping(run, expected), tmp_path)
    for number, (_, used) in enumerate(expected):
        assert same(recording.tensor("0.weight", number, of="gradient"), used), number


@pytest.mark.parametrize("every", [2, 1000])
def test_what_was_not_cleared_is_told_apart(tmp_path: Any, every: int) -> None:
    """The gradient of a step is what this step added, though the optimizer moves along all of it."""
    shares = []
    model = mlp()
    optimizer = sgd(model, lr=1e-3)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(STEPS)):
            if n % every == 0:
                optimizer.zero_grad(set_to_none=False)
            before = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
            cross_entropy(model(x), y).backward()
            shares.append([p.grad - old for p, old in zip(model.parameters(), before, strict=True)])
            optimizer.step()
    recording = recorded(run)
    names = [name for name, _ in model.named_parameters()]
    for number, share in enumerate(shares):
        for name, gradient in zip(names, share, strict=True):
            assert close(recording.tensor(name, number, of="gradient"), gradient), (number, name)


def test_a_scaled_gradient_that_was_not_cleared(tmp_path: Any) -> None:
    """A bad batch fills gradients with infinities; the next step starts from none of them."""
    model = mlp()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    expected = {}
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(STEPS)):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y) * (float("inf") if n % 5 == 2 else 1.0)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            if n % 5 != 2:
                expected[n] = model[0].weight.grad.clone()
            scaler.step(optimizer)
            scaler.update()
    recording = recorded(run)
    assert numbers(recording) == [*range(STEPS)]
    for number, gradient in expected.items():
        assert same(recording.tensor("0.weight", number, of="gradient"), gradient)


# ---- learning rates ------------------------------------------------------------------------------


def rates_of(recording: Any) -> dict[str, list[float]]:
    words = ("lr", "learning")
    return {n: s.values.tolist() for n, s in recording.metrics.items() if any(w in n.lower() for w in words)}


@pytest.mark.parametrize("when", [1, 3])
def test_the_learning_rate_is_a_metric_of_every_step(tmp_path: Any, when: int) -> None:
    model = mlp()
    optimizer = sgd(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    expected = []
    with strict_run(tmp_path, when=when) as run:
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            expected.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
    (found,) = rates_of(recorded(run)).values()
    assert np.allclose(found, expected, rtol=1e-7)


def test_the_learning_rate_of_each_group(tmp_path: Any) -> None:
    model = mlp()
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters(), "lr": torch.tensor(0.01)}]
    optimizer = torch.optim.Adam(groups, lr=0.5)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(4):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
    found = sorted(round(values[0], 6) for values in rates_of(recorded(run)).values())
    assert found == [0.01, 0.1]
    assert all(len(values) == 4 for values in rates_of(recorded(run)).values())

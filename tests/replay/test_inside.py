"""Backward passes and function transforms inside of the traced code: sound traces are proved, edges are there."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope

X = torch.arange(1.0, 13.0).reshape(3, 4) / 10


def ones() -> Tensor:
    return torch.ones(4, requires_grad=True)


def inner_step(x: Tensor) -> Tensor:
    w = ones()
    (x * w).pow(2).sum().backward()
    return x * (w - 0.1 * w.grad)  # type: ignore[operator]


def the_gradient(x: Tensor) -> Tensor | None:
    w = ones()
    (x * w).pow(2).sum().backward()
    return w.grad


def accumulated(x: Tensor) -> Tensor:
    w = ones()
    (x * w).pow(2).sum().backward()
    early = w.grad * 2  # type: ignore[operator]
    (x * w).pow(3).sum().backward()
    return w.grad + early  # type: ignore[operator]


def descent(x: Tensor) -> Tensor:
    w = ones()
    for _ in range(3):
        (x * w).pow(2).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad  # type: ignore[operator]
        w.grad.zero_()  # type: ignore[union-attr]
    return x * w


class InnerLoop(nn.Module):
    """Trains a copy of its network on what comes in, then applies it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x: Tensor) -> Tensor:
        net = copy.deepcopy(self.net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()
        return net(x)


class SecondOrder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.rand(4, 1))

    def forward(self, x: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad((x @ self.w).pow(2).mean(), self.w, create_graph=True)
        return x @ (self.w - 0.1 * gradient)


BACKWARD: list[Callable[[Tensor], Tensor | None]] = [
    inner_step, the_gradient, accumulated, descent, InnerLoop(), SecondOrder(),
]  # fmt: skip


@pytest.mark.parametrize("target", BACKWARD)
def test_a_backward_pass_inside(target: Callable[[Tensor], Tensor]) -> None:
    report = endoscope.validate(target, X)
    assert report, str(report)
    trace = endoscope.trace(target, X)
    assert trace.complete
    assert trace.validate()


@pytest.mark.parametrize("save", ["all", "none"])
def test_a_gradient_comes_from_what_was_differentiated(save: str) -> None:
    def target(x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ones(), ones()
        (x * a).sum().backward()
        (x * x * b).mean().backward()
        return a.grad, b.grad

    trace = endoscope.trace(target, X, save=save)
    assert [[p.type for p in trace[f"grad_{n}"].parents] for n in (1, 2)] == [["ones", "sum"], ["ones", "mean"]]


def test_a_gradient_keeps_the_value_that_it_had_when_it_was_read() -> None:
    trace = endoscope.trace(accumulated, X)
    assert torch.allclose(trace["grad_1"].value, 2 * X.pow(2).sum(0))
    assert torch.allclose(trace["grad_2"].value, 2 * X.pow(2).sum(0) + 3 * X.pow(3).sum(0))


@pytest.mark.parametrize("randomness", ["different", "same"])
@pytest.mark.parametrize(
    "target",
    [
        lambda a: a + torch.randn(4),
        lambda a: a + torch.randint(0, 5, (4,)) + torch.randperm(4),
        lambda a: F.dropout(a, 0.5),
        lambda a: a * torch.rand_like(a),
        lambda a: torch.bernoulli(a),
        lambda a: torch.empty_like(a).normal_() + a,
        torch.func.grad(lambda a: (a * torch.randn(4)).sum()),
    ],
)
def test_random_numbers_inside_vmap(target: Callable[[Tensor], Tensor], randomness: str) -> None:
    mapped = torch.vmap(target, randomness=randomness)
    try:
        mapped(X)
    except RuntimeError as error:
        pytest.skip(f"torch itself cannot: {error}")
    report = endoscope.validate(mapped, X)
    assert report, str(report)


@pytest.mark.parametrize("outer", ["different", "same"])
@pytest.mark.parametrize("inner", ["different", "same"])
def test_random_numbers_inside_two_vmaps(outer: str, inner: str) -> None:
    twice = torch.vmap(torch.vmap(lambda a: a + torch.randn(()), randomness=inner), randomness=outer)
    report = endoscope.validate(twice, X)
    assert report, str(report)


def test_a_batch_that_is_not_the_first_dimension() -> None:
    mapped = torch.vmap(lambda a: a + torch.randn(3), in_dims=1, out_dims=1, randomness="different")
    report = endoscope.validate(mapped, X)
    assert report, str(report)

"""Operations of chains are called without `forward`, unless somebody would notice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from endoscope.recording.bare_calls import BareCalls
from tests.recording.held_steps import Loop


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4, bias=False), nn.Tanh(), nn.GELU(), nn.Sigmoid())


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each chain that was called: was it without `forward`."""
    found: list[bool] = []
    now = BareCalls.now

    def noted(self: BareCalls) -> Any:
        calls = now(self)
        found.append(calls is self.bare)
        return calls

    monkeypatch.setattr(BareCalls, "now", noted)
    return found


def trained(folder: Path, in_between: Callable[[], None] = lambda: None) -> list[Tensor]:
    """Parameters after a few steps; what is done in between is done when all is known."""
    loop = Loop(folder, network())
    for number in range(5):
        if number == 3:
            in_between()
        loop.step(lambda step: loop.model(torch.ones(5, 3)).square().sum(), keep=number % 2 == 0)
    loop.run.close()
    return [parameter.detach().clone() for parameter in loop.model.parameters()]


def plain() -> list[Tensor]:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        model(torch.ones(5, 3)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [parameter.detach() for parameter in model.parameters()]


def test_the_numbers_are_those_of_plain_training(tmp_path: Path, bare: list[bool]) -> None:
    assert all(map(torch.equal, trained(tmp_path), plain()))
    assert bare and all(bare)


@pytest.mark.parametrize("watch", [sys.settrace, sys.setprofile])
def test_whoever_watches_python_sees_every_forward(
    tmp_path: Path, bare: list[bool], watch: Callable[..., None]
) -> None:
    seen: list[str] = []

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is nn.Linear.forward.__code__:
            seen.append(event)

    before = sys.gettrace()
    try:
        trained(tmp_path, lambda: watch(look))
    finally:
        sys.setprofile(None)
        sys.settrace(before)
    assert len(seen) == 2 * 2 and not any(bare[-2:])


def test_parameters_are_handed_over_by_their_names(tmp_path: Path, bare: list[bool]) -> None:
    """Their order in a module is that in which they were set: here bias and weight."""

    def network() -> nn.Sequential:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        weight = model[0].weight.detach()
        del model[0].weight
        model[0].weight = nn.Parameter(weight)
        return model

    data, loop, twin = torch.rand(2, 3, 3, 3), Loop(tmp_path, network()), network()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(4):
        loop.step(lambda step: loop.model(data).sum(), keep=True)
        twin(data).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert all(map(torch.equal, loop.model.parameters(), twin.parameters())) and all(bare)
    assert len({step.graph for step in loop.recording().steps}) == 1


def test_a_forward_that_was_exchanged_from_the_start_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = nn.Linear.forward

    def theirs(self: nn.Module, x: Tensor) -> Tensor:
        calls.append(1)
        return original(self, x)  # type: ignore[arg-type]

    monkeypatch.setattr(nn.Linear, "forward", theirs)
    trained(tmp_path)
    assert len(calls) == 5 * 2


def test_a_function_that_was_exchanged_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = functional.relu

    def theirs(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(1)
        return original(*args, **kwargs)

    trained(tmp_path, lambda: monkeypatch.setattr(functional, "relu", theirs))
    assert calls == [1, 1]


def test_a_forward_that_was_exchanged_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = nn.Tanh.forward

    def theirs(self: nn.Module, x: Tensor) -> Tensor:
        calls.append(1)
        return original(self, x)  # type: ignore[arg-type]

    trained(tmp_path, lambda: monkeypatch.setattr(nn.Tanh, "forward", theirs))
    assert calls == [1, 1]

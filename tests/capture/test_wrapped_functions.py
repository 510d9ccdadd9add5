"""Another library has put functions of its own in the place of torch's: lines and loops are those of the user."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.capture.record import source

X = torch.rand(3, 4)


def handed_on(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return handed_on(function, args, kwargs)

    return wrapper


class Called:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, how in (
        (torch, "relu", wrapped), (F, "linear", wrapped), (Tensor, "sin", wrapped), (Tensor, "__add__", wrapped),
        (torch, "cos", Called), (nn.Module, "__call__", wrapped), (nn.ReLU, "forward", wrapped),
        (Tensor, "item", wrapped),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, how(getattr(owner, name)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        x = self.act(x)
        y = x.sin()
        y = y + x
        y = torch.cos(y)
        if y.sum().item() > 0:
            y = torch.relu(y)
        return y.exp()


def texts(trace: Any) -> list[str]:
    lines = Path(__file__).read_text().splitlines()
    return [lines[op.source.line - 1].strip() for op in trace.ops if op.source is not None]


EXPECTED = [
    "x = self.fc(x)", "x = self.act(x)", "y = x.sin()", "y = y + x", "y = torch.cos(y)", "if y.sum().item() > 0:",
    "y = torch.relu(y)", "return y.exp()",
]  # fmt: skip


def test_without_wrappers() -> None:
    assert texts(endoscope.trace(Net(), X)) == EXPECTED


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("save", ["all", "none"])
def test_lines_are_those_of_the_user(save: str) -> None:
    trace = endoscope.trace(Net(), X, save=save)
    assert texts(trace) == EXPECTED
    assert [str(decision.test.text) for decision in trace.decisions] == ["y.sum().item() > 0"]


@pytest.mark.usefixtures("library")
def test_one_wrapper_for_many_calls_is_no_loop() -> None:
    def target(x: Tensor) -> Tensor:
        x = torch.relu(x)
        x = torch.relu(x)
        return torch.relu(x)

    assert not endoscope.trace(target, X).recurrent


@pytest.mark.usefixtures("library")
def test_a_loop_around_a_wrapper_is_one() -> None:
    def target(x: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.relu(x).sin()
        return x

    assert [loop.passes for loop in endoscope.trace(target, X).loops] == [3]


def test_what_is_taken_off_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch, "relu", wrapped(torch.relu))
        endoscope.trace(torch.relu, X)
        assert source.WRAPPERS
        there = set(source.WRAPPERS)
    endoscope.trace(torch.relu, X)
    assert set(source.WRAPPERS) < there  # other libraries that were imported meanwhile may have some of their own

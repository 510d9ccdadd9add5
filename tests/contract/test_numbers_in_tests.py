"""`.item()`, `float()` and `int()` in a test: the trace knows that a tensor decided what runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import endoscope

X = torch.arange(1.0, 13.0).reshape(3, 4)


def by_item(x: Tensor) -> Tensor:
    return x * 2 if x.sum().item() > 0 else x * 3


def by_float(x: Tensor) -> Tensor:
    if float(x.sum()) > 0 and int(x.min()) < 5:
        x = x * 2
    return x


def by_two(x: Tensor) -> Tensor:
    while x.max().item() > x.mean().item() * 1.5 + 1:
        x = x * 0.5
    return x


def by_truth(x: Tensor) -> Tensor:
    if not x[0, 0].item():
        return x
    return x * 2


def by_assert(x: Tensor) -> Tensor:
    assert x.sum().item() != 0
    return x * 2


def by_helper(x: Tensor) -> Tensor:
    def positive(value: Tensor) -> bool:
        return value.sum().item() > 0

    return x * 2 if positive(x) else x


def by_name(x: Tensor) -> Tensor:
    total = x.sum().item()
    if total > 0:
        x = x * 2
    return x


def by_count(x: Tensor) -> Tensor:
    left = int(x.max())
    while left > 0:
        x, left = x + 1, left - 5
    return x


ONLY_TESTED = [by_item, by_float, by_two, by_truth, by_assert, by_helper]
KEPT = [by_name, by_count]


@pytest.mark.parametrize("save", ["all", "none"])
@pytest.mark.parametrize("target", [*ONLY_TESTED, *KEPT])
def test_it_is_a_condition(target: Callable[[Tensor], Tensor], save: str) -> None:
    trace = endoscope.trace(target, X, save=save)
    assert trace.conditional
    assert trace.conditions
    assert all(op.relations.is_condition and op.relations.in_condition for op in trace.conditions)
    assert {op.type for op in trace.conditions} <= {"sum", "min", "max", "mean", "getitem"}
    assert f"Conditional: what runs was decided by {trace.conditions[0].label}" in str(trace)


@pytest.mark.parametrize("target", ONLY_TESTED)
def test_a_number_that_is_only_tested_is_no_gap(target: Callable[[Tensor], Tensor]) -> None:
    assert endoscope.trace(target, X).complete


@pytest.mark.parametrize("target", KEPT)
def test_a_number_that_was_kept_may_come_back(target: Callable[[Tensor], Tensor]) -> None:
    assert [warning.kind for warning in endoscope.trace(target, X).warnings] == ["left"]


def test_a_number_that_is_tested_and_used_is_a_gap() -> None:
    def target(x: Tensor) -> Tensor:
        return x * total if (total := x.sum().item()) > 0 else x

    trace = endoscope.trace(target, X)
    assert trace.conditional
    assert [warning.kind for warning in trace.warnings] == ["left"]


def test_one_value_asked_twice_in_a_row() -> None:
    def target(x: Tensor) -> Tensor:
        total = x.sum()
        if total.item() > 0:
            x = x * total.item()
        return x

    assert not endoscope.trace(target, X).complete


def test_a_number_that_only_comes_back_is_no_condition() -> None:
    trace = endoscope.trace(lambda x: x * x.sum().item(), X)
    assert not trace.conditional
    assert not trace.conditions
    assert "Conditional" not in str(trace)


def test_a_tensor_that_is_asked_itself() -> None:
    trace = endoscope.trace(lambda x: x * 2 if x.sum() > 0 else x, X)
    assert [op.type for op in trace.conditions] == ["gt"]
    assert torch.equal(trace.result, X * 2)

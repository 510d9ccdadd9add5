"""Custom autograd functions and library operators: boundaries around the operations inside."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import endoscope
from tests.contract.helpers import ancestors, computed, identical, labels, only, proves, types

X = torch.arange(1.0, 7.0).reshape(2, 3)


class Cube(torch.autograd.Function):
    """Forward in two elementary operations, its own backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        squared = x * x
        return torch.mul(squared, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


class CubeOfCube(torch.autograd.Function):
    """A custom function that uses another one inside."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.tanh(Cube.apply(x))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class Same(torch.autograd.Function):
    """Returns its input, as gradient reversal layers do."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return -gradient


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_a_custom_autograd_function_is_a_boundary_around_its_operations(needs_gradient: bool) -> None:
    x = X.clone().requires_grad_(needs_gradient)
    trace = endoscope.trace(lambda x: Cube.apply(x + 1).exp(), x)
    assert types(computed(trace)) == ["add", "mul", "mul", "exp"]
    assert [op.functions for op in computed(trace)] == [(), ("Cube",), ("Cube",), ()]
    assert labels(only(trace, "exp").parents) == ["mul_2_3"]
    assert "add_1_1" in labels(trace["mul_1"].parents)
    proves(lambda x: Cube.apply(x + 1).exp(), x)


def test_nested_custom_functions_are_named_outermost_first() -> None:
    trace = endoscope.trace(lambda x: CubeOfCube.apply(x), X)
    assert only(trace, "tanh").functions == ("CubeOfCube",)
    assert trace["mul_1"].functions == ("CubeOfCube", "Cube")


def test_a_custom_function_that_returns_its_input() -> None:
    x = X.clone().requires_grad_()
    trace = endoscope.trace(lambda x: Same.apply(x * 2).exp(), x)
    assert only(trace, "mul").label in ancestors(only(trace, "exp"))
    trace.result.sum().backward()
    assert x.grad is not None
    assert identical(x.grad, -2 * (X * 2).exp())


@torch.library.custom_op(
    "endoscope_contract::damped_sine", mutates_args=(), schema="(Tensor x, float factor) -> Tensor"
)
def damped_sine(x, factor):  # type: ignore[no-untyped-def]  # the schema above says it
    """A library operator written in Python."""
    return torch.sin(x) * factor


@torch.library.custom_op("endoscope_contract::bump", mutates_args=("x",), schema="(Tensor(a!) x) -> ()")
def bump(x):  # type: ignore[no-untyped-def]
    """A library operator that writes into its argument."""
    x.add_(1)


def test_a_library_operator_is_a_boundary_around_its_operations() -> None:
    trace = endoscope.trace(lambda x: damped_sine(x, 3.0).exp(), X)
    sine = only(trace, "sin")
    assert any("damped_sine" in name for name in sine.functions)
    assert "input_1_0" in labels(sine.parents)
    assert sine.label in ancestors(only(trace, "exp"))
    assert only(trace, "exp").functions == ()
    assert identical(trace.result, (torch.sin(X) * 3.0).exp())


def test_a_library_operator_called_through_torch_ops() -> None:
    def target(x: Tensor) -> Tensor:
        result: Tensor = torch.ops.endoscope_contract.damped_sine(x, 2.0)
        return result

    assert "sin" in types(endoscope.trace(target, X).ops)
    proves(target, X)


def test_a_library_operator_that_writes_into_its_argument() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        bump(y)
        return y.exp()

    trace = endoscope.trace(target, X)
    add = only(trace, "add")
    assert add.label in labels(only(trace, "exp").parents)
    assert any("bump" in name for name in add.functions)
    assert identical(only(trace, "mul").value, X * 2)
    proves(target, X)

"""`gradients=True` keeps the gradient of every kept float op; `seed` makes a stochastic model repeatable."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import identical, labels, only
from tests.models import DemoNetwork, Mlp, Noisy, RecurrentNetwork

X = torch.rand(2, 5)


def test_gradients_of_every_kept_op_after_backward() -> None:
    model = Mlp()
    x = X.clone().requires_grad_()
    trace = endoscope.trace(model, x, gradients=True)
    (trace.result**2).sum().backward()

    first = F.linear(X, model.first.weight, model.first.bias)
    hidden = F.relu(first)
    last = F.linear(hidden, model.second.weight, model.second.bias)
    for tensor in (first, hidden, last):
        tensor.retain_grad()
    (last**2).sum().backward()
    for label, tensor in (("linear_1", first), ("relu_1", hidden), ("linear_2", last)):
        assert tensor.grad is not None
        assert identical(trace[label].gradient, tensor.grad)
    assert x.grad is not None
    assert identical(trace["input_1"].gradient, x.grad)


def test_gradients_of_parameters() -> None:
    model = Mlp()
    trace = endoscope.trace(model, X, gradients=True)
    trace.result.sum().backward()
    assert model.first.weight.grad is not None
    assert identical(trace["first.weight"].gradient, model.first.weight.grad)


def test_backward_inside_the_block() -> None:
    model = Mlp()
    with endoscope.tracing(model, gradients=True) as trace:
        model(X).sum().backward()
    assert identical(trace["linear_2"].gradient, torch.ones(2, 5))
    assert trace["relu_1"].gradient.shape == (2, 7)


def test_before_backward_there_is_none() -> None:
    trace = endoscope.trace(Mlp(), X, gradients=True)
    assert trace["relu_1"].gradient is None


def test_each_pass_has_its_own_gradient() -> None:
    model = RecurrentNetwork()
    trace = endoscope.trace(model, X, gradients=True)
    trace.result.sum().backward()
    last = trace["linear_1_1:3"].gradient
    assert identical(last, torch.full((2, 5), 2.0))
    assert torch.allclose(trace["linear_1_1:2"].gradient, last @ model.fc.weight.detach() * 2)
    assert not torch.allclose(trace["linear_1_1:1"].gradient, trace["linear_1_1:2"].gradient)


def test_integer_and_detached_ops_have_none() -> None:
    def target(x: Tensor) -> Tensor:
        best = x.argmax(dim=1)
        cut = x.detach().exp()
        return x * 2 + cut + best[:, None]

    x = X.clone().requires_grad_()
    trace = endoscope.trace(target, x, gradients=True)
    trace.result.sum().backward()
    assert only(trace, "argmax").gradient is None
    assert only(trace, "exp").gradient is None
    assert identical(only(trace, "mul").gradient, torch.ones(2, 5))


def test_an_overwritten_tensor_has_the_gradient_of_each_moment() -> None:
    def target(x: Tensor) -> Tensor:
        y = x + 1
        y.mul_(3)
        return y.sum()

    trace = endoscope.trace(target, X.clone().requires_grad_(), gradients=True)
    trace.result.backward()
    assert identical(only(trace, "mul").gradient, torch.ones(2, 5))
    assert identical(only(trace, "add").gradient, torch.full((2, 5), 3.0))


def test_several_outputs_have_several_gradients() -> None:
    def target(x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=1)
        return left.sum() * 2 + right.sum() * 5

    trace = endoscope.trace(target, X.clone().requires_grad_(), gradients=True)
    trace.result.backward()
    left, right = only(trace, "chunk").gradient
    assert identical(left, torch.full((2, 3), 2.0))
    assert identical(right, torch.full((2, 2), 5.0))


def test_only_where_values_are_kept() -> None:
    trace = endoscope.trace(Mlp(), X, save="type:relu", gradients=True)
    trace.result.sum().backward()
    assert trace["relu_1"].gradient is not None
    assert labels([trace[0], trace[-1]]) == ["relu_1_2", "relu_1_2"]


def test_half_and_complex_gradients() -> None:
    def target(x: Tensor) -> Tensor:
        return torch.view_as_real(torch.complex(x, x) * 2).bfloat16().sum()

    trace = endoscope.trace(target, X.clone().requires_grad_(), gradients=True)
    trace.result.backward()
    assert only(trace, "mul").gradient.dtype == torch.complex64
    assert only(trace, "bfloat16").gradient.dtype == torch.bfloat16


@pytest.mark.parametrize("gradients", [False, True])
def test_asking_for_gradients_changes_no_gradient(gradients: bool) -> None:
    model = Mlp()
    x = X.clone().requires_grad_()
    endoscope.trace(model, x, gradients=gradients).result.exp().sum().backward()
    traced = [tensor.grad for tensor in (x, *model.parameters())]
    model.zero_grad()
    y = X.clone().requires_grad_()
    model(y).exp().sum().backward()
    plain = [tensor.grad for tensor in (y, *model.parameters())]
    for a, b in zip(traced, plain, strict=True):
        assert a is not None
        assert b is not None
        assert identical(a, b)


def test_asking_for_gradients_turns_nothing_into_a_leaf_that_needs_them() -> None:
    model = Mlp()
    model.first.requires_grad_(False)
    x = X.clone()
    trace = endoscope.trace(model, x, gradients=True)
    assert not x.requires_grad
    trace.result.sum().backward()
    assert x.grad is None
    assert model.first.weight.grad is None
    assert trace["input_1"].gradient is None
    assert trace["linear_1"].gradient is None
    assert trace["linear_2"].gradient is not None


def test_intermediate_tensors_do_not_start_to_retain_gradients() -> None:
    held: list[Tensor] = []

    def target(x: Tensor) -> Tensor:
        held.append(x * 2)
        return held[0].sum()

    trace = endoscope.trace(target, X.clone().requires_grad_(), gradients=True)
    trace.result.backward()
    assert held[0].retains_grad is False
    assert only(trace, "mul").gradient is not None


@pytest.mark.parametrize("model", [DemoNetwork(), Noisy()], ids=["demo", "noisy"])
def test_a_seed_repeats_everything(model: nn.Module) -> None:
    one = endoscope.trace(model, X, seed=7)
    torch.rand(3)
    two = endoscope.trace(model, X, seed=7)
    other = endoscope.trace(model, X, seed=8)
    initialised = [(a, b) for a, b in zip(one.ops, two.ops, strict=True) if a.type != "empty"]
    assert all(identical(a.value, b.value) for a, b in initialised)
    assert not identical(one.result, other.result)


def test_a_seed_is_the_seed_of_torch() -> None:
    model = DemoNetwork()
    traced = endoscope.trace(model, X, seed=11).result
    torch.manual_seed(11)
    assert identical(traced, model(X))


def test_a_seed_also_repeats_randomness_from_python_and_numpy() -> None:
    def target(x: Tensor) -> Tensor:
        return x * random.random() + float(np.random.rand())

    one = endoscope.trace(target, X, seed=5).result
    random.random()
    np.random.rand()
    assert identical(one, endoscope.trace(target, X, seed=5).result)


@pytest.mark.parametrize("model", [DemoNetwork(), Noisy()], ids=["demo", "noisy"])
def test_without_a_seed_the_random_stream_is_that_of_the_plain_run(model: nn.Module) -> None:
    torch.manual_seed(21)
    traced = endoscope.trace(model, X).result
    after = torch.get_rng_state()
    torch.manual_seed(21)
    plain = model(X)
    assert identical(traced, plain)
    assert torch.equal(after, torch.get_rng_state())


def test_without_a_seed_two_runs_differ() -> None:
    model = DemoNetwork()
    assert not identical(endoscope.trace(model, X).result, endoscope.trace(model, X).result)


def test_python_and_numpy_streams_are_left_alone() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()
    endoscope.trace(DemoNetwork(), X)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before

"""A value or gradient that is shown is the one of its moment, or reading it is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import endoscope
from tests.contract.helpers import identical, labels, true_or_refused


def test_running_statistics_that_a_later_training_step_moves() -> None:
    """Batch norm overwrites its statistics without counting a version."""
    model = nn.Sequential(nn.BatchNorm1d(3)).eval()
    trace = endoscope.trace(model, torch.randn(5, 3))
    model.train()
    model(torch.randn(5, 3) + 5)
    assert true_or_refused(trace["0.running_mean"], torch.zeros(3))


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_weights_after_a_fused_optimizer_step(name: str) -> None:
    """Fused steps overwrite weights without counting a version."""
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, fused=True)
    trace = endoscope.trace(model, torch.randn(5, 3))
    trace.result.sum().backward()
    optimizer.step()
    assert true_or_refused(trace["weight"], before)


def test_a_fused_step_inside_the_block_writes_its_state_too() -> None:
    """Not only the first argument is written: the moments and the step counts are, too."""
    model, x = nn.Linear(3, 2), torch.randn(5, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    for _ in range(2):
        with endoscope.tracing(model) as trace:
            model(x).sum().backward()
            optimizer.step()
    report = trace.validate()
    assert report.ok, str(report)


def test_the_gradient_of_a_parameter_is_not_the_buffer_that_training_reuses() -> None:
    model = nn.Linear(3, 2)
    with endoscope.tracing(model, gradients=True) as trace:
        model(torch.randn(5, 3)).sum().backward()
    expected = trace["weight"].gradient.clone()
    model.weight.grad.zero_()
    assert identical(trace["weight"].gradient, expected)


def test_a_second_backward_after_the_block_does_not_add_to_the_first() -> None:
    model, x = nn.Linear(3, 2), torch.randn(5, 3)
    with endoscope.tracing(model, gradients=True) as trace:
        model(x).sum().backward()
    expected = trace["weight"].gradient.clone()
    model(x).sum().backward()
    assert identical(trace["weight"].gradient, expected)


def test_the_gradient_of_an_operation_is_not_the_buffer_of_a_leaf() -> None:
    """`+` hands its gradient on as it is, and a leaf may adopt that very tensor as its `.grad`."""
    weight = torch.randn(3, requires_grad=True)
    trace = endoscope.trace(lambda w: ((w + 0) * 2).sum(), weight, gradients=True)
    trace.result.backward()
    weight.grad.mul_(100)
    assert identical(trace["add_1"].gradient, torch.full((3,), 2.0))


def test_gradients_of_earlier_steps_are_not_those_of_the_trace() -> None:
    model, x = nn.Linear(3, 2), torch.randn(5, 3)
    model(x).sum().backward()
    own = model.weight.grad.clone()
    trace = endoscope.trace(model, x, gradients=True)
    assert trace["weight"].gradient is None
    trace.result.sum().backward()
    assert identical(trace["weight"].gradient, own)


def test_a_frozen_parameter_shows_no_gradient_of_the_past() -> None:
    model, x = nn.Linear(3, 2), torch.randn(5, 3)
    model(x).sum().backward()
    model.bias.requires_grad_(False)
    trace = endoscope.trace(model, x, gradients=True)
    trace.result.sum().backward()
    assert trace["bias"].gradient is None


def test_looking_at_a_running_trace_does_not_freeze_it() -> None:
    model, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.randn(2, 3)
    with endoscope.tracing(model) as trace:
        model(x)
        assert len(trace) == 4
        str(trace)
        _ = trace["relu_1"].value
        model(x)
    assert labels(trace)[-2:] == ["relu_1_2:2", "output_2_4"]
    assert trace.validate().ok


def test_a_constant_that_numpy_overwrites() -> None:
    """Reading it later must not show the new numbers as the old ones."""

    def target(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(3)
        y.numpy()[:] = 5
        return x + y

    trace = endoscope.trace(target, torch.randn(3))
    assert not trace.complete or true_or_refused(trace["zeros_1"], torch.zeros(3))

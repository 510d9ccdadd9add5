"""Validation runs the target several times and leaves everything as it found it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.capture.change.state import State, random_states, set_random_states
from tests.models import Mlp

X = torch.rand(3, 5)


class Restless(nn.Module):
    """Changes whatever a forward pass can change."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.fc = nn.Linear(5, 5)
        self.steps = 0
        self.average = 0.5
        self.cache: Tensor = torch.zeros(5)
        self.total: Tensor
        self.register_buffer("total", torch.zeros(5))
        self.register_buffer("late", None)

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.average *= 0.9
        self.cache = x.detach().mean(0)
        self.total.add_(1)
        self.late = torch.ones(2)
        x = F.dropout(self.fc(self.norm(x)), 0.5)
        return x + random.random() + float(np.random.rand())


def snapshot(model: nn.Module) -> dict[str, Any]:
    found: dict[str, Any] = {name: value.clone() for name, value in model.state_dict().items()}
    found |= {n: v for n, v in vars(model).items() if isinstance(v, (int, float, Tensor)) or v is None}
    found["late"] = model._buffers.get("late")
    return found


def equal(a: Any, b: Any) -> bool:
    return torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else bool(a == b)


def test_the_module_is_put_back() -> None:
    model = Restless()
    before = snapshot(model)
    assert endoscope.validate(model, X)
    after = snapshot(model)
    assert before.keys() == after.keys()
    assert [name for name in before if not equal(before[name], after[name])] == []


def test_buffers_stay_the_same_objects() -> None:
    model = Restless()
    buffers = dict(model.named_buffers())
    assert endoscope.validate(model, X)
    assert all(buffer is buffers[name] for name, buffer in model.named_buffers())


def test_the_random_streams_are_put_back() -> None:
    model = Restless()
    before = random_states()
    assert endoscope.validate(model, X)
    drawn = torch.rand(3), random.random(), np.random.rand()
    set_random_states(before)
    assert torch.equal(drawn[0], torch.rand(3))
    assert drawn[1:] == (random.random(), np.random.rand())


def test_inputs_are_put_back() -> None:
    x, y = X.clone(), {"deep": [X.clone()]}
    assert endoscope.validate(lambda x, y: x.add_(1) * y["deep"][0].zero_().sum(), (x, y))
    assert torch.equal(x, X)
    assert torch.equal(y["deep"][0], X)


def test_gradients_are_put_back() -> None:
    model, x = Mlp(), X.clone().requires_grad_()
    model(x).sum().backward()
    before = {name: (p.grad, p.grad.clone()) for name, p in [*model.named_parameters(), ("x", x)] if p.grad is not None}
    assert len(before) == 5
    assert endoscope.validate(model, x)
    for name, p in [*model.named_parameters(), ("x", x)]:
        assert p.grad is before[name][0]
        assert p.grad is not None and torch.equal(p.grad, before[name][1])


def test_everything_is_put_back_after_an_exception() -> None:
    class Breaks(Restless):
        def forward(self, x: Tensor) -> Tensor:
            super().forward(x)
            raise ValueError("inside")

    model, x = Breaks(), X.clone()
    before, state = snapshot(model), torch.get_rng_state()
    with pytest.raises(ValueError, match="inside"):
        endoscope.validate(model, x)
    assert [name for name, value in snapshot(model).items() if not equal(before[name], value)] == []
    assert torch.equal(torch.get_rng_state(), state)


def test_a_finished_trace_is_proven_without_leaving_a_mark() -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Dropout(0.5))
    trace = endoscope.trace(model, X)
    before, state = snapshot(model), torch.get_rng_state()
    assert trace.validate()
    assert [n for n, v in snapshot(model).items() if not equal(before[n], v)] == []
    assert torch.equal(state, torch.get_rng_state())


def test_state_by_itself() -> None:
    """What is saved is what is put back, also for tensors whose version counter did not move."""
    model = nn.BatchNorm1d(5)
    x = X.clone()
    state = State(model, (x,), {})
    model(x)
    x.mul_(3)
    torch.rand(1)
    assert not torch.equal(model.running_mean, torch.zeros(5))  # type: ignore[arg-type]
    state.restore()
    assert torch.equal(model.running_mean, torch.zeros(5))  # type: ignore[arg-type]
    assert torch.equal(model.running_var, torch.ones(5))  # type: ignore[arg-type]
    assert int(model.num_batches_tracked) == 0  # type: ignore[arg-type]
    assert torch.equal(x, X)


def test_parameters_are_put_back() -> None:
    class Learns(Mlp):
        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                self.first.weight.mul_(0.5)
            return super().forward(x)

    model = Learns()
    before = model.first.weight.detach().clone()
    assert endoscope.validate(model, X)
    assert torch.equal(model.first.weight, before)


def test_modules_of_a_function_are_put_back() -> None:
    model = Restless()
    before = snapshot(model)
    assert endoscope.validate(lambda x: model(x) * 2, X)
    assert [n for n, v in snapshot(model).items() if not equal(before[n], v)] == []


def test_a_model_that_is_different_under_trace_is_caught() -> None:
    def target(x: Tensor) -> Tensor:
        return x * (2 if torch._C._len_torch_function_stack() else 3)

    report = endoscope.validate(target, X)
    assert not report
    assert any(f.check == "untouched" and "output" in f.reason for f in report.failures)

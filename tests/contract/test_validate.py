"""The proof: what it checks, what its report says, and that planted faults are found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.errors import EndoscopeError
from tests.contract.helpers import computed, identical, label_of, labels, proves
from tests.models import (
    AttentionBlock,
    ConvNet,
    DemoNetwork,
    InplaceResidual,
    Mlp,
    NestedOutputs,
    Noisy,
    OrganizedNetwork,
    RecurrentNetwork,
    Residual,
    SharedActivation,
    SumOfList,
    ThroughView,
    TiedEmbedding,
    TwoInputs,
    scaled_sum,
)

X = torch.rand(5, 5)


def size(checked: Any) -> int:
    """`report.checked` as a number, whether it counts or lists."""
    return checked if isinstance(checked, int) else len(checked)


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        (DemoNetwork(), X),
        (RecurrentNetwork(), X),
        (OrganizedNetwork(), X),
        (Mlp(), X),
        (ConvNet(), torch.rand(2, 1, 8, 8)),
        (Residual(), X),
        (Residual().eval(), X),
        (InplaceResidual(), X),
        (Noisy(), X),
        (SharedActivation(), X),
        (TiedEmbedding(), torch.tensor([[1, 2, 3]])),
        (TwoInputs(), (X, X + 1, 2.0)),
        (TwoInputs(), {"a": X, "b": X + 1}),
        (SumOfList(), ([X, X],)),
        (NestedOutputs(), X),
        (ThroughView(), X),
        (AttentionBlock(), torch.rand(2, 3, 8)),
        (scaled_sum, (X, X)),
        (lambda: torch.ones(3) * 2, ()),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_it_holds_on_ordinary_models(target: Callable[..., Any], inputs: Any) -> None:
    report = proves(target, inputs)
    assert size(report.checked) >= 1


def test_the_report_of_a_trace_that_holds() -> None:
    trace = endoscope.trace(Mlp(), X)
    report = trace.validate()
    assert bool(report) is True
    assert report.ok is True
    assert list(report.failures) == []
    assert size(report.checked) >= len(computed(trace))


@pytest.mark.parametrize(
    "target",
    [
        lambda x: x * 0,
        lambda x: x * torch.zeros(5, 5) + x,
        lambda x: torch.where(x > 0.5, x, -x),
        lambda x: torch.where(x > -1, x, x.exp()),
        lambda x: x.masked_fill(x > -1, 3.0),
        lambda x: x[torch.tensor([0, 0, 1])],
        lambda x: x.gather(1, torch.zeros(5, 1, dtype=torch.long)),
        lambda x: x.clamp(min=2),
        lambda x: F.relu(-x - 1),
        lambda x: torch.zeros_like(x),
        lambda x: x.argmax(),
        lambda x: (x > 100).any(),
        lambda x: torch.maximum(x, torch.full((5, 5), 9.0)),
        lambda x: x.sign(),
        lambda x: x.round().long().float(),
        lambda x: x - x,
        lambda x: x / x,
        lambda x: x.softmax(-1).sum(-1),
        lambda x: F.dropout(x, 1.0),
        lambda x: x.new_ones(3) + x.sum() * 0,
        lambda x: torch.full((5, 5), float("nan")) + x,
        lambda x: torch.full((5, 5), float("inf")) + x,
        lambda x: x[:0].sum() + torch.empty(0).sum(),
        lambda x: torch.cat([x[:0], x]),
        lambda x: (x * 1e30) * 1e30 * 0.5,
        lambda x: x.to(torch.int8) // 3,
        lambda x: F.one_hot(x.mul(4).long(), 5).sum(),
        lambda x: torch.empty(3).fill_(2.0) + x.sum(),
        lambda x: torch.empty_like(x).copy_(x),
    ],
)
def test_parents_that_need_not_matter_raise_no_false_alarm(target: Callable[[Tensor], Tensor]) -> None:
    proves(target, X)


@pytest.mark.parametrize(
    "target",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: torch.bernoulli(x),
        lambda x: x + torch.empty(5).normal_(),
        lambda x: torch.multinomial(x, 2),
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.rand_like(x) * x,
        lambda x: x[torch.randperm(5)],
        lambda x: F.rrelu(x - 0.5, training=True),
        lambda x: torch.distributions.Normal(x, 1.0).rsample(),
    ],
)
def test_stochastic_operations_are_repeated_exactly(target: Callable[[Tensor], Tensor]) -> None:
    assert not identical(target(X), target(X)), "this should be stochastic"
    proves(target, X)


def plant(op: Any, index: tuple[int, ...], value: float) -> float:
    """Overwrite one element of a kept value behind everyone's back; returns what was there."""
    array = op.value.detach().numpy()
    before = float(array[index])
    array[index] = value
    return before


def fresh() -> Any:
    """A trace whose values are whole numbers and share no storage, so that faults can be planted by hand."""

    def target(x: Tensor) -> Tensor:
        doubled = x * 2
        shifted = x + 3
        product = doubled * shifted
        return product - 1

    return endoscope.trace(target, torch.arange(1.0, 7.0).reshape(2, 3))


def test_the_fault_free_twin_holds() -> None:
    assert fresh().validate()


@pytest.mark.parametrize("label", ["mul_1_1", "add_1_2", "mul_2_3", "sub_1_4"])
def test_one_corrupted_element_is_found_and_described(label: str) -> None:
    trace = fresh()
    before = plant(trace[label], (1, 2), 4321.5)
    report = trace.validate()
    assert not report
    assert report.ok is False
    (failure,) = [failure for failure in report.failures if label_of(failure.op) == label][:1]
    text = f"{failure.reason} {failure}"
    assert label in text
    assert "4321.5" in text
    assert f"{before:g}" in text
    assert "1, 2" in text
    assert "test_validate.py" in text
    assert str(trace[label].source.line) in text


@pytest.mark.parametrize("delta", [1e-3, -1e-3])
def test_a_small_corruption_is_found(delta: float) -> None:
    trace = fresh()
    op = trace["mul_2_3"]
    plant(op, (0, 0), float(op.value[0, 0]) + delta)
    assert "mul_2_3" in {label_of(failure.op) for failure in trace.validate().failures}


def test_a_corruption_to_nan_is_found() -> None:
    trace = fresh()
    plant(trace["add_1_2"], (0, 1), float("nan"))
    assert "add_1_2" in {label_of(failure.op) for failure in trace.validate().failures}


def test_two_swapped_values_are_found() -> None:
    trace = fresh()
    one, two = trace["mul_1_1"].value.detach().numpy(), trace["add_1_2"].value.detach().numpy()
    kept = one.copy()
    one[...] = two
    two[...] = kept
    report = trace.validate()
    assert not report
    assert {"mul_1_1", "add_1_2"} <= {label_of(failure.op) for failure in report.failures}


def test_a_value_overwritten_after_the_trace_is_found() -> None:
    trace = fresh()
    trace.result.add_(1)
    assert not trace.validate()


def test_a_corrupted_input_is_found() -> None:
    trace = fresh()
    plant(trace["input_1_0"], (0, 0), 50.0)
    assert not trace.validate()


def test_a_corrupted_output_is_found() -> None:
    trace = fresh()
    plant(trace["output_1_5"], (0, 0), 50.0)
    assert not trace.validate()


def test_a_model_that_is_never_the_same_twice_is_not_called_proven() -> None:
    calls = []

    class Drifting(nn.Module):
        """Counts its calls where nobody can put the count back: no run equals the one before."""

        def forward(self, x: Tensor) -> Tensor:
            calls.append(1)
            return x * len(calls)

    report = endoscope.validate(Drifting(), X)
    assert not report
    assert len(list(report.failures)) >= 1
    assert all(failure.reason for failure in report.failures)


def test_a_trace_without_values_does_not_claim_to_be_proven() -> None:
    trace = endoscope.trace(Mlp(), X, save="none")
    try:
        report = trace.validate()
    except EndoscopeError:
        return  # refusing is as honest as a report that says no
    assert not report or size(report.checked) == 0


def test_validation_leaves_the_model_at_most_as_one_plain_run_does() -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Dropout(0.5))
    untouched, run_once = copy.deepcopy(model), copy.deepcopy(model)
    x = X.clone().requires_grad_()
    run_once(x)
    assert endoscope.validate(model, x)
    found = model.state_dict()
    assert any(
        all(identical(found[key], value) for key, value in twin.state_dict().items()) for twin in (untouched, run_once)
    )
    assert all(p.grad is None for p in model.parameters())
    assert x.grad is None
    assert model.training


def test_validation_keeps_gradients_that_were_there() -> None:
    model = Mlp()
    model(X).sum().backward()
    grads = [p.grad for p in model.parameters()]
    copies = [g.clone() for g in grads if g is not None]
    assert endoscope.validate(model, X)
    assert all(p.grad is g for p, g in zip(model.parameters(), grads, strict=True))
    assert all(g is not None and identical(g, c) for g, c in zip(grads, copies, strict=True))


def test_validation_leaves_the_inputs_at_most_as_one_plain_run_does() -> None:
    x = X.clone()
    assert endoscope.validate(lambda x: x.add_(1).exp(), x)
    assert identical(x, X) or identical(x, X + 1)


def test_validating_a_trace_does_not_change_it() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    before = [op.value.clone() for op in trace.ops]
    assert trace.validate()
    assert trace.validate()
    assert all(identical(op.value, value) for op, value in zip(trace.ops, before, strict=True))
    assert labels(trace.ops)[0] == "input_1_0"


def test_an_exception_in_the_model_reaches_the_user_from_validate_too() -> None:
    error = ValueError("inside")

    def target(x: Tensor) -> Tensor:
        raise error

    with pytest.raises(ValueError, match="inside") as caught:
        endoscope.validate(target, X)
    assert caught.value is error


def test_an_operation_that_hides_from_function_modes_is_seen_or_reported() -> None:
    def target(x: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            hidden = x.cosh()
        return hidden + x

    seen = "cosh" in {op.type for op in endoscope.trace(target, X).ops}
    report = endoscope.validate(target, X)
    told = " ".join(f"{label_of(failure.op)} {failure.reason}" for failure in report.failures)
    assert (seen and report.ok) or (not report and "cosh" in told)


def test_a_wrong_answer_in_the_traced_run_would_be_found() -> None:
    class NoticesTracing(nn.Module):
        """Behaves differently when any function mode is on: exactly what (d) is there to catch."""

        def forward(self, x: Tensor) -> Tensor:
            if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
                return x * 2
            return x * 3

    same = identical(endoscope.trace(NoticesTracing(), X).result, X * 3)
    assert bool(endoscope.validate(NoticesTracing(), X)) is same

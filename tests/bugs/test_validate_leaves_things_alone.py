"""Validation puts back what it changed, and gives an answer instead of an internal error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

import endoscope
from tests.contract.helpers import identical, proves

X = torch.arange(1.0, 9.0).reshape(2, 4)


class SetsItselfUp(nn.Module):
    """The usual pattern: a flag and a buffer that appear on the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = False

    def forward(self, x: Tensor) -> Tensor:
        if not self.ready:
            self.register_buffer("cache", torch.ones(4))
            self.ready = True
        return x * self.cache


def test_a_model_that_sets_itself_up_works_afterwards() -> None:
    model = SetsItselfUp()
    report = endoscope.validate(model, X)
    assert report.ok, str(report)
    model(X)


def test_a_model_that_remembers_its_last_result() -> None:
    class Remembers(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.last = x * 2 + getattr(self, "last", 0)
            return self.last.sum()

    model = Remembers()
    proves(model, X)
    assert not hasattr(model, "last")


@pytest.mark.parametrize("through_data", [False, True])
def test_parameters_that_the_model_changes_are_put_back(through_data: bool) -> None:
    class Changes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                (self.weight.data if through_data else self.weight).add_(x[0])
            return self.weight * x

    model = Changes()
    report = endoscope.validate(model, X)
    assert identical(model.weight, torch.ones(4))
    assert report.ok, str(report)


def test_an_embedding_with_a_largest_norm() -> None:
    model = nn.Embedding(10, 3, max_norm=0.5)
    before = model.weight.detach().clone()
    proves(model, torch.tensor([1, 2, 4]))
    assert identical(model.weight, before)


def test_a_generator_of_the_models_own_is_rewound() -> None:
    class Draws(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator = torch.Generator()

        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand(4, generator=self.generator)

    proves(Draws(), X)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("inside", [False, True])
def test_scripted_modules(inside: bool) -> None:
    script = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval())
    proves(nn.Sequential(script, nn.Linear(4, 2)) if inside else script, X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_quantisation_aware_training_resizes_its_buffers() -> None:
    from torch.ao import quantization

    layer = nn.Linear(4, 4)
    layer.qconfig = quantization.get_default_qat_qconfig()
    model = quantization.prepare_qat(nn.Sequential(layer))
    assert endoscope.trace(model, X).graph_hash == endoscope.trace(model, X, save="none").graph_hash
    proves(quantization.prepare_qat(nn.Sequential(layer)), X)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_small_floats_that_torch_cannot_compare(dtype: torch.dtype) -> None:
    proves(lambda x: x.to(dtype).view(4, 2).float(), X)


def test_tensors_without_numbers_get_an_answer() -> None:
    """There is nothing to compare; shapes and types still can be."""
    endoscope.validate(nn.Linear(4, 2, device="meta"), X.to("meta"))


def test_fake_tensors_get_an_answer() -> None:
    with FakeTensorMode():
        model, x = nn.Linear(4, 2), torch.randn(2, 4)
    endoscope.validate(model, x)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_subclasses_that_cannot_be_compared_get_an_answer() -> None:
    endoscope.validate(lambda x: torch.masked.masked_tensor(x, x > 3).sum(), X)


FORWARD: dict[str, Callable[[Tensor], object]] = {
    "jvp": lambda x: torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),)),
    "jacfwd": lambda x: torch.func.jacfwd(torch.sin)(x[0]),
    "hessian": lambda x: torch.func.hessian(lambda y: y.sin().sum())(x[0]),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_differentiation(name: str) -> None:
    proves(FORWARD[name], X)


def test_uninitialised_memory_is_not_expected_to_repeat() -> None:
    def target(x: Tensor) -> Tensor:
        y = x[0] * 2
        y.resize_(6)
        y[4:] = 0
        return y + 1

    proves(target, X)


CONSTANT_RESULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "argmax over one": lambda x: x[:, :1].argmax(1),
    "argsort of one": lambda x: x[:, :1].argsort(1),
    "power of zero": lambda x: x**0,
    "and with zero": lambda x: x.long() & 0,
    "remainder of one": lambda x: x.long() % 1,
    "nothing left of a triangle": lambda x: x.tril(-5),
    "beta of zero": lambda x: torch.addmm(x, x[:, :2], x[:2], beta=0),
}


@pytest.mark.parametrize("name", CONSTANT_RESULTS)
def test_results_that_no_value_of_the_parent_could_change(name: str) -> None:
    proves(CONSTANT_RESULTS[name], X)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", [torch.nested.nested_tensor, torch.nested.as_nested_tensor])
def test_operations_on_nested_tensors_can_be_printed_and_tabled(make: Callable[..., Tensor]) -> None:
    trace = endoscope.trace(lambda x: make([x[:1] * 2, x]).sin().to_padded_tensor(0.0), X)
    trace.ops.to_arrow()
    assert all(str(op) for op in trace)

"""Kinds of tensors: complex, quantised, sparse, nested, subclasses, low precision, empty, on no device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import ancestors, computed, identical, only, proves, types

X = torch.linspace(-1, 1, 12).reshape(3, 4)
prototype_api = pytest.mark.filterwarnings("ignore:.*(prototype|beta state|quantized tensor creation).*:UserWarning")
old_quantisation = pytest.mark.filterwarnings("ignore:.*torch.ao.quantization.*:DeprecationWarning")


def test_complex() -> None:
    def target(x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x)
        spectrum.real.mul_(2)
        return torch.fft.irfft(spectrum * torch.conj(spectrum)).abs()

    trace = endoscope.trace(target, X)
    assert {op.dtype for op in trace.ops if op.type == "conj"} == {torch.complex64}
    assert identical(trace.result, target(X))
    scaled = next(op for op in trace.ops if op.type == "mul")
    assert scaled.label in ancestors(trace.outputs[0])
    proves(target, X)


def test_complex_parameters_and_views() -> None:
    class Rotation(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.phase = nn.Parameter(torch.randn(2, dtype=torch.complex64))

        def forward(self, x: Tensor) -> Tensor:
            return torch.view_as_real(torch.view_as_complex(x.reshape(3, 2, 2)) * self.phase).flatten(1)

    model = Rotation()
    trace = endoscope.trace(model, X)
    assert trace["phase"].dtype == torch.complex64
    assert identical(trace.result, model(X))
    proves(model, X)


@prototype_api
def test_quantised_tensors() -> None:
    def target(x: Tensor) -> Tensor:
        small = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
        return torch.relu(small).reshape(4, 3).dequantize() * 2

    trace = endoscope.trace(target, X)
    quantised = only(trace, "quantize_per_tensor")
    assert quantised.dtype == torch.qint8
    assert quantised.label in ancestors(only(trace, "dequantize"))
    assert identical(trace.result, target(X))
    assert "qint8" in str(quantised)
    proves(target, X)


@old_quantisation
@prototype_api
def test_dynamically_quantised_layers() -> None:
    model = torch.ao.quantization.quantize_dynamic(
        nn.Sequential(nn.Linear(4, 4), nn.ReLU()), {nn.Linear}, dtype=torch.qint8
    )
    trace = endoscope.trace(model, X)
    assert identical(trace.result, model(X))
    assert "input_1_0" in ancestors(only(trace, "relu"))
    proves(model, X)


@prototype_api
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=["coo", "csr"])
def test_sparse_tensors(layout: torch.layout) -> None:
    def target(x: Tensor) -> Tensor:
        thin = (x * (x > 0)).to_sparse(layout=layout)
        return torch.sparse.mm(thin, x.T) + 1

    trace = endoscope.trace(target, X)
    sparse = only(trace, "to_sparse")
    assert sparse.value.layout == layout
    assert sparse.label in ancestors(trace.outputs[0])
    assert identical(trace.result, target(X))
    proves(target, X)


@prototype_api
def test_sparse_inputs_and_parameters() -> None:
    adjacency = torch.eye(3).to_sparse()

    class GraphLayer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.table = nn.Embedding(3, 4, sparse=True)

        def forward(self, graph: Tensor, x: Tensor) -> Tensor:
            return torch.sparse.mm(graph, self.fc(x) + self.table(torch.arange(3)))

    model = GraphLayer()
    trace = endoscope.trace(model, (adjacency, X))
    assert identical(trace.result, model(adjacency, X))
    assert {"input_1_0", "input_2_1", "fc.weight", "table.weight"} <= ancestors(trace.outputs[0])
    proves(model, (adjacency, X))


@prototype_api
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=["strided", "jagged"])
def test_nested_tensors(layout: torch.layout) -> None:
    fc = nn.Linear(4, 2)

    def target(a: Tensor, b: Tensor) -> Tensor:
        both = torch.nested.as_nested_tensor([a, b], layout=layout)
        return torch.nested.to_padded_tensor(fc(both).relu(), 0.0)

    inputs = (X, X[:2] + 1)
    trace = endoscope.trace(target, inputs)
    assert {"linear", "relu"} <= set(types(trace.ops))
    assert identical(trace.result, target(*inputs))
    assert {"input_1_0", "input_2_1"} <= ancestors(trace.outputs[0])
    proves(target, inputs)


class Tagged(torch.Tensor):
    """The plainest subclass: keeps its class through every function."""


class Counting(torch.Tensor):
    """A subclass with an override of its own."""

    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Boxed(torch.Tensor):
    """A wrapper subclass: no storage of its own, another tensor inside, works at dispatch."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Boxed:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def unwrap(value: Any) -> Any:
            return value.inner if isinstance(value, Boxed) else value

        result = func(*[unwrap(a) for a in args], **{k: unwrap(v) for k, v in (kwargs or {}).items()})
        return Boxed(result) if isinstance(result, Tensor) else result


def test_a_plain_subclass() -> None:
    x = X.clone().as_subclass(Tagged)
    target: Callable[[Tensor], Tensor] = lambda x: (x * 2).relu().sum(0)  # noqa: E731
    trace = endoscope.trace(target, x)
    assert type(trace.result) is Tagged
    assert types(computed(trace)) == ["mul", "relu", "sum"]
    assert "input_1_0" in ancestors(trace.outputs[0])
    assert torch.equal(trace.result.as_subclass(Tensor), target(X))
    proves(target, x)


def test_a_subclass_with_an_override_is_asked_as_often_as_without_a_trace() -> None:
    x = X.clone().as_subclass(Counting)
    target: Callable[[Tensor], Tensor] = lambda x: torch.sin(x * 2)  # noqa: E731
    Counting.calls.clear()
    target(x)
    plain = list(Counting.calls)
    Counting.calls.clear()
    trace = endoscope.trace(target, x)
    traced = [name for name in Counting.calls if name in plain]
    assert traced == plain
    assert type(trace.result) is Counting
    assert types(computed(trace)) == ["mul", "sin"]


def test_a_wrapper_subclass() -> None:
    x = Boxed(X.clone())
    target: Callable[[Tensor], Tensor] = lambda x: torch.sin(x) * 2  # noqa: E731
    trace = endoscope.trace(target, x)
    assert isinstance(trace.result, Boxed)
    assert torch.equal(trace.result.inner, torch.sin(X) * 2)
    assert {"sin", "mul"} <= set(types(trace.ops))
    assert "input_1_0" in ancestors(trace.outputs[0])
    proves(target, x)


def test_a_parameter_of_a_subclass() -> None:
    model = nn.Linear(4, 4)
    model.weight = nn.Parameter(model.weight.detach().clone().as_subclass(Tagged))
    trace = endoscope.trace(model, X)
    assert "weight" in ancestors(trace.outputs[0])
    assert trace["weight"].kind == "parameter"
    proves(model, X)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn], ids=str)
def test_every_width_of_float(dtype: torch.dtype) -> None:
    def target(x: Tensor) -> Tensor:
        return x.to(dtype).to(torch.float32) * 2

    trace = endoscope.trace(target, X)
    first = next(op for op in trace.ops if op.type == "to")
    assert first.dtype == dtype
    assert first.bytes == 12 * torch.empty((), dtype=dtype).element_size()
    proves(target, X)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool], ids=str)
def test_integers_and_booleans_have_edges_too(dtype: torch.dtype) -> None:
    def target(x: Tensor) -> Tensor:
        whole = (x * 10).abs().to(dtype)
        return whole.sum() + whole.long().max()

    trace = endoscope.trace(target, X)
    assert only(trace, "mul").label in ancestors(only(trace, "max"))
    assert identical(trace.result, target(X))
    proves(target, X)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0, 2), ()], ids=str)
def test_empty_tensors_and_scalars(shape: tuple[int, ...]) -> None:
    def target(x: Tensor) -> Tensor:
        return (x * 2).sum() + 1

    x = torch.ones(shape)
    trace = endoscope.trace(target, x)
    assert types(computed(trace)) == ["mul", "sum", "add"]
    assert tuple(trace["mul_1"].shape) == shape
    proves(target, x)


def test_nothing_but_shapes_on_the_meta_device() -> None:
    with torch.device("meta"):
        model = nn.Linear(4, 2)
    trace = endoscope.trace(model, torch.empty(3, 4, device="meta"), save="none")
    assert tuple(only(trace, "linear").shape) == (3, 2)
    assert trace.result.device.type == "meta"


def test_channels_last_and_other_strides() -> None:
    model = nn.Conv2d(2, 3, 3)
    x = torch.rand(1, 2, 5, 5).to(memory_format=torch.channels_last)
    trace = endoscope.trace(model, x)
    assert trace.result.stride() == model(x).stride()
    assert identical(only(trace, "conv2d").value, model(x))
    proves(model, x)


def test_not_a_number_and_infinity() -> None:
    def target(x: Tensor) -> Tensor:
        return torch.log(x) / (x - x)

    trace = endoscope.trace(target, X)
    assert identical(trace.result, target(X))
    assert trace["log_1"].value.isnan().any()
    proves(target, X)

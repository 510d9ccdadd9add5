"""Every elementary operation is one op, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import ancestors, computed, identical, labels, only, proves, types
from tests.models import AttentionBlock, HoldsNoise, OrganizedNetwork

X = torch.arange(1.0, 7.0).reshape(2, 3)


def check_type(function: Callable[[Tensor], Any], expected: str) -> None:
    """One call is one op of this type, it hangs on the input, and its value is the plain result."""
    trace = endoscope.trace(function, X.clone())
    assert types(computed(trace)) == [expected]
    op = only(trace, expected)
    assert "input_1_0" in labels(op.parents)
    assert identical(op.value, function(X.clone()))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: torch.sin(x), "sin"),
        (lambda x: x.sin(), "sin"),
        (lambda x: torch.add(x, 1), "add"),
        (lambda x: x.add(1), "add"),
        (lambda x: F.relu(x), "relu"),
        (lambda x: torch.relu(x), "relu"),
        (lambda x: F.softmax(x, dim=-1), "softmax"),
        (lambda x: x.softmax(-1), "softmax"),
        (lambda x: torch.flatten(x), "flatten"),
        (lambda x: x.reshape(3, 2), "reshape"),
        (lambda x: x.view(6), "view"),
        (lambda x: x.permute(1, 0), "permute"),
        (lambda x: x.sum(), "sum"),
        (lambda x: torch.sum(x, dim=0), "sum"),
        (lambda x: torch.einsum("ij->ji", x), "einsum"),
        (lambda x: torch.cat([x, x]), "cat"),
        (lambda x: torch.stack((x, x)), "stack"),
        (lambda x: x.clone(), "clone"),
        (lambda x: x.detach(), "detach"),
        (lambda x: x.to(torch.float64), "to"),
    ],
)
def test_functions_and_methods(function: Callable[[Tensor], Any], expected: str) -> None:
    check_type(function, expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x + 1, "add"),
        (lambda x: 1 + x, "add"),
        (lambda x: x + x, "add"),
        (lambda x: x - 1, "sub"),
        (lambda x: x * 2, "mul"),
        (lambda x: 2 * x, "mul"),
        (lambda x: x / 2, "div"),
        (lambda x: x // 2, "floor_divide"),
        (lambda x: x % 2, "remainder"),
        (lambda x: x**2, "pow"),
        (lambda x: x @ x.reshape(3, 2), "matmul"),
        (lambda x: -x, "neg"),
        (lambda x: abs(x), "abs"),
        (lambda x: x > 2, "gt"),
        (lambda x: x <= 2, "le"),
        (lambda x: x == 2, "eq"),
        (lambda x: x != 2, "ne"),
        (lambda x: x[0], "getitem"),
        (lambda x: x[:, 1:], "getitem"),
        (lambda x: x[..., None], "getitem"),
    ],
)
def test_operators(function: Callable[[Tensor], Any], expected: str) -> None:
    trace = endoscope.trace(function, X.clone())
    op = only(trace, expected)
    assert "input_1_0" in labels(op.parents)
    assert identical(op.value, function(X.clone()))
    assert identical(trace.outputs[0].value, function(X.clone()))


@pytest.mark.parametrize(
    "function",
    [lambda x: 1 - x, lambda x: 1 / x, lambda x: 2**x, lambda x: ~(x > 2), lambda x: (x > 2) & (x < 5)],
    ids=["rsub", "rtruediv", "rpow", "invert", "and"],
)
def test_operators_that_python_turns_round(function: Callable[[Tensor], Tensor]) -> None:
    trace = endoscope.trace(function, X)
    assert "input_1_0" in ancestors(trace.outputs[0])
    assert len(computed(trace)) >= 1
    assert all("__" not in type_ for type_ in types(trace.ops))
    assert identical(trace.outputs[0].value, function(X))
    proves(function, X)


def test_a_reversed_division_is_seen_as_its_elementary_operations() -> None:
    trace = endoscope.trace(lambda x: 1 / x, X)
    assert "reciprocal" in types(trace.ops)


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda y: y.add_(1), "add"),
        (lambda y: y.mul_(2), "mul"),
        (lambda y: y.__iadd__(1), "add"),
        (lambda y: y.relu_(), "relu"),
        (lambda y: F.relu(y, inplace=True), "relu"),
        (lambda y: torch.sigmoid_(y), "sigmoid"),
        (lambda y: y.clamp_(min=2), "clamp"),
        (lambda y: y.masked_fill_(y > 2, 0.0), "masked_fill"),
        (lambda y: y.copy_(torch.ones(2, 3)), "copy"),
        (lambda y: y.zero_(), "zero"),
        (lambda y: y.uniform_(), "uniform"),
    ],
)
def test_in_place_methods_are_ops_under_their_plain_name(write: Callable[[Tensor], Any], expected: str) -> None:
    def target(x: Tensor) -> Tensor:
        y = x.clone()
        write(y)
        return y.exp()

    torch.manual_seed(1)
    trace = endoscope.trace(target, X)
    written = only(trace, expected)
    assert written.label in labels(only(trace, "exp").parents)
    assert identical(trace.result, only(trace, "exp").value)
    torch.manual_seed(1)
    assert identical(trace.result, target(X))


def test_augmented_assignment_is_an_op() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y += x
        y -= 1
        y *= 3
        y /= 7
        return y

    trace = endoscope.trace(target, X)
    assert types(computed(trace)) == ["mul", "add", "sub", "mul", "div"]
    assert identical(trace.outputs[0].value, target(X))


def test_the_out_argument() -> None:
    def target(x: Tensor) -> Tensor:
        room = torch.zeros(2, 3)
        torch.mul(x, 4, out=room)
        return room.exp()

    trace = endoscope.trace(target, X)
    mul = only(trace, "mul")
    assert "input_1_0" in labels(mul.parents)
    assert mul.label in labels(only(trace, "exp").parents)
    assert identical(mul.value, X * 4)
    room = next(op for op in [*trace.ops, *trace.orphans] if op.type == "zeros")
    assert identical(room.value, torch.zeros(2, 3))


def test_out_with_several_outputs() -> None:
    def target(x: Tensor) -> Tensor:
        values, indices = torch.empty(2), torch.empty(2, dtype=torch.long)
        torch.max(x, dim=1, out=(values, indices))
        return values * 2 + indices

    trace = endoscope.trace(target, X)
    found = only(trace, "max")
    assert found.label in labels(only(trace, "mul").parents)
    assert found.label in labels(only(trace, "add").parents)
    assert identical(trace.result, target(X))


@pytest.mark.parametrize(
    "index",
    [0, slice(None), (slice(None), 1), (0, slice(1, None)), [1, 0], torch.tensor([1]), (X > 3)],
    ids=["int", "slice", "column", "tail", "list", "tensor", "mask"],
)
def test_reading_and_writing_by_index(index: Any) -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 1
        y[index] = 9.0
        return y[index] + 1

    trace = endoscope.trace(target, X)
    written = only(trace, "setitem")
    assert written.label in labels(only(trace, "getitem").parents)
    assert identical(trace.result, target(X))
    proves(target, X)


def test_a_written_tensor_and_an_index_tensor_are_parents() -> None:
    def target(x: Tensor, where: Tensor) -> Tensor:
        y = torch.zeros(2, 3)
        y[where] = x
        return y

    trace = endoscope.trace(target, (torch.tensor([5.0]), X > 5))
    assert {"zeros_1_2", "input_1_0", "input_2_1"} <= set(labels(only(trace, "setitem").parents))


@pytest.mark.parametrize(
    ("make", "type_"),
    [
        (lambda: torch.zeros(3), "zeros"),
        (lambda: torch.ones(3), "ones"),
        (lambda: torch.full((3,), 2.0), "full"),
        (lambda: torch.arange(3), "arange"),
        (lambda: torch.eye(2, 3), "eye"),
        (lambda: torch.linspace(0, 1, 3), "linspace"),
        (lambda: torch.tensor([1.0, 2.0, 3.0]), "tensor"),
        (lambda: torch.rand(3), "rand"),
        (lambda: torch.randn(3), "randn"),
        (lambda: torch.randint(5, (3,)), "randint"),
        (lambda: torch.randperm(3), "randperm"),
    ],
)
def test_factories_are_generated_ops(make: Callable[[], Tensor], type_: str) -> None:
    torch.manual_seed(1)
    trace = endoscope.trace(lambda x: x * make(), X)
    made = only(trace, type_)
    assert made.kind == "generated"
    assert made.parents == ()
    assert made.label in labels(only(trace, "mul").parents)
    torch.manual_seed(1)
    assert identical(made.value, make())


def test_a_tensor_made_inside_a_module_belongs_to_it() -> None:
    trace = endoscope.trace(HoldsNoise(), torch.randn(5))
    assert only(trace, "ones").modules[-1] == "block.noise"
    assert only(trace, "ones").modules == only(trace, "add").modules


@pytest.mark.parametrize(
    ("function", "type_", "count"),
    [
        (lambda x: x.chunk(3, dim=1), "chunk", 3),
        (lambda x: torch.split(x, 1, dim=0), "split", 2),
        (lambda x: x.unbind(0), "unbind", 2),
        (lambda x: torch.topk(x, 2), "topk", 2),
        (lambda x: x.max(dim=0), "max", 2),
        (lambda x: torch.sort(x), "sort", 2),
        (lambda x: torch.linalg.qr(x), "linalg_qr", 2),
        (lambda x: torch.aminmax(x), "aminmax", 2),
    ],
)
def test_several_outputs_are_one_op(function: Callable[[Tensor], Any], type_: str, count: int) -> None:
    trace = endoscope.trace(lambda x: sum(part.sum() for part in function(x)), X)
    op = only(trace, type_)
    assert isinstance(op.value, tuple)
    assert len(op.value) == count == len(op.outputs)
    assert all(identical(a, b) for a, b in zip(op.value, function(X), strict=True))
    sums = [child for child in trace.ops if child.type == "sum"]
    assert len(sums) == count
    assert all(labels(child.parents) == [op.label] for child in sums)


def test_iterating_over_a_tensor_keeps_the_dependency() -> None:
    def target(x: Tensor) -> Tensor:
        first, second = x * 2
        return first + second

    trace = endoscope.trace(target, X)
    assert only(trace, "mul").label in ancestors(only(trace, "add"))
    assert identical(trace.result, X[0] * 2 + X[1] * 2)


@pytest.mark.parametrize(
    "read",
    [lambda y: y.T, lambda y: y.mT, lambda y: y.data, lambda y: y.real, lambda y: y.H],
    ids=["T", "mT", "data", "real", "H"],
)
def test_a_property_that_is_a_tensor_keeps_the_dependency(read: Callable[[Tensor], Tensor]) -> None:
    trace = endoscope.trace(lambda x: read(x * 2).exp(), X)
    assert only(trace, "mul").label in ancestors(only(trace, "exp"))
    assert trace.complete is True
    proves(lambda x: read(x * 2).exp(), X)


def test_questions_about_a_tensor_are_no_ops() -> None:
    def target(x: Tensor) -> Tensor:
        facts = (x.shape, x.size(0), x.dim(), x.dtype, x.device, x.numel(), len(x), x.is_contiguous())
        facts += (x.requires_grad, x.ndim, x.stride(), x.is_floating_point(), isinstance(x, Tensor), x.layout)
        return x * len(facts)

    trace = endoscope.trace(target, X)
    assert labels(trace.ops) == ["input_1_0", "mul_1_1", "output_1_2"]
    assert not trace.orphans


def test_an_if_decided_by_a_tensor_is_in_the_graph() -> None:
    trace = endoscope.trace(OrganizedNetwork(), torch.rand(5, 5))
    assert labels(trace.ops)[:4] == ["input_1_0", "sum_1_1", "gt_1_2", "mul_1_3"]
    assert labels(trace["gt_1"].parents) == ["sum_1_1"]
    assert trace["gt_1"].children == ()
    assert trace.complete is True


def test_multi_head_attention_is_opened() -> None:
    trace = endoscope.trace(AttentionBlock(), torch.randn(2, 3, 8))
    seen = set(types(trace.ops))
    assert "softmax" in seen
    assert seen & {"bmm", "baddbmm", "matmul"}
    assert "linear" in seen
    assert "multi_head_attention_forward" not in seen
    inside = [op for op in trace.ops if op.type == "softmax"]
    assert inside[0].modules == ("attention",)


@pytest.mark.parametrize(
    ("function", "box", "inner"),
    [
        (lambda x: F.gumbel_softmax(x, dim=-1), "gumbel_softmax", "softmax"),
        (lambda x: F.gaussian_nll_loss(x, x * 2, x * 0 + 1), "gaussian_nll_loss", "log"),
        (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1])), None, "multi_margin_loss"),
    ],
    ids=["gumbel", "gaussian nll", "already elementary"],
)
def test_other_composites_are_opened(function: Callable[[Tensor], Tensor], box: str | None, inner: str) -> None:
    torch.manual_seed(1)
    trace = endoscope.trace(function, X)
    assert inner in types(trace.ops)
    assert box not in types(trace.ops)
    torch.manual_seed(1)
    assert identical(trace.result, function(X))


def test_an_encoder_layer_in_training_is_opened() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    trace = endoscope.trace(layer, torch.randn(2, 3, 8))
    seen = types(trace.ops)
    assert seen.count("layer_norm") == 2
    assert seen.count("linear") >= 3
    assert "scaled_dot_product_attention" in seen or "softmax" in seen
    assert {"self_attn", "linear1", "linear2", "norm1"} <= {name for op in trace.ops for name in op.modules}

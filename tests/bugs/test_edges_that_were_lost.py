"""A dependence is in the graph, or the trace says that it is not complete."""

from __future__ import annotations

import collections
import copy
import ctypes
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import ancestors, labels, only

X = torch.arange(1.0, 5.0)


def reaches_or_says(trace: Any, source: str, end: str = "output_1") -> bool:
    return source in ancestors(trace[end]) or not trace.complete


# ---- tensors as bounds of a slice -----------------------------------------------------------------------------


def test_a_slice_bounded_by_a_tensor() -> None:
    trace = endoscope.trace(lambda x: x[x.argmax() :] * 2, X)
    assert reaches_or_says(trace, "argmax_1_1")


def test_writing_to_a_slice_bounded_by_a_tensor() -> None:
    def target(x: Tensor) -> Tensor:
        y, i = torch.zeros(4), x.argmax()
        y[i : i + 1] = 5.0
        return y

    assert reaches_or_says(endoscope.trace(target, X), "argmax_1_2")


# ---- views inside transforms ----------------------------------------------------------------------------------


def write_to_a_view(x: Tensor) -> Tensor:
    y = x * 2
    y[0].add_(10)
    return y.sum()


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad])
def test_a_write_through_a_view_inside_a_transform(transform: Callable[..., Any]) -> None:
    inputs = X.reshape(2, 2) if transform is torch.func.vmap else X
    trace = endoscope.trace(transform(write_to_a_view), inputs)
    assert {op.type for op in only(trace, "sum").parents} == {"mul", "add"}
    assert trace.validate().ok


def test_setting_an_element_inside_vmap_is_replayed() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y[0] = x[1]
        return y

    report = endoscope.validate(torch.func.vmap(target), X.reshape(2, 2))
    assert report.ok, str(report)


# ---- copies that are made without a torch function ------------------------------------------------------------


def test_a_deep_copy_keeps_the_dependence() -> None:
    trace = endoscope.trace(lambda x: copy.deepcopy(x) + 1, X)
    assert reaches_or_says(trace, "input_1_0")


def test_there_and_back_through_dlpack() -> None:
    pack = torch.utils.dlpack
    trace = endoscope.trace(lambda x: pack.from_dlpack(pack.to_dlpack(x * 2)) + 1, X)
    assert reaches_or_says(trace, "mul_1_1")


# ---- bodies that write where torch cannot see -----------------------------------------------------------------


@torch.library.custom_op("endoscope_bugs::by_pointer", mutates_args=())
def by_pointer(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    ctypes.memmove(out.data_ptr(), y.data_ptr(), y.numel() * y.element_size())
    return out


@torch.library.custom_op("endoscope_bugs::fill_by_numpy", mutates_args=("x",))
def fill_by_numpy(x: Tensor) -> None:
    x.detach().numpy()[...] = 7


def test_a_registered_operator_whose_kernel_fills_an_empty_result() -> None:
    """Kernels of other languages (Triton, C) work like this: allocate in torch, write by address."""
    trace = endoscope.trace(lambda x, y: by_pointer(x, y * 2) + 1, (X, X))
    assert reaches_or_says(trace, "mul_1_1")


def test_memory_that_is_filled_by_address_is_said() -> None:
    def target(x: Tensor) -> Tensor:
        out, y = torch.empty_like(x), x * 2
        ctypes.memmove(out.data_ptr(), y.data_ptr(), y.numel() * y.element_size())
        return out + 1

    assert reaches_or_says(endoscope.trace(target, X), "mul_1_1")


def test_a_registered_operator_that_declares_a_write_has_written() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 1
        fill_by_numpy(y)
        return y + 1

    trace = endoscope.trace(target, X)
    assert "fill_by_numpy" in {op.type for op in only(trace, "add").parents}
    assert trace.validate().ok


# ---- custom functions -----------------------------------------------------------------------------------------


class Doubles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


def test_a_custom_function_that_marks_its_input_dirty() -> None:
    """Marking counts one version more than the write that was heard."""
    trace = endoscope.trace(lambda x: Doubles.apply(x * 3) + 1, X.clone().requires_grad_())
    assert trace.complete, trace.warnings
    assert torch.equal(trace["mul_2"].value, X * 6)
    assert trace.validate().ok


# ---- ends of the graph ----------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@pytest.mark.parametrize("wrap", [lambda t: collections.deque([t]), Slotted], ids=["deque", "slots"])
def test_results_and_arguments_inside_other_containers(wrap: Callable[[Tensor], Any]) -> None:
    assert len(endoscope.trace(lambda x: wrap(x * 2), X).outputs) == 1
    unwrap = lambda box: (box.tensor if isinstance(box, Slotted) else box[0]) * 2  # noqa: E731
    assert len(endoscope.trace(unwrap, (wrap(X),)).inputs) == 1


@pytest.mark.parametrize("make", [lambda x: map(torch.sin, [x]), lambda x: iter([x * 2])])
def test_any_iterator_that_was_not_consumed_is_said(make: Callable[[Tensor], Any]) -> None:
    assert not endoscope.trace(make, X).complete


def test_the_loss_of_a_model_whose_input_is_made_in_the_block() -> None:
    model = nn.Linear(4, 2)
    with endoscope.tracing(model) as trace:
        model(torch.randn(3, 4)).pow(2).mean().backward()
    assert not labels(trace.orphans)


def test_gradients_are_not_inputs_of_the_trace() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.tracing(model) as trace:
        model(X).sum().backward()
        optimizer.step()
    assert [op.path for op in trace.inputs] == ["input"]


def test_a_parameter_made_in_forward_has_the_same_edges_whatever_is_kept() -> None:
    class Late(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.weight = nn.Parameter(torch.ones(4))
            return x * self.weight

    assert endoscope.trace(Late(), X).graph_hash == endoscope.trace(Late(), X, save="none").graph_hash


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_inside_is_said() -> None:
    def target(x: Tensor) -> Tensor:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return x * 2

    assert not endoscope.trace(target, X).complete

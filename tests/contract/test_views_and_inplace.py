"""In-place writes and views: edges through shared storage, and values as they were at that moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.errors import ValueChanged
from tests.contract.helpers import ancestors, identical, labels, only, proves, true_or_refused, types
from tests.models import InplaceResidual, Mlp, ThroughView

X = torch.arange(12.0).reshape(3, 4)


def test_the_example_everyone_gets_wrong() -> None:
    trace = endoscope.trace(ThroughView(), X)
    total = only(trace, "sum")
    assert {"mul", "add"} <= set(types(total.parents))
    assert identical(only(trace, "mul").value, X * 2)
    assert identical(only(trace, "getitem").value, X[0] * 2)
    assert identical(only(trace, "add").value, X[0] * 2 + 10)
    assert identical(total.value, ThroughView()(X))
    proves(ThroughView(), X)


def test_a_view_taken_before_a_write_to_its_base_depends_on_the_write() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        v = y[0]
        y.add_(1)
        return v.exp()

    trace = endoscope.trace(target, X)
    assert only(trace, "add").label in labels(only(trace, "exp").parents)
    assert identical(only(trace, "getitem").value, X[0] * 2)
    proves(target, X)


def test_two_views_of_one_base() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        left, right = y[:2], y[1:]
        left.neg_()
        return right.exp()

    trace = endoscope.trace(target, X)
    assert only(trace, "neg").label in labels(only(trace, "exp").parents)
    proves(target, X)


def test_a_write_elsewhere_in_the_same_storage_is_no_parent() -> None:
    def target(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        y[0].add_(1)
        return y[2].exp(), y

    trace = endoscope.trace(target, X)
    assert only(trace, "add").label not in labels(only(trace, "exp").parents)
    assert only(trace, "add").label in ancestors(trace.outputs[1])
    proves(target, X)


def test_a_chain_of_views() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.view(12)[2:].reshape(5, 2).T[0].unsqueeze(0).mul_(3)
        return y.exp()

    trace = endoscope.trace(target, X)
    writes = [op for op in trace.ops if op.type == "mul"]
    assert len(writes) == 2
    assert set(labels(writes)) <= set(labels(only(trace, "exp").parents))
    assert identical(trace.result, target(X))
    proves(target, X)


@pytest.mark.parametrize(
    "alias",
    [
        lambda y: y.detach(),
        lambda y: y.data,
        lambda y: y.view(-1),
        lambda y: y.T,
        lambda y: y.as_strided((2,), (5,), 1),
        lambda y: y.diagonal(),
        lambda y: y.unfold(1, 2, 2),
        lambda y: y.expand(1, 3, 4),
        lambda y: y.split(1)[1],
        lambda y: y.unbind(1)[2],
        lambda y: y[:, ::2],
        lambda y: y.contiguous(),
        lambda y: y.reshape(4, 3),
        lambda y: y.movedim(0, 1)[1],
    ],
    ids="""
        detach data view T as_strided diagonal unfold expand split unbind step contiguous reshape movedim
    """.split(),
)
def test_a_write_through_any_alias_is_seen(alias: Callable[[Tensor], Tensor]) -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        alias(y).add_(5)
        return y.exp()

    trace = endoscope.trace(target, X)
    exp = only(trace, "exp")
    assert only(trace, "add").label in labels(exp.parents)
    assert identical(only(trace, "mul").value, X * 2)
    assert identical(exp.value, target(X))
    proves(target, X)


def test_a_copy_is_no_alias() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.clone().add_(5)
        return y.exp()

    trace = endoscope.trace(target, X)
    assert only(trace, "add").label not in ancestors(only(trace, "exp"))
    assert types(only(trace, "exp").parents) == ["mul"]


def test_interleaved_rows_stay_apart_in_the_proof() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y[:, ::2].add_(1)
        y[:, 1::2].mul_(3)
        return y[:, ::2].sum() - y[:, 1::2].sum()

    trace = endoscope.trace(target, X)
    assert {"add_1_3", "mul_2_5"} <= ancestors(trace.outputs[0])
    proves(target, X)


def test_writes_add_up() -> None:
    def target(x: Tensor) -> Tensor:
        y = torch.zeros(3, 4)
        for row in range(3):
            y[row] = x[row].exp()
        return y.tanh()

    trace = endoscope.trace(target, X)
    writes = [op.label for op in trace.ops if op.type == "setitem"]
    assert len(writes) == 3
    assert set(writes) <= set(labels(only(trace, "tanh").parents)) | ancestors(only(trace, "tanh"))
    assert identical(trace.result, target(X))
    proves(target, X)


def test_scatter_index_put_and_copy() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.scatter_(1, torch.tensor([[1], [0], [3]]), 9.0)
        y.index_put_((torch.tensor([0]),), x[2])
        y[2].copy_(x[0])
        y.index_add_(0, torch.tensor([1]), x[:1])
        return y.exp()

    trace = endoscope.trace(target, X)
    need = {op.label for op in trace.ops if op.type in ("scatter", "index_put", "copy", "index_add")}
    assert len(need) == 4
    assert need <= ancestors(only(trace, "exp"))
    proves(target, X)


def test_out_into_a_view() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        torch.add(x[0], 100, out=y[1])
        return y.exp()

    trace = endoscope.trace(target, X)
    assert {"mul", "add"} <= set(types(only(trace, "exp").parents))
    assert identical(only(trace, "mul").value, X * 2)
    assert identical(trace.result, target(X))
    proves(target, X)


def test_kept_values_are_the_values_at_that_moment() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.add_(1)
        y.mul_(y)
        y[0] = 0
        y.neg_()
        return y

    trace = endoscope.trace(target, X)
    step = X * 2
    assert identical(trace["mul_1"].value, step)
    step = step + 1
    assert identical(trace["add_1"].value, step)
    step = step * step
    assert identical(trace["mul_2"].value, step)
    step = step.clone()
    step[0] = 0
    assert identical(trace["neg_1"].value, -step)
    assert identical(trace.outputs[0].value, -step)
    proves(target, X)


def test_a_written_input_is_shown_as_it_came_in() -> None:
    x = X.clone()
    trace = endoscope.trace(lambda x: x.add_(1).exp(), x)
    assert identical(x, X + 1)
    assert identical(trace.inputs[0].value, X)
    assert identical(only(trace, "add").value, X + 1)


def test_an_input_written_after_use_leaves_the_first_reader_as_it_was() -> None:
    def target(x: Tensor) -> tuple[Tensor, Tensor]:
        before = x[1]
        first = before.exp()
        x.zero_()
        return first, before.exp()

    trace = endoscope.trace(target, X.clone())
    first, second = (op for op in trace.ops if op.type == "exp")
    zero = only(trace, "zero")
    assert zero.label not in ancestors(first)
    assert zero.label in labels(second.parents)
    assert identical(only(trace, "getitem").value, X[1])
    assert identical(first.value, X[1].exp())
    assert identical(second.value, torch.ones(4))


def test_two_inputs_that_share_their_storage() -> None:
    base = X.clone()

    def target(top: Tensor, all_: Tensor) -> Tensor:
        top.add_(1)
        return all_.exp()

    trace = endoscope.trace(target, (base[0], base))
    assert only(trace, "add").label in labels(only(trace, "exp").parents)
    assert identical(trace.inputs[1].value, X)


def test_a_buffer_written_in_forward() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total: Tensor
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.total.add_(x.sum(0))
            return x * self.total

    model = Counter()
    trace = endoscope.trace(model, X)
    assert identical(trace["total"].value, torch.zeros(4))
    assert identical(model.total, X.sum(0))
    assert only(trace, "add").label in labels(only(trace, "mul").parents)
    assert "total" in labels(only(trace, "add").parents)
    proves(model, X)


def test_in_place_activation_and_augmented_residual() -> None:
    model = InplaceResidual()
    x = torch.randn(2, 5)
    trace = endoscope.trace(model, x)
    linear = F.linear(x, model.fc.weight, model.fc.bias)
    assert identical(only(trace, "linear").value, linear)
    assert identical(only(trace, "add").value, linear + x)
    assert identical(only(trace, "relu").value, (linear + x).relu())
    proves(model, x)


def test_in_place_with_gradients() -> None:
    x = X.clone().requires_grad_()

    def target(x: Tensor) -> Tensor:
        y = x * 2
        y[0].mul_(3)
        return y.sum()

    trace = endoscope.trace(target, x)
    trace.result.backward()
    assert x.grad is not None
    assert x.grad[:, 0].tolist() == [6.0, 2.0, 2.0]
    proves(target, x)


def test_a_training_step_inside_the_block_does_not_rewrite_history() -> None:
    model = Mlp()
    before = model.first.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with endoscope.tracing(model) as trace:
        model(torch.randn(2, 5)).sum().backward()
        optimizer.step()
    assert not identical(model.first.weight, before)
    assert true_or_refused(trace["first.weight"], before)


def test_what_is_overwritten_after_the_trace_is_never_shown_as_true() -> None:
    trace = endoscope.trace(lambda x: x * 2, X)
    trace.result.add_(100)
    with pytest.raises(ValueChanged) as caught:
        _ = only(trace, "mul").value
    assert "mul_1_1" in str(caught.value)


def test_weights_trained_after_the_trace_are_never_shown_as_those_of_the_trace() -> None:
    model = Mlp()
    before = model.first.weight.detach().clone()
    trace = endoscope.trace(model, torch.randn(2, 5))
    with torch.no_grad():
        model.first.weight.add_(1)
    assert true_or_refused(trace["first.weight"], before)
    assert identical(trace["linear_1"].value, trace["linear_1"].value)


@pytest.mark.parametrize("save", ["all", "type:mul"])
def test_copy_on_write_also_when_little_is_kept(save: str) -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.view(-1).add_(1)
        return y

    trace = endoscope.trace(target, X, save=save)
    assert identical(only(trace, "mul").value, X * 2)


def test_a_value_that_nobody_overwrites_is_not_copied() -> None:
    trace = endoscope.trace(lambda x: (x * 2).view(-1), X)
    assert only(trace, "mul").value.data_ptr() == trace.result.data_ptr()


def test_structure_only_has_the_same_edges() -> None:
    full = endoscope.trace(ThroughView(), X)
    bare = endoscope.trace(ThroughView(), X, save="none")
    assert [labels(op.parents) for op in full.ops] == [labels(op.parents) for op in bare.ops]

"""Gradients: of each loss apart and exact, of values and of parameters; none is not zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from endoscope.errors import LookupFailed
from tests.contract.recording.helpers import batches, close, mlp, recorded, same, sgd, strict_run

cross_entropy = nn.functional.cross_entropy


class TwoHeads(nn.Module):
    """The shared trunk is re-used by both heads, and its weight a second time by the second head."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(6, 6)
        self.a = nn.Linear(6, 3)
        self.b = nn.Linear(6, 3)
        self.unused = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(x)
        return self.a(hidden), self.b(hidden @ self.trunk.weight)


def grads_of(loss: Any, tensors: list[Tensor]) -> list[Tensor | None]:
    return list(torch.autograd.grad(loss, tensors, retain_graph=True, allow_unused=True))


def two_losses(model: TwoHeads, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a, b = model(x)
    return cross_entropy(a, y), b.square().mean()


def test_gradients_of_several_losses_are_kept_apart_exactly(tmp_path: Any) -> None:
    model = TwoHeads()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    x.requires_grad_()
    names = [name for name, _ in model.named_parameters()]
    expected = [grads_of(loss, [*model.parameters(), x]) for loss in two_losses(model, x, y)]
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            first, second = two_losses(model, x, y)
            with step.gradients("classes"):
                first.backward(retain_graph=True)
            with step.gradients("size"):
                second.backward()
            optimizer.step()
    recording = recorded(run)
    assert recording.losses == ["classes", "size"]
    for loss, found in zip(("classes", "size"), expected, strict=True):
        for name, gradient in zip([*names, "input"], found, strict=True):
            of = f"gradient:{loss}"
            if gradient is None:
                with pytest.raises(LookupFailed, match=of):
                    recording.tensor(name, 0, of=of)
            else:
                assert same(recording.tensor(name, 0, of=of), gradient), (name, loss)


def test_gradients_of_values_are_those_of_torch(tmp_path: Any) -> None:
    model = TwoHeads()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    hidden = model.trunk(x)
    a, b = model.a(hidden), model.b(hidden @ model.trunk.weight)
    expected = [grads_of(loss, [hidden, a, b]) for loss in (cross_entropy(a, y), b.square().mean())]
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            first, second = two_losses(model, x, y)
            with step.gradients("one"):
                first.backward(retain_graph=True)
            with step.gradients("two"):
                second.backward()
    recording = recorded(run)
    for loss, found in zip(("one", "two"), expected, strict=True):
        for node, gradient in zip(("trunk", "a", "b"), found, strict=True):
            of = {key.of for key in recording.tensors_of(node)}
            if gradient is None:
                assert f"gradient:{loss}" not in of
            else:
                assert same(recording.tensor(node, 0, of=f"gradient:{loss}"), gradient), (node, loss)


def test_the_cosine_between_losses(tmp_path: Any) -> None:
    model = TwoHeads()
    ((x, y),) = batches(1)
    one, two = (grads_of(loss, [model.trunk.weight])[0] for loss in two_losses(model, x, y))
    expected = torch.nn.functional.cosine_similarity(one.flatten(), two.flatten(), dim=0).item()
    with strict_run(tmp_path) as run:
        run.watch(model, sgd(model))
        with run.step() as step:
            first, second = two_losses(model, x, y)
            with step.gradients("one"):
                first.backward(retain_graph=True)
            with step.gradients("two"):
                second.backward()
    cosines = recorded(run).steps[0].extra["cosines"]
    found = {node: value for node, _, _, a, b, value in cosines if (a, b) == ("one", "two")}
    assert found["trunk.weight"] == pytest.approx(expected, abs=1e-5)
    assert {"trunk", "trunk.weight", "trunk.bias"} <= set(found)
    assert "a.weight" not in found  # only one of the losses reaches it


def test_no_gradient_is_not_a_gradient_of_zero(tmp_path: Any) -> None:
    model = TwoHeads()
    model.b.requires_grad_(False)
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(1):
            a, b = model(x)
            (cross_entropy(a, y) + 0 * b.sum()).backward()
            optimizer.step()
    recording = recorded(run)
    assert recording.steps[0].extra["no_gradient"] == ["unused.weight", "unused.bias"]
    assert not any(key.of.startswith("gradient") for key in recording.tensors_of("unused.weight"))
    assert recording.statistics("b", 0, of="gradient")["zeros"] == 15  # a gradient of zero is one
    assert not any(key.of.startswith("gradient") for key in recording.tensors_of("b.weight"))  # frozen


def test_a_loss_that_is_called_twice(tmp_path: Any) -> None:
    """Two passes of one loss add up, as they do in `.grad`."""
    model = mlp()
    with strict_run(tmp_path) as run:
        run.watch(model, sgd(model))
        with run.step() as step:
            for x, y in batches(2):
                with step.gradients("same"):
                    cross_entropy(model(x), y).backward()
            total = model[0].weight.grad.clone()
    assert close(recorded(run).tensor("0.weight", 0, of="gradient:same"), total)


def test_the_gradient_of_a_parameter_is_the_clipped_one(tmp_path: Any) -> None:
    """The gradient is what the optimizer uses; the norm before clipping stands beside it."""
    model = mlp()
    optimizer = sgd(model, lr=1.0)
    ((x, y),) = batches(1)
    expected = grads_of(cross_entropy(model(x), y), [model[0].weight])[0]
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        cross_entropy(model(x), y).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        clipped = model[0].weight.grad.clone()
        before = model[0].weight.detach().clone()
        optimizer.step()
    recording = recorded(run)
    assert same(recording.tensor("0.weight", 0, of="gradient"), clipped)
    assert not same(recording.tensor("0.weight", 0, of="gradient"), expected)
    assert recording.steps[0].extra["clipping"] == [{"norm": float(norm), "limit": 1e-3}]
    assert close(recording.tensor("0.weight", 0, of="update"), -clipped, 1e-7)
    assert same(recording.tensor("0.weight", 0, of="update"), model[0].weight - before)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_leftovers_of_the_step_before_are_not_in_the_gradient(tmp_path: Any, set_to_none: bool) -> None:
    model = mlp()
    optimizer = sgd(model)
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            optimizer.zero_grad(set_to_none=set_to_none)
            cross_entropy(model(x), y).backward()
            expected.append(model[2].weight.grad.clone())
            optimizer.step()
    recording = recorded(run)
    for step, gradient in enumerate(expected):
        assert same(recording.tensor("2.weight", step, of="gradient"), gradient)


def test_gradients_that_are_never_cleared(tmp_path: Any) -> None:
    """`.grad` grows and grows; the gradient of a step is what this step added."""
    model = mlp()
    optimizer = sgd(model, lr=1e-3)
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            weight = model[2].weight
            before = torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
            cross_entropy(model(x), y).backward()
            expected.append(weight.grad - before)
            optimizer.step()
    recording = recorded(run)
    for step, gradient in enumerate(expected):
        assert close(recording.tensor("2.weight", step, of="gradient"), gradient)


def test_torch_autograd_grad_is_no_part_of_the_gradient_of_a_loss(tmp_path: Any) -> None:
    """Neither on parameters nor on values; `.grad` knows nothing of it."""
    model = mlp()
    optimizer = sgd(model)
    expected = []
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            optimizer.zero_grad(set_to_none=False)
            out = model(x)
            torch.autograd.grad(out.square().sum(), [*model.parameters()], retain_graph=True)
            loss = cross_entropy(out, y)
            (of_out,) = grads_of(loss, [out])
            loss.backward()
            torch.autograd.grad(model(x).sum(), [*model.parameters()])
            expected.append((model[0].weight.grad.clone(), of_out))
            optimizer.step()
    recording = recorded(run)
    for step, (of_weight, of_out) in enumerate(expected):
        assert same(recording.tensor("0.weight", step, of="gradient:loss"), of_weight)
        assert same(recording.tensor("2", step, of="gradient:loss", pass_=1), of_out)


def test_a_gradient_penalty(tmp_path: Any) -> None:
    """create_graph, then a backward pass through the backward pass."""
    model = mlp(6, 8, 1)
    optimizer = sgd(model)
    ((x, _),) = batches(1)

    def penalty() -> Tensor:
        point = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(point).sum(), point, create_graph=True)
        return model(x).mean() + (slope.norm(dim=1) - 1).square().mean()

    expected = grads_of(penalty(), [model[0].weight])[0]
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        penalty().backward()
        optimizer.step()
    assert close(recorded(run).tensor("0.weight", 0, of="gradient:loss"), expected)


def test_backward_with_create_graph(tmp_path: Any) -> None:
    model = mlp(6, 8, 1)
    optimizer = sgd(model)
    ((x, _),) = batches(1)
    expected = grads_of(model(x).square().mean(), [model[0].weight])[0]
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            with step.gradients("first"), pytest.warns(UserWarning, match="create_graph"):
                model(x).square().mean().backward(create_graph=True)
            second = sum(p.grad.square().sum() for p in model.parameters())
            with step.gradients("second"):
                second.backward()
            model.zero_grad()
    recording = recorded(run)
    assert same(recording.tensor("0.weight", 0, of="gradient:first"), expected)
    assert recording.statistics("0.weight", 0, of="gradient:second")["norm"] > 0


def test_retain_graph_and_backward_twice(tmp_path: Any) -> None:
    model = mlp()
    ((x, y),) = batches(1)
    expected = grads_of(cross_entropy(model(x), y), [model[0].weight])[0]
    with strict_run(tmp_path) as run:
        run.watch(model, sgd(model))
        with run.step() as step:
            loss = cross_entropy(model(x), y)
            for name in ("one", "two"):
                with step.gradients(name):
                    loss.backward(retain_graph=True)
    recording = recorded(run)
    for name in ("one", "two"):
        assert same(recording.tensor("0.weight", 0, of=f"gradient:{name}"), expected)


def test_backward_of_several_tensors_at_once(tmp_path: Any) -> None:
    model = TwoHeads()
    ((x, y),) = batches(1)
    first, second = two_losses(model, x, y)
    expected = grads_of(first + second, [model.a.weight])[0]
    with strict_run(tmp_path) as run:
        run.watch(model, sgd(model))
        with run.step() as step:
            losses = two_losses(model, x, y)
            with step.gradients("both"):
                torch.autograd.backward(losses)
    assert same(recorded(run).tensor("a.weight", 0, of="gradient:both"), expected)


def test_updates_are_exact(tmp_path: Any) -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.1)
    moved = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            before = [p.detach().clone() for p in model.parameters()]
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
            moved.append([(b, p.detach() - b) for p, b in zip(model.parameters(), before, strict=True)])
    recording = recorded(run)
    for step, found in enumerate(moved):
        for (name, _), (before, update) in zip(model.named_parameters(), found, strict=True):
            assert same(recording.tensor(name, step, of="update"), update)
            assert same(recording.tensor(name, step, of="parameter"), before), (
                "the value that the step was computed with"
            )


def test_parameters_without_a_gradient_have_an_update_of_zero_or_none(tmp_path: Any) -> None:
    model = TwoHeads()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(1):
            cross_entropy(model(x)[0], y).backward()
            optimizer.step()
    recording = recorded(run)
    of = {key.of for key in recording.tensors_of("unused.weight")}
    if "update" in of:
        assert not np.any(recording.tensor("unused.weight", 0, of="update"))

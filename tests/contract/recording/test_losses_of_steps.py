"""Several calls of `backward()` in one step: their sum, their parts, and the names of the losses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.contract.recording.helpers import batches, close, mlp, numbers, recorded, same, sgd, strict_run
from tests.contract.recording.oracle import agree, compared, ends

cross_entropy = nn.functional.cross_entropy


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(6, 6)
        self.one, self.two = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(self.trunk(x))
        return self.one(hidden), self.two(hidden)


def of_losses(recording: Any) -> set[str]:
    return {node for node in recording.nodes if node.startswith("loss")}


def two_backwards(run: Any) -> tuple[list[float], list[Tensor]]:
    model = TwoHeads()
    optimizer = sgd(model)
    run.watch(model, optimizer)
    losses = []
    for x, y in batches(20):
        optimizer.zero_grad()
        one, two = model(x)
        first = cross_entropy(one, y)
        first.backward(retain_graph=True)
        second = two.square().mean()
        second.backward()
        optimizer.step()
        losses += [first.item(), second.item()]
    return losses, ends(model)


def test_several_backwards_add_up_as_the_gradient(tmp_path: Any) -> None:
    """For results of modules as for parameters."""
    seen, recording = compared(two_backwards, tmp_path)
    assert numbers(recording) == [*range(20)]
    for number, step in enumerate(seen):
        assert ("trunk", 1) in step.gradients
        agree(recording, number, step)


def test_losses_of_different_lines_are_different_nodes(tmp_path: Any) -> None:
    _, recording = compared(two_backwards, tmp_path)
    torch.manual_seed(3)
    model = TwoHeads()
    one, two = model(next(batches(1))[0])
    first, second = cross_entropy(one, next(batches(1))[1]), two.square().mean()
    assert of_losses(recording) == {"loss", "loss 2"}
    assert same(recording.tensor("loss", 0), first)
    assert same(recording.tensor("loss 2", 0), second)
    for node in ("loss", "loss 2"):
        assert recording.series(node, "mean").steps.tolist() == [*range(20)]


def test_micro_batches_of_one_accumulation_are_one_loss(tmp_path: Any) -> None:
    values: list[list[Tensor]] = []

    def body(run: Any) -> Any:
        model = mlp()
        optimizer = sgd(model)
        run.watch(model, optimizer)
        values.clear()
        for _ in range(20):
            optimizer.zero_grad()
            values.append([])
            for x, y in batches(3):
                loss = cross_entropy(model(x), y) / 3
                loss.backward()
                values[-1].append(loss.detach())
            optimizer.step()
        return [[loss.item() for loss in step] for step in values], ends(model)

    seen, recording = compared(body, tmp_path)
    assert of_losses(recording) == {"loss"}
    assert [step.passes for step in recording.steps] == [3] * 20
    for number, step in enumerate(seen):
        agree(recording, number, step)
        for pass_, loss in enumerate(values[number], 1):
            assert same(recording.tensor("loss", number, pass_=pass_), loss)


def test_parts_are_kept_apart_and_are_what_torch_computes(tmp_path: Any) -> None:
    parts: list[dict[str, list[Any]]] = []

    def body(run: Any) -> Any:
        model = TwoHeads()
        optimizer = sgd(model)
        run.watch(model, optimizer)
        parts.clear()
        losses = []
        for x, y in batches(20):
            optimizer.zero_grad()
            with run.step() as step:
                one, two = model(x)
                both = {"classes": cross_entropy(one, y), "size": two.square().mean()}
                weights = [model.trunk.weight, model.one.weight, model.two.weight]
                parts.append(
                    {
                        name: list(torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True))
                        for name, loss in both.items()
                    }
                )
                for name, loss in both.items():
                    with step.gradients(name):
                        loss.backward(retain_graph=True)
                optimizer.step()
            losses += [loss.item() for loss in both.values()]
        return losses, ends(model)

    _, recording = compared(body, tmp_path)
    assert recording.losses == ["classes", "size"]
    for number, step in enumerate(parts):
        for loss, found in step.items():
            for name, gradient in zip(("trunk", "one", "two"), found, strict=True):
                if gradient is not None:
                    assert same(recording.tensor(f"{name}.weight", number, of=f"gradient:{loss}"), gradient)


@pytest.mark.parametrize("retain", ["one graph twice", "two passes"])
def test_one_loss_that_goes_back_twice(tmp_path: Any, retain: str) -> None:
    """Whether through one graph or through two: parameters and nodes get the sum."""

    def body(run: Any) -> Any:
        model = mlp()
        optimizer = sgd(model)
        run.watch(model, optimizer)
        losses = []
        for x, y in batches(20):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward(retain_graph=retain == "one graph twice")
            again = loss if retain == "one graph twice" else cross_entropy(model(2 * x), y)
            again.backward()
            optimizer.step()
            losses.append(again.item())
        return losses, ends(model)

    seen, recording = compared(body, tmp_path)
    assert [step.passes for step in recording.steps] == [seen[0].passes] * 20
    for number, step in enumerate(seen):
        agree(recording, number, step)


def test_backward_of_two_losses_in_one_call(tmp_path: Any) -> None:
    expected = []
    model = TwoHeads()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(20):
            optimizer.zero_grad()
            one, two = model(x)
            torch.autograd.backward([cross_entropy(one, y), two.square().mean()])
            expected.append(model.trunk.weight.grad.clone())
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [*range(20)]
    for number, gradient in enumerate(expected):
        assert close(recording.tensor("trunk.weight", number, of="gradient"), gradient)

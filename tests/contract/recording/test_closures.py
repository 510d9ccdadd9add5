"""Optimizers that call a closure, once or several times, and those that perturb what they optimize."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.contract.recording.helpers import batches, close, mlp, numbers, recorded, same, strict_run
from tests.contract.recording.oracle import Oracle, compared, ends

cross_entropy = nn.functional.cross_entropy


def test_each_call_of_a_closure_is_a_pass_with_its_own_gradient(tmp_path: Any) -> None:
    calls: list[list[Tensor]] = []

    def body(run: Any) -> Any:
        model = mlp()
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
        run.watch(model, optimizer)
        calls.clear()
        losses = []
        for x, y in batches(20):
            calls.append([])

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                loss.backward()
                calls[-1].append(model[0].weight.grad.clone())
                return loss

            losses.append(optimizer.step(closure).item())
        return losses, ends(model)

    _, recording = compared(body, tmp_path)
    assert numbers(recording) == [*range(20)]
    assert [step.passes for step in recording.steps] == [len(found) for found in calls]
    assert max(step.passes for step in recording.steps) > 1
    for number, found in enumerate(calls):
        for pass_, gradient in enumerate(found, 1):
            assert same(recording.tensor("0.weight", number, of="gradient", pass_=pass_), gradient), (number, pass_)


def test_results_inside_of_a_closure(tmp_path: Any) -> None:
    """Also their gradients belong to one call, though all calls are in one step."""
    expected: list[list[tuple[Tensor, Tensor]]] = []
    model = mlp()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    with strict_run(tmp_path, keep=64) as run:
        run.watch(model, optimizer)
        for x, y in batches(10):
            expected.append([])

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                optimizer.zero_grad()
                out = model(x)
                loss = cross_entropy(out, y)
                (gradient,) = torch.autograd.grad(loss, out, retain_graph=True)
                loss.backward()
                expected[-1].append((out.detach(), gradient))
                return loss

            optimizer.step(closure)
    recording = recorded(run)
    for number, calls in enumerate(expected):
        for pass_, (out, gradient) in enumerate(calls, 1):
            assert same(recording.tensor("2", number, pass_=pass_), out)
            assert same(recording.tensor("2", number, of="gradient", pass_=pass_), gradient)


def test_a_closure_of_an_ordinary_optimizer(tmp_path: Any) -> None:
    """As Lightning calls all of them: the update has begun before there is any gradient."""
    gradients: list[dict[str, Tensor]] = []

    def body(run: Any) -> Any:
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        run.watch(model, optimizer)
        gradients.clear()
        losses = []
        for x, y in batches(20):

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
                return loss

            losses.append(optimizer.step(closure).item())
        return losses, ends(model)

    _, recording = compared(body, tmp_path)
    assert numbers(recording) == [*range(20)]
    assert [step.passes for step in recording.steps] == [1] * 20
    for number, found in enumerate(gradients):
        for name, gradient in found.items():
            assert same(recording.tensor(name, number, of="gradient"), gradient)


class Sharpness(torch.optim.Optimizer):
    """SAM as it is usually written: two halves, and an optimizer of its own for the second."""

    def __init__(self, parameters: Any, lr: float) -> None:
        super().__init__(parameters, {"rho": 0.05})
        self.base_optimizer = torch.optim.SGD(self.param_groups, lr=lr)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self) -> None:
        for p in self.param_groups[0]["params"]:
            self.state[p]["old"] = p.data.clone()
            p.add_(p.grad, alpha=0.05)
        self.zero_grad()

    @torch.no_grad()
    def second_step(self) -> None:
        for p in self.param_groups[0]["params"]:
            p.data = self.state[p]["old"]
        self.base_optimizer.step()
        self.zero_grad()


@pytest.mark.parametrize("watched", ["the base", "found by itself"])
def test_a_perturbation_is_no_update(tmp_path: Any, watched: str) -> None:
    expected: list[dict[str, list[Tensor]]] = []

    def body(run: Any) -> Any:
        model = mlp()
        optimizer = Sharpness(model.parameters(), 0.1)
        run.watch(model, optimizer.base_optimizer if isinstance(run, Oracle) or watched == "the base" else None)
        expected.clear()
        losses = []
        for x, y in batches(20):
            before = {name: p.detach().clone() for name, p in model.named_parameters()}
            cross_entropy(model(x), y).backward()
            optimizer.first_step()
            loss = cross_entropy(model(x), y)
            loss.backward()
            used = {name: p.grad.clone() for name, p in model.named_parameters()}
            optimizer.second_step()
            losses.append(loss.item())
            expected.append({n: [before[n], used[n], p.detach() - before[n]] for n, p in model.named_parameters()})
        return losses, ends(model)

    seen, recording = compared(body, tmp_path)
    assert numbers(recording) == [*range(20)]
    assert [step.passes for step in recording.steps] == [2] * 20
    for number, found in enumerate(expected):
        for name, (before, used, update) in found.items():
            assert same(recording.tensor(name, number, of="parameter"), before), (number, name)
            assert same(recording.tensor(name, number, of="gradient"), used), (number, name)
            assert same(recording.tensor(name, number, of="update"), update), (number, name)
        for (node, pass_), value in seen[number].values.items():
            assert same(recording.tensor(node, number, pass_=pass_), value)


# ---- exceptions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [1, 3])
def test_a_closure_that_raises_ends_its_step(tmp_path: Any, when: int) -> None:
    """As when a batch does not fit into memory, and the loop goes on with the next one."""
    model = mlp()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    moved = []
    with strict_run(tmp_path, when=when, keep=64) as run:
        run.watch(model, optimizer)
        for number, (x, y) in enumerate(batches(10)):
            calls = 0

            def closure(number: int = number, x: Any = x, y: Any = y) -> Any:
                nonlocal calls
                calls += 1
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                if number in (2, 5) and calls == 2:
                    raise MemoryError("this batch")
                loss.backward()
                return loss

            before = model[0].weight.detach().clone()
            if number in (2, 5):
                with pytest.raises(MemoryError, match="this batch"):
                    optimizer.step(closure)
            else:
                optimizer.step(closure)
            moved.append((model[0].weight.detach() - before, calls))
    recording = recorded(run)
    assert numbers(recording) == [*range(0, 10, when)]
    for step in recording.steps:
        update, calls = moved[step.number]
        assert not step.skipped and step.passes == calls
        assert close(recording.tensor("0.weight", step.number, of="update"), update)


def test_an_update_that_raises_is_skipped_and_the_next_one_is_seen(tmp_path: Any) -> None:
    class Failing(torch.optim.SGD):
        fails = False

        def step(self, closure: Any = None) -> Any:
            if self.fails:
                raise MemoryError("no room for its state")
            return super().step(closure)

    model = mlp()
    optimizer = Failing(model.parameters(), lr=0.1)
    used = []
    with strict_run(tmp_path, keep=64) as run:
        run.watch(model, optimizer)
        for number, (x, y) in enumerate(batches(10)):
            optimizer.fails = number in (2, 3, 6)
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            assert model[0].weight.grad is not None
            used.append(model[0].weight.grad.clone())
            if optimizer.fails:
                with pytest.raises(MemoryError, match="no room"):
                    optimizer.step()
            else:
                optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [*range(10)]
    assert [step.number for step in recording.steps if step.skipped] == [2, 3, 6]
    assert recording.gaps == []
    for step in recording.steps:
        if not step.skipped:
            assert same(recording.tensor("0.weight", step.number, of="gradient"), used[step.number])


def test_parts_called_one_by_one_inside_of_a_closure(tmp_path: Any) -> None:
    """As Lightning does. The first step is traced while the optimizer runs, which then overwrites the parameters."""
    model = nn.ModuleDict({"encoder": nn.Linear(6, 4), "decoder": nn.Linear(4, 3)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(4):
            before.append(model["encoder"].weight.detach().clone())

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                optimizer.zero_grad()
                loss = cross_entropy(model["decoder"](model["encoder"](x)), y)
                loss.backward()
                return loss

            optimizer.step(closure)
    recording = recorded(run)
    assert not recording.gaps
    for number, weight in enumerate(before):
        assert same(recording.tensor("encoder.weight", number, of="parameter"), weight)

"""What ends a step: optimizers of every kind, several of them, scalers, closures, updates by hand."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from tests.contract.recording.helpers import (
    batches,
    close,
    complaints,
    mlp,
    numbers,
    recorded,
    same,
    sgd,
    strict_run,
    twice,
)

cross_entropy = nn.functional.cross_entropy


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_scaler_that_skips_steps(tmp_path: Any, set_to_none: bool) -> None:
    def body(watch: Any) -> Any:
        model = mlp()
        optimizer = sgd(model)
        watch(model, optimizer)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4, growth_interval=100)
        losses = []
        for n, (x, y) in enumerate(batches(6)):
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = cross_entropy(model(x), y) * (float("inf") if n in (1, 2) else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        return losses, [p.detach().clone() for p in model.parameters()]

    (losses, end), (losses_2, end_2) = twice(body, tmp_path)
    assert losses == losses_2
    assert all(map(torch.equal, end, end_2))
    recording = endoscope.open(tmp_path / "trial")
    updates = recording.series("0.weight", "norm", of="update")
    assert len(updates) == 4
    assert all(step.passes == 1 for step in recording.steps)
    assert np.isfinite(recording.series("0.weight", "norm", of="gradient").values[-1])
    assert recording.series("0.weight", "nans", of="gradient").values[-1] == 0  # not what a skipped step left


def test_an_optimizer_with_a_closure(tmp_path: Any) -> None:
    def body(watch: Any) -> Any:
        model = mlp()
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
        watch(model, optimizer)
        losses, before = [], []
        for x, y in batches(3):
            before.append(model[0].weight.detach().clone())

            def closure(x: Any = x, y: Any = y) -> Any:
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())
        return losses, before, model[0].weight.detach().clone()

    (losses, _, end), (losses_2, before, end_2) = twice(body, tmp_path)
    assert losses == losses_2
    assert torch.equal(end, end_2)
    recording = endoscope.open(tmp_path / "trial")
    assert numbers(recording) == [0, 1, 2]
    assert all(step.passes > 1 for step in recording.steps)
    for step, (one, two) in enumerate(zip(before, [*before[1:], end_2], strict=True)):
        assert same(recording.tensor("0.weight", step, of="parameter"), one)
        assert same(recording.tensor("0.weight", step, of="update"), two - one)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, lr=0.1, foreach=False),
        lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.AdamW(p, foreach=True),
        lambda p: torch.optim.Adam(p, weight_decay=0.1, amsgrad=True),
        lambda p: torch.optim.RMSprop(p),
        lambda p: torch.optim.Adagrad(p),
        lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1, maximize=True),
    ],
)
def test_what_optimizers_do_to_gradients_is_not_recorded_as_gradient(tmp_path: Any, make: Any) -> None:
    model = mlp()
    optimizer = make(model.parameters())
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            before = model[2].weight.detach().clone()
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            gradient = model[2].weight.grad.clone()
            optimizer.step()
            expected.append((before, gradient, model[2].weight.detach() - before))
    recording = recorded(run)
    for step, (before, gradient, update) in enumerate(expected):
        assert same(recording.tensor("2.weight", step, of="gradient"), gradient)
        assert same(recording.tensor("2.weight", step, of="parameter"), before)
        assert same(recording.tensor("2.weight", step, of="update"), update)


def test_an_optimizer_that_writes_into_gradients(tmp_path: Any) -> None:
    """Below the ear of torch functions: the gradient is true, or a gap says that it is lost."""

    class Destroyer(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad.mul_(0.0)
            super().step()

    model = mlp()
    optimizer = Destroyer(model.parameters(), lr=0.1)
    expected = []
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            expected.append(model[2].weight.grad.clone())
            optimizer.step()
    recording = recorded(run)
    series = recording.series("2.weight", "norm", of="gradient")
    for step, value in zip(series.steps, series.values, strict=True):
        assert close(value, expected[step].norm(), 1e-5)
    missing = {0, 1, 2} - set(series.steps.tolist())
    assert missing <= {0}  # once it was seen to do that, gradients are copied before
    assert all(any(gap.step == step for gap in recording.gaps) for step in missing)
    assert all("no_gradient" not in step.extra for step in recording.steps)  # lost is not the same as none


def test_a_step_without_an_update(tmp_path: Any) -> None:
    """`with run.step()` needs no optimizer: the block says when it ends."""
    model = mlp()
    with strict_run(tmp_path) as run:
        run.watch(model)
        for x, y in batches(3):
            with run.step():
                model.zero_grad()
                cross_entropy(model(x), y).backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    assert recording.series("0.weight", "norm", of="gradient").steps.tolist() == [0, 1, 2]


@pytest.mark.parametrize("through", ["itself", "data", "view"])
def test_parameters_that_are_moved_by_hand(tmp_path: Any, through: str) -> None:
    """The value of a parameter is the one the step was computed with, or a gap says that it is not known."""
    model = mlp()
    before = []
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model)
        for x, y in batches(3):
            with run.step():
                before.append(model[0].weight.detach().clone())
                model.zero_grad()
                cross_entropy(model(x), y).backward()
                with torch.no_grad():
                    for p in model.parameters():
                        target = {"itself": p, "data": p.data, "view": p.view(-1)}[through]
                        target -= 0.1 * p.grad.view_as(target)
    recording = recorded(run)
    for step, weight in enumerate(before):
        gaps = [gap for gap in recording.gaps if gap.node == "0.weight" and gap.step == step]
        assert gaps or same(recording.tensor("0.weight", step, of="parameter"), weight)
        assert gaps or same(
            recording.tensor("0.weight", step, of="update"), [*before, model[0].weight][step + 1] - weight
        )


def test_two_optimizers_that_step_one_after_the_other(tmp_path: Any) -> None:
    """One forward, one backward, two updates: from the second time on it is known that the step ends with the last."""
    model = mlp()
    first, second = (torch.optim.SGD(model[n].parameters(), lr=0.1) for n in (0, 2))
    moved = []
    with strict_run(tmp_path) as run:
        run.watch(model, [first, second])
        for n, (x, y) in enumerate(batches(6)):
            before = model[2].weight.detach().clone()
            model.zero_grad()
            cross_entropy(model(x), y).backward()
            first.step()
            if n != 3:  # it need not come every time
                second.step()
            moved.append(model[2].weight.detach() - before)
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3, 4, 5]
    assert all(step.passes == 1 for step in recording.steps)
    assert recording.series("0.weight", "norm", of="update").steps.tolist() == [0, 1, 2, 3, 4, 5]
    updates = recording.series("2.weight", "norm", of="update").steps.tolist()
    assert updates[-4:] == [1, 2, 4, 5]
    assert 0 in updates or any(gap.step == 0 and "optimizer" in gap.reason for gap in recording.gaps)
    for step in (1, 2, 4, 5):
        assert same(recording.tensor("2.weight", step, of="update"), moved[step])


@pytest.mark.parametrize("block", [False, True])
def test_an_optimizer_for_each_parameter_in_the_backward_pass(tmp_path: Any, block: bool) -> None:
    """Each parameter is moved as soon as its gradient has arrived, which is then dropped, to save memory."""

    def body(watch: Any, step_of: Any) -> Any:
        torch.manual_seed(3)
        model = mlp()
        optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

        def move(parameter: Any) -> None:
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(move)
        watch(model)
        losses = []
        for x, y in batches(4):
            with step_of():
                loss = cross_entropy(model(x), y)
                loss.backward()
                losses.append(loss.item())
        return losses, [p.detach().clone() for p in model.parameters()]

    plain = body(lambda *_: None, contextlib.nullcontext)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        found = body(run.watch, run.step if block else contextlib.nullcontext)
    assert found[0] == plain[0]
    assert all(map(torch.equal, found[1], plain[1]))
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3]
    assert [step.passes for step in recording.steps] == [1, 1, 1, 1]
    for name in ("0.weight", "0.bias", "2.weight", "2.bias"):
        assert len(recording.series(name, "norm", of="update")) == 4
        assert recording.series(name, "norm", of="gradient").steps.tolist() == [1, 2, 3]
        assert [gap.step for gap in recording.gaps if gap.node == name] == [0]
    assert all("no_gradient" not in step.extra for step in recording.steps)
    assert torch._C._len_torch_function_stack() == 0

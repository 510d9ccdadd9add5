"""Loops that do not do forward, backward, step and nothing else."""

from __future__ import annotations

import contextlib
import weakref
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
    plain_step,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
    twice,
)

cross_entropy = nn.functional.cross_entropy


class Moody(nn.Module):
    """Raises whenever it is told to, in the middle of its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.angry = False

    def forward(self, x: Any) -> Any:
        hidden = self.first(x)
        if self.angry:
            raise ValueError("not today")
        return self.last(hidden)


def modes() -> int:
    return torch._C._len_torch_function_stack()


# ---- exceptions ----------------------------------------------------------------------------------


def test_an_exception_in_the_forward_pass_of_a_plain_loop(tmp_path: Any) -> None:
    def body(watch: Any) -> Any:
        model = Moody()
        optimizer = sgd(model)
        watch(model, optimizer)
        losses = []
        for n, (x, y) in enumerate(batches(5)):
            model.angry = n in (1, 3)
            refused = pytest.raises(ValueError, match="not today") if model.angry else contextlib.nullcontext()
            with refused:
                losses.append(plain_step(model, optimizer, x, y).item())
        return losses

    plain, watched = twice(body, tmp_path)
    assert plain == watched
    recording = endoscope.open(tmp_path / "trial")
    full = [step for step in recording.steps if "update" in _of(recording, "first.weight", step.number)]
    assert len(full) == 3
    assert all(step.passes == 1 for step in full)  # what failed is no pass of the next step
    assert modes() == 0


def _of(recording: Any, node: str, step: int) -> set[str]:
    table = recording.to_arrow().to_pylist()
    return {row["of"] for row in table if row["node"] == node and row["step"] == step}


@pytest.mark.parametrize("place", ["forward", "loss", "backward", "update"])
def test_an_exception_in_a_step_block(tmp_path: Any, place: str) -> None:
    model = Moody()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(4)):
            try:
                with run.step():
                    optimizer.zero_grad()
                    model.angry = n == 1 and place == "forward"
                    out = model(x)
                    if n == 1 and place == "loss":
                        raise KeyError("loss")
                    loss = cross_entropy(out, y)
                    if n == 1 and place == "backward":
                        torch.ones(3).backward()
                    loss.backward()
                    if n == 1 and place == "update":
                        raise KeyboardInterrupt
                    optimizer.step()
            except (ValueError, KeyError, RuntimeError, KeyboardInterrupt):
                assert n == 1
    recording = recorded(run)
    assert set(numbers(recording)) >= {0, 2, 3}
    assert modes() == 0
    for step in recording.steps:
        assert ("exception" in step.config) == (step.number == 1)
    assert recording.series("first.weight", "norm", of="update").steps.tolist() == [0, 2, 3]


@pytest.mark.parametrize("place", ["after forward", "after backward"])
def test_continue_in_a_plain_loop(tmp_path: Any, place: str) -> None:
    def body(watch: Any) -> Any:
        model = mlp()
        optimizer = sgd(model)
        watch(model, optimizer)
        losses = []
        for n, (x, y) in enumerate(batches(6)):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            if n in (1, 4) and place == "after forward":
                continue
            loss.backward()
            if n in (1, 4) and place == "after backward":
                continue
            optimizer.step()
            losses.append(loss.item())
        return losses, [p.detach().clone() for p in model.parameters()], [p.grad.clone() for p in model.parameters()]

    (losses, end, grads), (losses_2, end_2, grads_2) = twice(body, tmp_path)
    assert losses == losses_2
    assert all(map(torch.equal, end, end_2)) and all(map(torch.equal, grads, grads_2))
    assert modes() == 0
    recording = endoscope.open(tmp_path / "trial")
    # The gradient of the last step is that of its own backward pass, whatever was broken off before it.
    last = recording.steps[-1].number
    assert same(recording.tensor("0.weight", last, of="gradient"), grads_2[0])
    assert len(recording.series("0.weight", "norm", of="update")) == 4


def test_continue_in_a_step_block(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(4)):
            with run.step():
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                if n == 1:
                    continue
                loss.backward()
                optimizer.step()
    recording = recorded(run)
    assert set(numbers(recording)) >= {0, 2, 3}
    assert recording.series("0.weight", "norm", of="update").steps.tolist() == [0, 2, 3]
    assert all(step.passes == 1 for step in recording.steps)


def test_an_exception_that_ends_the_run(tmp_path: Any) -> None:
    model = Moody()
    optimizer = sgd(model)
    with pytest.raises(ValueError, match="not today"), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        model.angry = True
        simple_loop(model, optimizer, 1)
    recording = recorded(run)
    assert recording.closed
    assert numbers(recording)[:2] == [0, 1]
    assert modes() == 0


# ---- what is no training step --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["no_grad", "inference_mode", "eval", "eval and no_grad"])
def test_an_evaluation_between_steps_is_no_step(tmp_path: Any, how: str) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            plain_step(model, optimizer, x, y)
            if "eval" in how:
                model.eval()
            for other, _ in batches(4, size=2):
                if "grad" in how:
                    with torch.no_grad():
                        model(other)
                elif how == "inference_mode":
                    with torch.inference_mode():
                        model(other)
                else:
                    model(other)
            model.train()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    assert [step.passes for step in recording.steps] == [1, 1, 1]
    assert set(recording.series("input", "count").values) == {30.0}


def test_an_evaluation_inside_of_a_step_is_no_pass_of_the_plain_loop(tmp_path: Any) -> None:
    """Between forward and backward somebody looks at the validation data."""
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        loss = cross_entropy(model(x), y)
        model.eval()
        with torch.no_grad():
            model(torch.zeros(2, 6))
        model.train()
        loss.backward()
        expected = model[0].weight.grad.clone()
        optimizer.step()
    recording = recorded(run)
    assert same(recording.tensor("0.weight", 0, of="gradient"), expected)
    assert same(recording.tensor("input", 0), x[:4])
    assert recording.steps[0].passes == 1
    assert {key.pass_ for key in recording.tensors_of("0")} == {1}


def test_an_evaluation_after_a_step_that_was_broken_off(tmp_path: Any) -> None:
    """A skipped update, then the validation data: it is not held as if it belonged to that step."""
    model = mlp()
    optimizer = sgd(model)
    kept = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(2):
            cross_entropy(model(x), y).backward()  # and no update
            model.eval()
            for other, _ in batches(3, size=2):
                kept.append(weakref.ref(model(other)))
            model.train()
        assert [reference() for reference in kept] == [None] * 6
    assert all(step.passes <= 2 for step in recorded(run).steps)


def test_training_in_evaluation_mode_is_not_missed_silently(tmp_path: Any) -> None:
    """Fine-tuning with dropout and batch norm at rest: no step begins by itself, and that is said, once."""
    model = mlp().eval()
    optimizer = sgd(model)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 3)
        with run.step():
            simple_loop(model, optimizer, 1)
    assert len(said) == 1 and "with run.step()" in said[0]
    recording = recorded(run)
    assert "evaluation mode" in recording.gaps[0].reason
    assert recording.series("0.weight", "norm", of="update").steps.tolist() == [0]


def test_only_forward_passes(tmp_path: Any) -> None:
    """A model in training mode that is never trained: no harm, nothing held for ever."""
    model = mlp()
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, sgd(model))
        for x, _ in batches(40):
            model(x)
    assert modes() == 0
    assert not recorded(run).problems


# ---- optimizers ----------------------------------------------------------------------------------


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


# ---- other modes around the loop -----------------------------------------------------------------


class Mode(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


def place_mode(where: str, model: Any, optimizer: Any, x: Any, y: Any) -> int:
    """One step with a mode of the user's own around some of it; returns what the mode saw."""
    mode = Mode()
    optimizer.zero_grad()
    if where == "around forward":
        with mode:
            out = model(x)
        cross_entropy(out, y).backward()
        optimizer.step()
    elif where == "around forward and backward":
        with mode:
            cross_entropy(model(x), y).backward()
        optimizer.step()
    elif where == "around everything":
        with mode:
            cross_entropy(model(x), y).backward()
            optimizer.step()
    elif where == "from backward to update":
        loss = cross_entropy(model(x), y)
        with mode:
            loss.backward()
            optimizer.step()
    elif where == "a device":
        with torch.device("cpu"):
            out = model(x)
        cross_entropy(out, y).backward()
        optimizer.step()
    return mode.seen


PLACES = ["around forward", "around forward and backward", "around everything", "from backward to update", "a device"]


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("where", PLACES)
def test_modes_of_the_user_are_entered_and_left_as_without_us(tmp_path: Any, where: str, block: bool) -> None:
    model = mlp()
    optimizer = sgd(model)
    plain = [place_mode(where, model, optimizer, x, y) for x, y in batches(3)]
    expected = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            if block:
                with run.step():
                    seen = place_mode(where, model, optimizer, x, y)
                    depth = modes()
                assert depth == 1, "ours and nobody else's"
            else:
                seen = place_mode(where, model, optimizer, x, y)
            assert modes() == 0
            assert (seen > 0) == (plain[0] > 0)
            expected.append(model[0].weight.grad.clone())
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    for step, gradient in enumerate(expected):
        assert same(recording.tensor("0.weight", step, of="gradient"), gradient)


@pytest.mark.parametrize("block", [False, True])
def test_the_default_device_may_change_at_any_time(tmp_path: Any, block: bool) -> None:
    model = mlp()
    optimizer = sgd(model)
    try:
        with strict_run(tmp_path) as run:
            run.watch(model, optimizer)
            for n, (x, y) in enumerate(batches(4)):
                if n == 1:
                    torch.set_default_device("cpu")
                with run.step() if block else contextlib.nullcontext():
                    optimizer.zero_grad()
                    out = model(x)
                    if n == 2:
                        torch.set_default_device("meta")
                        assert torch.zeros(1).is_meta
                        torch.set_default_device(None)
                    cross_entropy(out, y).backward()
                    optimizer.step()
        assert modes() == 0
    finally:
        torch.set_default_device(None)
    assert numbers(recorded(run)) == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_detection_and_flop_counting(tmp_path: Any) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    def body(watch: Any) -> Any:
        model = mlp()
        optimizer = sgd(model)
        watch(model, optimizer)
        with torch.autograd.set_detect_anomaly(True), FlopCounterMode(display=False) as counter:
            losses = simple_loop(model, optimizer, 3)
        return losses, counter.get_total_flops()

    plain, watched = twice(body, tmp_path)
    assert plain == watched

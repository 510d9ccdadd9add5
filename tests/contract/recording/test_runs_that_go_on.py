"""Runs that are off, that pause, that go on in an old trial, and that stand side by side; modes of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import endoscope
from tests.contract.recording.helpers import (
    batches,
    mlp,
    no_complaint,
    numbers,
    plain_step,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
)
from tests.contract.recording.oracle import Oracle, agree

cross_entropy = nn.functional.cross_entropy


# ---- off -----------------------------------------------------------------------------------------


def inside(model: nn.Module) -> list[dict[str, Any]]:
    """Everything that is in the modules, dictionaries by what is in them."""
    return [
        {name: {k: id(v) for k, v in value.items()} if isinstance(value, dict) else id(value) for name, value in found}
        for found in (vars(module).items() for module in model.modules())
    ]


def test_a_run_that_is_off_does_nothing(tmp_path: Any) -> None:
    root = tmp_path / "runs"
    torch.manual_seed(3)
    twin = mlp()
    plain = simple_loop(twin, sgd(twin), 5)
    torch.manual_seed(3)
    model = mlp()
    optimizer = sgd(model)
    before = inside(model)
    losses = []
    with no_complaint(), endoscope.Run(root, trial="x", enabled=False, strict=True) as run:
        assert run.watch(model, optimizer) is model
        for x, y in batches(5):
            with run.step(type="any") as step:
                assert step.tag("x", x) is x
                with step.gradients("loss"):
                    losses.append(plain_step(model, optimizer, x, y).item())
                step.metric("mean", losses[-1])
                step.decide(keep=True, samples=[1], categories=y, type="other")
                step.config(lr=0.1)
                step.link("x", "y")
            run.current_step.tag("x", x)
            run.metric("mean", losses[-1])
        run.note("a line")
        run.config(lr=0.1)
        run.pause()
        run.resume()
        run.flush()
        assert inside(model) == before
    run.close()
    assert losses == plain
    assert not root.exists()
    assert torch._C._len_torch_function_stack() == 0


def test_a_run_that_is_off_leaves_optimizers_alone(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    hooks = len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)
    with endoscope.Run(tmp_path, trial="x", enabled=False) as run:
        run.watch(model, optimizer)
        assert (len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)) == hooks
    assert list(tmp_path.iterdir()) == []


# ---- pauses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [False, True])
def test_a_run_pauses_and_goes_on(tmp_path: Any, block: bool) -> None:
    """Steps are counted in the pause as well: their numbers do not depend on what is recorded."""
    model = mlp()
    optimizer = sgd(model)
    expected = {}
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(12)):
            if n in (3, 8):
                run.pause()
            if n in (6, 10):
                run.resume()
            with run.step() if block else Oracle().step():
                plain_step(model, optimizer, x, y)
            expected[n] = model[0].weight.grad.clone()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 6, 7, 10, 11]
    for number in numbers(recording):
        assert same(recording.tensor("0.weight", number, of="gradient"), expected[number])
    assert recording.gaps == []


def test_a_pause_in_the_middle_of_a_step(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(6)):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            if n == 2:
                run.pause()
            if n == 4:
                run.resume()
            loss.backward()
            optimizer.step()
    found = numbers(recorded(run))
    assert {0, 1, 5} <= set(found) <= {0, 1, 2, 4, 5}
    assert torch._C._len_torch_function_stack() == 0


# ---- going on ------------------------------------------------------------------------------------


def part(root: Any, steps: range, offset: float, *, explicit: bool, **settings: Any) -> Any:
    """One part of a training; its metric is the step's number plus `offset`."""
    model = mlp()
    optimizer = sgd(model)
    with strict_run(root, trial="x", **settings) as run:
        run.watch(model, optimizer)
        for n, (x, y) in zip(steps, batches(len(steps)), strict=True):
            with run.step(n) if explicit else Oracle().step():
                plain_step(model, optimizer, x, y)
                run.metric("mean", n + offset)
    return run


def test_a_trial_is_continued(tmp_path: Any) -> None:
    first = part(tmp_path, range(6), 0.0, explicit=False)
    second = part(tmp_path, range(6, 9), 100.0, explicit=False, resume=True)
    assert second.path == first.path
    assert list(endoscope.open(tmp_path)) == ["x"]
    recording = recorded(second)
    assert numbers(recording) == [*range(9)]
    assert recording.series("0.weight", "norm", of="update").steps.tolist() == [*range(9)]


def test_what_came_after_the_resumed_step_is_superseded(tmp_path: Any) -> None:
    """Training goes on from a checkpoint: old steps 4 to 7 are not part of it any more, but nobody deleted them."""
    first = part(tmp_path, range(8), 0.0, explicit=True)
    old = recorded(first)
    known = {number: old.tensor("0.weight", number, of="gradient") for number in range(8)}
    files = {
        file: file.stat().st_size for file in Path(first.path).rglob("*") if file.suffix in (".arrow", ".safetensors")
    }
    torch.manual_seed(11)
    second = part(tmp_path, range(4, 6), 100.0, explicit=True, resume=True)
    recording = recorded(second)
    assert numbers(recording) == [0, 1, 2, 3, 4, 5]
    assert recording.metrics["mean"].steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert recording.metrics["mean"].values.tolist() == [0, 1, 2, 3, 104, 105]
    for number in range(4):
        assert same(recording.tensor("0.weight", number, of="gradient"), torch.from_numpy(known[number]))
    for number in (4, 5):
        assert not same(recording.tensor("0.weight", number, of="gradient"), torch.from_numpy(known[number]))
    assert all(file.exists() and file.stat().st_size >= size for file, size in files.items())


def test_going_on_in_a_trial_that_does_not_exist_begins_it(tmp_path: Any) -> None:
    run = part(tmp_path, range(3), 0.0, explicit=False, resume=True)
    assert Path(run.path).name == "x"
    assert numbers(recorded(run)) == [0, 1, 2]


def test_without_resume_a_name_that_is_taken_gets_a_number(tmp_path: Any) -> None:
    part(tmp_path, range(3), 0.0, explicit=False)
    assert Path(part(tmp_path, range(3), 0.0, explicit=False).path).name == "x-2"


# ---- two runs at once ----------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [False, True])
def test_two_runs_do_not_see_each_others_modules(tmp_path: Any, nested: bool) -> None:
    models = [mlp(), nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), nn.Identity())]
    optimizers = [sgd(model) for model in models]
    oracles = [Oracle(), Oracle()]
    with strict_run(tmp_path / "a", keep=64) as a, strict_run(tmp_path / "b", keep=64) as b:
        for run, oracle, model, optimizer in zip((a, b), oracles, models, optimizers, strict=True):
            run.watch(model, optimizer)
            oracle.watch(model, optimizer)
        for x, y in batches(20):
            losses = []
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                losses.append(cross_entropy(model(x), y))
                if not nested:
                    losses[-1].backward()
                    optimizer.step()
            for loss, optimizer in zip(losses, optimizers, strict=True) if nested else ():
                loss.backward()
                optimizer.step()
    for run, oracle, model in zip((a, b), oracles, models, strict=True):
        recording = recorded(run)
        mine = {name for name, _ in [*model.named_modules(), *model.named_parameters()] if name}
        assert mine <= set(recording.nodes) <= mine | {"input", "output", "target", "loss"}
        assert numbers(recording) == [*range(20)]
        assert [step.passes for step in recording.steps] == [1] * 20
        for number, step in enumerate(oracle.steps):
            agree(recording, number, step)


# ---- modes of the user ---------------------------------------------------------------------------


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(getattr(func, "__qualname__", None) or repr(func))
        return func(*args, **(kwargs or {}))


class Dispatches(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


def calls_of(kind: Any, around: str, run: Any) -> list[list[str]]:
    """What a mode of the user saw in each step."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = sgd(model)
    run.watch(model, optimizer)
    found = []
    for x, y in batches(20):
        mode = kind()
        if around == "the step":
            with mode:
                plain_step(model, optimizer, x, y)
        else:
            optimizer.zero_grad()
            with mode:
                out = model(x)
            loss = cross_entropy(out, y)
            with mode:
                loss.backward()
            optimizer.step()
        found.append(mode.calls)
    return found


@pytest.mark.parametrize("when", [1, 3])
@pytest.mark.parametrize("around", ["the step", "forward and backward"])
@pytest.mark.parametrize("kind", [Functions, Dispatches])
def test_modes_of_the_user_see_the_same_calls(tmp_path: Any, kind: Any, around: str, when: int) -> None:
    plain = calls_of(kind, around, Oracle(hooks=False))
    with strict_run(tmp_path, when=when) as run:
        watched = calls_of(kind, around, run)
    assert plain[0]
    for number, (one, two) in enumerate(zip(plain, watched, strict=True)):
        assert one == two, number

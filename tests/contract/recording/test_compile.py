"""Compiled models: recorded steps run eagerly, all others compiled, nothing is compiled anew."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from tests.contract.recording.helpers import batches, mlp, numbers, plain_step, recorded, same, sgd, strict_run

COMPILED: list[str] = []


def backend(graph: Any, inputs: Any) -> Any:
    """Runs what it is given as it is, and notes when it runs: a compiler whose work can be counted."""
    COMPILED.append("compiled")

    def run(*args: Any) -> Any:
        COMPILED.append("ran")
        return graph.forward(*args)

    return run


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Any:
    torch._dynamo.reset()
    COMPILED.clear()
    yield
    torch._dynamo.reset()


def compiled_after_watch(model: nn.Module, optimizer: Any, run: Any) -> Any:
    run.watch(model, optimizer)
    return torch.compile(model, backend=backend)


def compiled_before_watch(model: nn.Module, optimizer: Any, run: Any) -> Any:
    return run.watch(torch.compile(model, backend=backend), optimizer)


def compiled_in_place(model: nn.Module, optimizer: Any, run: Any) -> Any:
    model.compile(backend=backend)
    return run.watch(model, optimizer)


def compiled_in_place_after_watch(model: nn.Module, optimizer: Any, run: Any) -> Any:
    run.watch(model, optimizer)
    model.compile(backend=backend)
    return model


WAYS = [compiled_after_watch, compiled_before_watch, compiled_in_place, compiled_in_place_after_watch]


class Net(nn.Module):
    """With a forward of its own, as models of users have."""

    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()

    def forward(self, x: Any) -> Any:
        return self.body(x) * 2


def train(model: Any, optimizer: Any, steps: int = 6) -> list[float]:
    return [plain_step(model, optimizer, x, y).item() for x, y in batches(steps)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [Net, mlp])
def test_recorded_steps_run_eagerly_and_others_compiled(tmp_path: Any, way: Any, make: Any) -> None:
    torch.manual_seed(1)
    eager = make()
    plain = train(eager, sgd(eager))
    torch.manual_seed(1)
    model = make()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=lambda info: info.number in (0, 3)) as run:
        called = way(model, optimizer, run)
        ran = []
        losses = []
        for x, y in batches(6):
            before = COMPILED.count("ran")
            losses.append(plain_step(called, optimizer, x, y).item())
            ran.append(COMPILED.count("ran") > before)
    recording = recorded(run)
    assert losses == plain
    assert all(map(torch.equal, eager.parameters(), model.parameters()))
    assert numbers(recording) == [0, 3]
    assert not any("_orig_mod" in node for node in recording.nodes)
    prefix = "body." if make is Net else ""
    assert {f"{prefix}0", f"{prefix}1", f"{prefix}2", f"{prefix}0.weight", "output", "loss"} <= set(recording.nodes)
    assert recording.gaps == []
    assert recording.statistics(f"{prefix}0", 3, of="gradient")["norm"] > 0
    assert recording.statistics(f"{prefix}0.weight", 3, of="update")["norm"] > 0
    assert not ran[0] and not ran[3]
    assert COMPILED.count("compiled") <= 1
    if make is Net or way is compiled_before_watch:  # hooks keep a bare container of torch from being compiled
        assert ran == [False, True, True, False, True, True]


def test_the_recording_is_that_of_the_eager_model(tmp_path: Any) -> None:
    found = []
    for way in (lambda model, optimizer, run: run.watch(model, optimizer), compiled_before_watch):
        torch.manual_seed(1)
        model = mlp()
        optimizer = sgd(model)
        with strict_run(tmp_path, keep=5) as run:
            train(way(model, optimizer, run), optimizer, 3)
        found.append(recorded(run))
    eager, compiled = found
    assert eager.nodes == compiled.nodes
    assert eager.steps[2].graph == compiled.steps[2].graph
    for node in eager.nodes:
        for key in eager.tensors_of(node):
            left, right = (r.tensor(node, 2, of=key.of, role=key.role, pass_=key.pass_) for r in found)
            assert same(left, torch.from_numpy(right.copy())), (node, key.of)


def test_a_compiled_model_in_blocks(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    called = torch.compile(model, backend=backend)
    with strict_run(tmp_path, when=2) as run:
        run.watch(model, optimizer)
        for x, y in batches(4):
            with run.step() as step:
                step.metric("loss", plain_step(called, optimizer, x, y))
    recording = recorded(run)
    assert numbers(recording) == [0, 2]
    assert "1" in recording.nodes
    assert COMPILED.count("compiled") == 1


def test_a_compiled_training_step_or_optimizer(tmp_path: Any) -> None:
    """The whole forward pass and loss in one compiled function."""
    model = mlp()
    optimizer = sgd(model)

    @torch.compile(backend=backend)
    def loss_of(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(model(x), y)

    with strict_run(tmp_path, when=2) as run:
        run.watch(model, optimizer)
        for x, y in batches(4):
            with run.step():
                optimizer.zero_grad()
                loss_of(x, y).backward()
                optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 2]
    assert recording.statistics("2", 2, of="gradient")["norm"] > 0


def test_the_compiler_is_as_it_was(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    called = torch.compile(model, backend=backend)
    train(called, optimizer, 2)
    compiled = COMPILED.count("compiled")
    with strict_run(tmp_path) as run:
        run.watch(called, optimizer)
        train(called, optimizer, 2)
    before = COMPILED.count("ran")
    train(called, optimizer, 2)
    assert COMPILED.count("ran") == before + 2
    assert COMPILED.count("compiled") <= compiled + 1
    assert endoscope.open(run.path).closed

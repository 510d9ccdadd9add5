"""Gradients, whoever begins the backward pass and whatever is done to them on the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.recording.held_steps import Loop, at_the_end, mlp, recorded


def below_python(loss: Tensor) -> None:
    """As a library does that calls the engine by itself."""
    engine = torch.autograd.Variable._execution_engine
    engine.run_backward(
        (loss,), (torch.ones_like(loss),), False, False, (), allow_unreachable=True, accumulate_grad=True
    )


@pytest.mark.parametrize("keep", [[True] * 4, [False, False, False, True]])
def test_a_pass_that_nobody_announces_is_a_gap(tmp_path: Path, keep: list[bool]) -> None:
    loop = Loop(tmp_path, mlp())
    for kept in keep:
        loop.step(lambda step: loop.model(torch.ones(5, 3)).sum(), keep=kept, backward=below_python)
    recording = loop.recording()
    for node in ("2.bias", "0.weight"):
        assert len(recording.series(node, "mean", of="gradient:loss").values) == sum(keep)
    assert recording.series("2.bias", "mean", of="gradient:loss").values[-1] == 5.0
    assert [key.of for key in recording.tensors_of("output")] == ["value"]
    assert ["no beginning of a backward pass was seen" in gap.reason for gap in recording.gaps] == [True]


def test_gradients_of_what_comes_from_outside_are_recorded(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())
    offset = torch.zeros(2, requires_grad=True)

    def body(step: Any) -> Tensor:
        given = torch.ones(5, 3, requires_grad=True)
        return (loop.model(given) + offset).sum()

    for _ in range(3):
        loop.step(body, keep=True)
        offset.grad = None
    recording = loop.recording()
    assert len(recording.series("input", "mean", of="gradient:loss").values) == 3
    assert recording.series("target", "mean", of="gradient:loss").values.tolist() == [5.0] * 3


def test_who_begins_to_use_gradients_up_is_noticed(tmp_path: Path) -> None:
    """A parameter that had its gradient at the end of every pass need not have it there for ever."""
    loop = Loop(tmp_path, mlp())
    weight = loop.model[0].weight

    def body(step: Any) -> Tensor:
        return loop.model(torch.ones(5, 3)).sum()

    for _ in range(3):
        loop.step(body, keep=True)
    node = weight.expand_as(weight).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: setattr(weight, "grad", None))
    for _ in range(3):
        loop.step(body, keep=True)
    recording = loop.recording()
    assert recording.series("0.weight", "mean", of="gradient:loss").steps.tolist() == [0, 1, 2, 3, 4, 5]


def test_hooks_of_the_user_change_nothing_of_what_arrived(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())

    def body(step: Any) -> Tensor:
        out: Tensor = loop.model(torch.ones(5, 3))
        out.register_hook(lambda gradient: gradient * 0)
        return out.sum()

    for _ in range(3):
        loop.step(body, keep=True)
    assert loop.recording().series("output", "mean", of="gradient:loss").values.tolist() == [1.0] * 3


def test_a_tensor_that_is_handed_back_has_its_gradient_twice(tmp_path: Path) -> None:
    loop = Loop(tmp_path, nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Linear(4, 2)))
    for _ in range(3):
        loop.step(lambda step: loop.model(torch.ones(5, 3)).sum(), keep=True)
    recording = loop.recording()
    for node in ("0", "1"):
        assert len(recording.series(node, "mean", of="gradient:loss").values) == 3


def test_the_input_of_a_second_model_has_a_gradient(tmp_path: Path) -> None:
    loop, other = Loop(tmp_path, mlp()), nn.Linear(2, 2)
    loop.run.watch(other, loop.optimizer, name="other")
    for _ in range(4):
        loop.step(lambda step: other(torch.tanh(loop.model(torch.ones(5, 3)))).sum(), keep=True)
    assert len(loop.recording().series("other.input", "mean", of="gradient:loss").values) == 4


@pytest.mark.parametrize("late", [False, True])
def test_passes_of_other_threads_are_none_of_ours(tmp_path: Path, late: bool) -> None:
    stop = threading.Event()

    def train_another() -> None:
        model = mlp()
        while not stop.is_set():
            model(torch.ones(5, 3)).sum().backward()

    def train(watch: Any, steps: int) -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        watch(model, optimizer)
        for _ in range(60):
            model(torch.ones(5, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    thread = threading.Thread(target=train_another)
    thread.start()
    try:
        path = recorded(tmp_path, train, when=at_the_end if late else 1)
    finally:
        stop.set()
        thread.join()
    recording = endoscope.open(path)
    assert len(recording.steps) == 60
    assert not any(step.extra.get("no_gradient") for step in recording.steps)


@pytest.mark.parametrize("when", [1, at_the_end])
def test_a_weight_that_is_used_more_and_less_often(tmp_path: Path, when: Any) -> None:
    """Gradients of several uses are added up in place, so how often a gradient was written says nothing."""

    class Repeated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.times = nn.Parameter(torch.ones(3)), 1

        def forward(self, x: Tensor) -> Tensor:
            return sum((x * self.weight for _ in range(self.times)), torch.zeros(()))

    def train(watch: Any, _: int) -> None:
        model = Repeated()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watch(model, optimizer)
        for model.times in (2, 5, 1, 3, 4, 2):
            model(torch.ones(5, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    recording = endoscope.open(recorded(tmp_path, train, when=when))
    assert all("traced" in gap.reason for gap in recording.gaps)  # the loop is a part of the graph
    assert recording.series("weight", "mean", of="gradient:loss").values.tolist() == [10, 25, 5, 15, 20, 10]


@pytest.mark.parametrize("name", ["backward", "_engine_run_backward"])
def test_somebody_else_has_exchanged_what_runs_backward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    original, calls = getattr(torch.autograd, name), list[int]()

    def theirs(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return original(*args, **kwargs)

    for module in (torch.autograd, torch.autograd.graph):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, theirs)
    loop = Loop(tmp_path, mlp())
    for _ in range(3):
        loop.step(lambda step: loop.model(torch.ones(5, 3)).sum(), keep=True)
    recording = loop.recording()
    assert len(calls) == 3 and not recording.gaps
    for node in ("loss", "1", "0.weight"):
        assert len(recording.series(node, "mean", of="gradient:loss").values) == 3
    types = {node["type"] for node in recording.graph(2)["nodes"]}
    assert "ones_like" not in types


@pytest.mark.parametrize("backward", [below_python, Tensor.backward])
def test_two_passes_are_counted_once_each(tmp_path: Path, backward: Any) -> None:
    loop = Loop(tmp_path, mlp())
    for _ in range(3):
        with loop.run.step() as step:
            out = loop.model(torch.ones(5, 3))
            for loss, factor in (("a", 1.0), ("b", 3.0)):
                with step.gradients(loss):
                    engine_keeps_graph(backward, (factor * out).sum())
            loop.optimizer.step()
            loop.optimizer.zero_grad()
            step.decide(keep=True)
    recording = loop.recording()
    for loss, gradient in (("a", 1.0), ("b", 3.0)):
        assert recording.series("2", "mean", of=f"gradient:{loss}").values.tolist() == [gradient] * 3
        assert recording.series("2.bias", "mean", of=f"gradient:{loss}").values.tolist() == [5 * gradient] * 3


def engine_keeps_graph(backward: Any, loss: Tensor) -> None:
    if backward is Tensor.backward:
        loss.backward(retain_graph=True)
        return
    engine = torch.autograd.Variable._execution_engine
    engine.run_backward(
        (loss,), (torch.ones_like(loss),), True, False, (), allow_unreachable=True, accumulate_grad=True
    )

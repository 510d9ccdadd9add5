"""Loops that do not do forward, backward, step and nothing else."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import (
    batches,
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


@pytest.mark.parametrize(
    ("when", "wanted"),
    [(1, [*range(9)]), (endoscope.policies.at({0, 5, 8}), [0, 5, 8]), (endoscope.policies.every(4), [0, 4, 8])],
    ids=["all", "some", "every fourth"],
)
def test_steps_are_counted_alike_whether_they_are_recorded_or_not(tmp_path: Any, when: Any, wanted: list[int]) -> None:
    """A forward pass that raised is a step, so that numbers do not depend on what is recorded."""
    model = Moody()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=when) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(9)):
            model.angry = n in (1, 2, 6)
            with contextlib.suppress(ValueError):
                plain_step(model, optimizer, x, y)
    assert numbers(recorded(run)) == wanted


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


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_forward_pass_that_is_interrupted_ends_its_step(tmp_path: Any, error: type[BaseException]) -> None:
    """Also for `Ctrl-C`, of which torch tells no hook. The next step holds its own passes only."""

    class Interrupted(nn.Module):
        now = False

        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp()

        def forward(self, x: Tensor) -> Tensor:
            out = self.inner(x)
            if self.now:
                raise error
            return out

    model = Interrupted()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(12)):
            model.now = n in (3, 9)
            optimizer.zero_grad()
            with contextlib.suppress(error):
                cross_entropy(model(x), y).backward()
                optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == list(range(12))
    assert recording.series("inner", "mean").steps.tolist() == list(range(12))
    assert recording.series("inner", "mean", of="gradient").steps.tolist() == [n for n in range(12) if n not in (3, 9)]
    assert {key.pass_ for key in recording.tensors_of("inner")} == {1}

"""Optimizers that stand inside of something else, as those of Accelerate and Fabric do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import batches, mlp, numbers, recorded, sgd
from tests.contract.recording.oracle import Oracle, agree, compared, ends

cross_entropy = nn.functional.cross_entropy


class Wrapper:
    """No optimizer itself, as that of Fabric; it steps with every second call if it accumulates."""

    def __init__(self, optimizer: Any, accumulate: int = 1) -> None:
        self.optimizer = optimizer
        self.accumulate, self.calls = accumulate, 0

    @property
    def is_last(self) -> bool:
        return self.calls % self.accumulate == 0

    @property
    def param_groups(self) -> Any:
        return self.optimizer.param_groups

    def zero_grad(self) -> None:
        if self.is_last:
            self.optimizer.zero_grad()

    def step(self) -> None:
        self.calls += 1
        if self.is_last:
            self.optimizer.step()


class Accelerated(torch.optim.Optimizer):
    """As that of Accelerate: an optimizer by its class, which was never initialised as one."""

    def __init__(self, optimizer: Any, accumulate: int = 1) -> None:
        self.optimizer = optimizer
        self.accumulate, self.calls = accumulate, 0

    @property
    def state(self) -> Any:
        return self.optimizer.state

    @state.setter
    def state(self, value: Any) -> None:
        self.optimizer.state = value

    @property
    def param_groups(self) -> Any:
        return self.optimizer.param_groups

    @property
    def defaults(self) -> Any:
        return self.optimizer.defaults

    is_last = Wrapper.is_last

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        if self.is_last:
            self.optimizer.zero_grad()

    def step(self, closure: Any = None) -> None:
        self.calls += 1
        if self.is_last:
            self.optimizer.step(closure)


def train(run: Any, wrap: Any, accumulate: int, layers: int = 1) -> tuple[list[float], list[Tensor]]:
    model = mlp()
    inner = torch.optim.Adam(model.parameters(), lr=0.01)
    outer: Any = wrap(inner, accumulate)
    for _ in range(layers - 1):
        outer = wrap(outer)
    run.watch(model, inner if isinstance(run, Oracle) else outer)
    losses = []
    for n, (x, y) in enumerate(batches(20)):
        loss = cross_entropy(model(x), y) / accumulate
        loss.backward()
        if n % accumulate == accumulate - 1:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        outer.step()
        outer.zero_grad()
        losses.append(loss.item())
    return losses, ends(model)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("wrap", [Wrapper, Accelerated])
def test_the_optimizer_inside_of_a_wrapper_is_watched(tmp_path: Any, wrap: Any, accumulate: int) -> None:
    seen, recording = compared(lambda run: train(run, wrap, accumulate), tmp_path)
    assert numbers(recording) == [*range(20 // accumulate)]
    assert [step.passes for step in recording.steps] == [accumulate] * (20 // accumulate)
    for number, step in enumerate(seen):
        assert step.updates
        agree(recording, number, step)


@pytest.mark.parametrize("wrap", [Wrapper, Accelerated])
def test_a_wrapper_around_a_wrapper(tmp_path: Any, wrap: Any) -> None:
    seen, recording = compared(lambda run: train(run, wrap, 1, layers=2), tmp_path)
    assert numbers(recording) == [*range(20)]
    for number, step in enumerate(seen):
        agree(recording, number, step)


def test_wrappers_in_a_list(tmp_path: Any) -> None:
    def body(run: Any) -> Any:
        model = mlp()
        inner = [sgd(model[n]) for n in (0, 2)]
        run.watch(model, inner if isinstance(run, Oracle) else [Wrapper(one) for one in inner])
        losses = []
        for x, y in batches(6):
            model.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            for optimizer in inner:
                optimizer.step()
            losses.append(loss.item())
        return losses, ends(model)

    seen, recording = compared(body, tmp_path)
    assert numbers(recording) == [*range(6)]
    for number, step in enumerate(seen):
        agree(recording, number, step)


def test_watching_what_is_no_optimizer_leaves_nothing_on_the_model(tmp_path: Any) -> None:
    class Broken:
        @property
        def optimizer(self) -> Any:
            raise RuntimeError("not yet")

    class Wrong:
        optimizer = "adam"

    model = mlp()
    before = [{key: repr(value) for key, value in vars(module).items()} for module in model.modules()]
    with endoscope.Run(tmp_path, trial="trial", when=1) as run:
        for wrapper in (Broken(), Wrong(), object(), [sgd(model), 3]):
            with pytest.raises((endoscope.errors.EndoscopeError, RuntimeError)):
                run.watch(model, wrapper)
            after = [{key: repr(value) for key, value in vars(module).items()} for module in model.modules()]
            assert after == before, wrapper
        optimizer = sgd(model)
        run.watch(model, optimizer)  # nobody says that it is watched already
        for x, y in batches(3):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    assert recording.series("0.weight", "norm", of="update").steps.tolist() == [0, 1, 2]

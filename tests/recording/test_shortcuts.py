"""Modules that are called by shortcuts: nothing is recorded otherwise, and nobody's hooks are passed over."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording.postponed import Notes
from tests.recording.held_steps import Loop, mlp


class Two(nn.Module):
    """A container with a module in it twice, and another module."""

    def __init__(self) -> None:
        super().__init__()
        again = nn.Linear(3, 3)
        self.layers, self.head = nn.Sequential(again, nn.ReLU(), again, nn.ReLU()), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))  # type: ignore[no-any-return]


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many modules were called in one go, each time."""
    found: list[int] = []
    run = Notes.run

    def noted(self: Notes, chain: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(len(chain.links))
        return run(self, chain, *args, **kwargs)

    monkeypatch.setattr(Notes, "run", noted)
    return found


def forward(loop: Loop) -> Callable[[Any], Tensor]:
    return lambda step: loop.model(torch.ones(5, 3)).sum()


def steps(loop: Loop, count: int = 3, keep: bool = True) -> None:
    for _ in range(count):
        loop.step(forward(loop), keep=keep)


def test_a_model_that_is_a_container_is_one_chain(tmp_path: Path, chains: list[int]) -> None:
    loop = Loop(tmp_path, mlp())
    steps(loop)
    assert chains == [3, 3]  # from the second step on it is known what there is
    recording = loop.recording()
    assert [step.passes for step in recording.steps] == [1, 1, 1] and not recording.gaps
    assert len({step.graph for step in recording.steps}) == 1


def test_a_module_that_stands_in_a_container_twice(tmp_path: Path, chains: list[int]) -> None:
    torch.manual_seed(0)
    loop = Loop(tmp_path, Two())
    steps(loop, 4)
    assert chains == [4, 1] * 3
    recording = loop.recording()
    assert len({step.graph for step in recording.steps}) == 1 and not recording.gaps
    for number in (1, 2):
        assert len(recording.series("layers.0", "mean", pass_=number).values) == 4
    updates = recording.series("layers.0.weight", "norm", of="update").values
    assert len(updates) == 4 and all(updates > 0)


def hook_before(model: Any, seen: list[str]) -> Any:
    return model.register_forward_pre_hook(lambda *_: seen.append("before"))


def hook_after(model: Any, seen: list[str]) -> Any:
    return model.register_forward_hook(lambda *_: seen.append("after"))


def hook_backward(model: Any, seen: list[str]) -> Any:
    return model.register_full_backward_hook(lambda *_: seen.append("backward"))


def hook_inside(model: Any, seen: list[str]) -> Any:
    return model[1].register_forward_hook(lambda *_: seen.append("inside"))


def hook_everywhere(_: Any, seen: list[str]) -> Any:
    return nn.modules.module.register_module_forward_hook(lambda *_: seen.append("everywhere"))


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize(
    ("hook", "calls"), [(hook_before, 1), (hook_after, 1), (hook_backward, 1), (hook_inside, 1), (hook_everywhere, 4)]
)
def test_hooks_of_others_are_called(tmp_path: Path, hook: Callable[[Any, list[str]], Any], calls: int) -> None:
    loop, seen = Loop(tmp_path, mlp()), list[str]()
    steps(loop)
    handle = hook(loop.model, seen)
    steps(loop)
    handle.remove()
    steps(loop)
    assert len(seen) == 3 * calls
    recording = loop.recording()
    assert [step.passes for step in recording.steps] == [1] * 9


def test_two_runs_that_watch_the_same_model(tmp_path: Path) -> None:
    loop = Loop(tmp_path / "one", mlp())
    with endoscope.Run(tmp_path / "two", trial="t", when=1, strict=True) as other:
        other.watch(loop.model, loop.optimizer)
        steps(loop, 4)
    assert len(endoscope.open(other.path).steps) == 4
    assert len(loop.recording().steps) == 4


def test_a_model_that_is_called_several_times(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())
    for count in (1, 3, 2, 3):
        loop.step(lambda step, n=count: sum(loop.model(torch.ones(5, 3)).sum() for _ in range(n)), keep=True)  # type: ignore[misc]
    recording = loop.recording()
    assert [step.passes for step in recording.steps] == [1, 3, 2, 3]


def test_an_error_inside_of_a_chain_shows_the_way_to_it(tmp_path: Path) -> None:
    loop = Loop(tmp_path, mlp())
    steps(loop)

    def body(step: Any) -> Tensor:
        with pytest.raises(RuntimeError, match="shapes") as caught:
            loop.model(torch.ones(5, 2))
        assert "It was raised in Linear(in_features=3" in "".join(traceback.format_exception(caught.value))
        before[:] = [parameter.detach().clone() for parameter in loop.model.parameters()]
        return forward(loop)(step)

    before: list[Tensor] = []
    loop.step(body, keep=True)
    after, recording = list(loop.model.parameters()), loop.recording()
    assert not recording.gaps
    for (name, _), old, new in zip(loop.model.named_parameters(), before, after, strict=True):
        update = recording.series(name, "norm", of="update").values[-1]  # all were copied before the update
        assert update == pytest.approx(float((new.detach() - old).norm()), rel=1e-4)


@pytest.mark.parametrize("name", ["__call__", "_call_impl"])
def test_a_call_that_was_exchanged_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    calls: list[int] = []
    original = getattr(nn.Linear, name)

    def theirs(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return original(self, *args, **kwargs)

    loop = Loop(tmp_path, mlp())
    steps(loop)
    monkeypatch.setattr(nn.Linear, name, theirs)
    steps(loop)
    assert len(calls) == 3 * 2


def test_a_call_of_one_module_that_was_exchanged_is_called(tmp_path: Path) -> None:
    loop, calls = Loop(tmp_path, mlp()), list[int]()
    steps(loop)
    original = loop.model[0]._call_impl
    loop.model[0]._call_impl = lambda *args: calls.append(1) or original(*args)  # type: ignore[func-returns-value]
    steps(loop)
    assert len(calls) == 3


def test_a_parameter_may_be_what_a_model_is_given(tmp_path: Path) -> None:
    loop, latent = Loop(tmp_path, mlp()), nn.Parameter(torch.ones(5, 3))
    for _ in range(4):
        loop.step(lambda step: loop.model(latent).sum(), keep=True)
    recording = loop.recording()
    assert len(recording.steps) == 4 and not recording.gaps


def test_what_torch_runs_inside_of_an_operation_runs_once(tmp_path: Path) -> None:
    packed: list[int] = []

    def pack(x: Tensor) -> Tensor:
        packed.append(1)
        if len(packed) == 3:
            raise ValueError("theirs")
        return x

    loop = Loop(tmp_path, mlp())
    steps(loop)

    def body(step: Any) -> Tensor:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x), pytest.raises(ValueError, match="theirs"):
            loop.model(torch.ones(5, 3))
        return forward(loop)(step)

    loop.step(body, keep=True)
    assert len(packed) == 3 and not loop.recording().gaps

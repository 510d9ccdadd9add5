"""Marks of optimizers for a profiler: made if anybody is there to see them, and only then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.profiler import record_function
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import endoscope
from endoscope.capture import profiler_marks

STEP, ZERO = "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"


class Training:
    """A small one, recorded."""

    def __init__(self, folder: Path) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.run = endoscope.Run(folder, trial="t", when=1, strict=True)
        self.run.watch(self.model, self.optimizer)

    def update(self) -> None:
        self.model(torch.ones(4, 3)).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self, keep: bool = False) -> None:
        with self.run.step() as step:
            self.update()
            step.decide(keep=keep)


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    found = Training(tmp_path)
    yield found
    found.run.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the marks that torch has really made."""
    found: list[str] = []
    enter = torch.ops.profiler._record_function_enter_new

    def counted(name: str, args: Any = None) -> Any:
        found.append(name)
        return enter(name, args)

    monkeypatch.setattr(torch.ops.profiler, "_record_function_enter_new", counted)
    return found


def test_nobody_is_there(training: Training, made: list[str]) -> None:
    assert profiler_marks.callbacks_are_asked_for() is not None
    training.step()
    training.step(keep=True)
    assert not made
    training.run.close()
    training.update()
    assert made == [STEP, ZERO]


@pytest.mark.parametrize("keep", [False, True])
def test_a_profiler_sees_them(training: Training, keep: bool) -> None:
    training.step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        training.step(keep)
    assert {STEP, ZERO} <= {event.key for event in profile.key_averages()}
    with torch.autograd.profiler.profile() as older:
        training.step(keep)
    assert {STEP, ZERO} <= {event.key for event in older.key_averages()}


def test_so_does_who_writes_down_what_runs(training: Training, tmp_path: Path, made: list[str]) -> None:
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "trace.json"))
    observer.start()
    training.step()
    observer.stop()
    observer.unregister_callback()
    assert set(made) == {STEP, ZERO}


def test_a_mode_of_somebody_hears_them(training: Training) -> None:
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(str(func))
            return func(*args, **(kwargs or {}))

    heard: list[str] = []
    with training.run.step() as step, Mode():
        training.update()
        step.decide(keep=False)
    assert any("_record_function_enter" in name for name in heard)


def test_a_dispatch_mode_of_somebody_sees_them(training: Training) -> None:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    with training.run.step() as step:
        training.model(torch.ones(4, 3)).sum().backward()
        with Mode():
            training.optimizer.step()
        step.decide(keep=False)
    assert any("_record_function_enter" in name for name in seen)


def test_marks_of_the_user_are_made(training: Training, made: list[str]) -> None:
    mark = record_function("mine")
    with training.run.step() as step:
        with mark:
            training.update()
            step.decide(keep=False)  # what was exchanged is back before the mark ends
        with mark:
            pass
    assert made == ["mine", "mine"] and mark.run_callbacks_on_exit


def test_a_step_that_is_over_before_the_mark(training: Training, made: list[str]) -> None:
    """Torch's own end of a mark must cope with a beginning that was left out."""
    steps: list[Any] = []

    def decide(*_: Any) -> None:
        steps[-1].decide(keep=False)

    handle = training.optimizer.register_step_pre_hook(decide)
    before = [p.detach().clone() for p in training.model.parameters()]
    with training.run.step() as step:
        steps.append(step)
        training.update()
    assert STEP not in made and ZERO in made  # nothing is exchanged any more
    assert all(not torch.equal(p, q) for p, q in zip(training.model.parameters(), before, strict=True))
    handle.remove()
    training.step(keep=True)


def test_an_optimizer_that_raises(training: Training, made: list[str]) -> None:
    class Broken(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            raise ValueError("theirs")

    broken = Broken(training.model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="theirs"), training.run.step():
        training.model(torch.ones(4, 3)).sum().backward()
        broken.step()
    assert not made
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        training.step()
    assert STEP in {event.key for event in profile.key_averages()}


def test_who_has_exchanged_the_beginning_of_a_mark_is_called(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(mark: record_function) -> record_function:
        theirs.append(mark.name)
        return enter(mark)

    theirs: list[str] = []
    enter = record_function.__enter__
    training.step()
    with monkeypatch.context() as patch:
        patch.setattr(record_function, "__enter__", begin)
        training.step()
    training.step()
    assert theirs == [STEP, ZERO]


def test_where_torch_does_not_say_who_is_there(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from endoscope.capture import patches

    monkeypatch.setattr(profiler_marks, "callbacks_are_asked_for", lambda: None)
    monkeypatch.setattr(patches, "_exchanges", patches.Exchanges())
    training = Training(tmp_path)
    training.step()
    training.run.close()
    assert set(made) == {STEP, ZERO}
    monkeypatch.undo()
    patches._exchanges = patches.Exchanges()


def test_a_traced_update_is_what_it_was(made: list[str]) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def update(x: Tensor) -> Tensor:
        loss: Tensor = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    trace = endoscope.trace(update, torch.ones(4, 3))
    assert "linear" in {op.type for op in trace.ops} and not made

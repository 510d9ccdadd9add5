"""Recording never stops training: whatever fails inside of Endoscope becomes a warning and a gap."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from tests.contract.recording.helpers import batches, complaints, plain_step, sgd

PLACES = """
    endoscope.capture.record.aliasing:Aliasing.before_write
    endoscope.capture.record.aliasing:Aliasing.adopt
    endoscope.capture.data.calls:Calls.begin
    endoscope.capture.data.calls:Calls.leave
    endoscope.capture.record.recorder:Recorder.after_call
    endoscope.capture.record.recorder:Recorder.before_call
    endoscope.capture.record.recorder:Recorder.begin_module
    endoscope.capture.record.recorder:Recorder.end_module
    endoscope.capture.record.recorder:Recorder.learn
    endoscope.capture.record.recorder:Recorder.read
    endoscope.recording.hooks.captured:Captured.__init__
    endoscope.recording.hooks.captured:Captured.hold
    endoscope.recording.hooks.captured:Captured.tag
    endoscope.recording.hooks.captured:Captured.before_update
    endoscope.recording.hooks.captured:Captured.let_go
    endoscope.recording.output.finishing:Finisher.record
    endoscope.recording.output.finishing:Finisher.structure
    endoscope.recording.output.finishing:Finisher.metrics
    endoscope.recording.output.finishing:measure_step
    endoscope.recording.hooks.gradients:Gradients.watch
    endoscope.recording.hooks.gradients:Gradients.begin_pass
    endoscope.recording.hooks.gradients:Gradients.end_pass
    endoscope.recording.hooks.gradients:Gradients.before_update
    endoscope.recording.hooks.gradients:Gradients.after_update
    endoscope.recording.hooks.gradients:Gradients.of_parameters
    endoscope.recording.hooks.hooks:Hooks.put_on
    endoscope.recording.hooks.losses:Losses.end
    endoscope.recording.hooks.hooks:Hooks._hold_inputs
    endoscope.recording.hooks.hooks:Hooks._hold_results
    endoscope.recording.hooks.hooks:Hooks._returned
    endoscope.recording.hooks.losses:Losses.outermost_ended
    endoscope.recording.hooks.losses:Losses.clipped
    endoscope.recording.hooks.losses:Losses._hold_targets
    endoscope.recording.hooks.losses:Losses._hold_losses
    endoscope.recording.output.raw:RawCollector.add
    endoscope.recording.output.measuring:Rows.add_entry
    endoscope.recording.output.measuring:Rows.add_parameters
    endoscope.recording.output.meter:Meter.measure
    endoscope.recording.output.meter:measure_part
    endoscope.recording.steps.names:Names.refresh
    endoscope.recording.steps.optimizers:Optimizers.begins
    endoscope.recording.steps.optimizers:Optimizers.ends
    endoscope.recording.hooks.outside:OutsideMode.take
    endoscope.recording.hooks.parameters:Parameters.copy
    endoscope.recording.steps.boundaries:Passes.begin_step
    endoscope.recording.steps.boundaries:Passes.are_cleared
    endoscope.recording.steps.boundaries:Passes._was_renewed
    endoscope.recording.deciding.schedule:Schedule.begin
    endoscope.recording.deciding.schedule:Schedule.finish
    endoscope.recording.structure.learned:Learned.next_is_traced
    endoscope.recording.structure.learned:Learned.keep
    endoscope.recording.structure.structures:structure_of
    endoscope.recording.structure.structures:signature
    endoscope.recording.structure.tracer:Tracer.begin
    endoscope.recording.structure.tracer:Tracer.slot_of
    endoscope.recording.steps.watch:Watch.moved_by
    endoscope.recording.output.worker:Worker.has_room
    endoscope.store.writer:TrialWriter.key_id
    endoscope.store.writer:TrialWriter.write_step
    endoscope.store.writer:TrialWriter.write_metrics
    endoscope.store.writer:TrialWriter.write_modules
    endoscope.store.writer:TrialWriter.close
""".split()


class Net(nn.Module):
    """Something for every part of the recorder: an in-place write, a view, a container, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(6, 8), nn.Linear(8, 3), nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        hidden = self.drop(self.first(x))
        hidden[:, 0] += 1
        return {"out": self.last(hidden.view(-1, 8).relu())}["out"]


def train(watch: Any, step_of: Any) -> Any:
    torch.manual_seed(2)
    model = Net()
    optimizer = sgd(model)
    watch(model, optimizer)
    losses = [plain_step(model, optimizer, x, y).item() for x, y in batches(2)]
    for x, y in batches(2):
        with step_of() as step:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            if step is not None:
                step.tag("extra", loss * 2)
                step.metric("loss", loss)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.item())
    return losses, [p.detach().clone() for p in model.parameters()], torch.get_rng_state()


class Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None


@pytest.fixture(scope="module")
def plain() -> Any:
    return train(lambda *_: None, Nothing)


def owner_of(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    owner = importlib.import_module(module)
    *parts, name = path.split(".")
    for part in parts:
        owner = getattr(owner, part)
    return owner, name


def broken(original: Any, after: int) -> Any:
    """Works a few times, then raises."""
    calls = [0]

    def function(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] > after:
            raise ArithmeticError("deliberately broken")
        return original(*args, **kwargs)

    return function


@pytest.mark.parametrize("after", [0, 7])
@pytest.mark.parametrize("place", PLACES)
def test_any_failure_of_ours_is_survived(tmp_path: Any, monkeypatch: Any, plain: Any, place: str, after: int) -> None:
    owner, name = owner_of(place)
    call, modes = nn.Module._call_impl, torch._C._len_torch_function_stack()
    monkeypatch.setattr(owner, name, broken(getattr(owner, name), after))
    with complaints() as said:
        run = endoscope.Run(tmp_path, trial="trial", when=1)
        found = train(run.watch, run.step)
        run.close()
    monkeypatch.undo()
    assert found[0] == plain[0]
    assert all(map(torch.equal, found[1], plain[1]))
    assert torch.equal(found[2], plain[2])
    assert torch._C._len_torch_function_stack() == modes
    assert nn.Module._call_impl is call, "torch was not put back"
    assert not torch.nn.modules.module._global_forward_hooks and not torch.nn.modules.module._global_forward_pre_hooks
    recording = endoscope.open(run.path)
    assert recording.verify()
    said += [gap.reason for gap in recording.gaps]
    complete = len(recording.steps) == 4 and recording.closed and len(recording.nodes) >= 8
    assert complete or any("deliberately broken" in text for text in said)


def test_strict_lets_failures_through(tmp_path: Any, monkeypatch: Any) -> None:
    owner, name = owner_of("endoscope.recording.output.finishing:measure_step")
    monkeypatch.setattr(owner, name, broken(None, 0))
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run, pytest.raises(ArithmeticError):
        train(run.watch, run.step)
    assert torch._C._len_torch_function_stack() == 0


def test_strict_lets_failures_of_the_ear_through(tmp_path: Any, monkeypatch: Any) -> None:
    owner, name = owner_of("endoscope.recording.hooks.hooks:Hooks._hold_results")
    monkeypatch.setattr(owner, name, broken(None, 0))
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run, pytest.raises(ArithmeticError):
        train(run.watch, run.step)
    assert torch._C._len_torch_function_stack() == 0


def test_errors_of_the_user_are_the_users(tmp_path: Any) -> None:
    """The same exception, with the user's own lines in its traceback, and no gap because of it."""
    model = nn.Linear(6, 3)
    optimizer = sgd(model)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
            model(torch.zeros(2, 7))
        with run.step(), pytest.raises(RuntimeError, match="must match"):
            torch.zeros(3) + torch.zeros(4)
        with run.step():
            out = model(torch.zeros(2, 6))
            with pytest.raises(RuntimeError, match="scalar outputs"):
                out.backward()
            with pytest.raises(IndexError):
                out[5]
            with pytest.raises(TypeError):
                torch.add(out, "text")
            with pytest.raises(RuntimeError, match="leaf Variable"):
                model.weight += 1
    assert said == []
    assert endoscope.open(run.path).gaps == []


def test_a_root_that_cannot_be_written_is_an_error_at_once(tmp_path: Any) -> None:
    """Before training: with the path, and what to do."""
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(endoscope.errors.EndoscopeError, match="file"):
        endoscope.Run(file, trial="trial")

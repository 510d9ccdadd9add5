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
    endoscope.capture.aliasing:Aliasing.before_write
    endoscope.capture.aliasing:Aliasing.adopt
    endoscope.capture.calls:Calls.begin
    endoscope.capture.calls:Calls.leave
    endoscope.capture.recorder:Recorder.after_call
    endoscope.capture.recorder:Recorder.before_call
    endoscope.capture.recorder:Recorder.begin_module
    endoscope.capture.recorder:Recorder.end_module
    endoscope.capture.recorder:Recorder.learn
    endoscope.capture.recorder:Recorder.read
    endoscope.recording.capture:Capture.__init__
    endoscope.recording.capture:Capture.begin
    endoscope.recording.capture:Capture.end
    endoscope.recording.capture:Capture.enter_model
    endoscope.recording.capture:Capture.items
    endoscope.recording.capture:Capture.leave_model
    endoscope.recording.capture:Capture.let_go
    endoscope.recording.capture:Capture.structure
    endoscope.recording.capture:Capture.tag
    endoscope.recording.capture:Capture.was_dropped
    endoscope.recording.capture:Parameters.before_write
    endoscope.recording.capture:Parameters.copy_those
    endoscope.recording.capture:Capture.before_update
    endoscope.recording.finishing:Finisher.record
    endoscope.recording.finishing:Finisher.metrics
    endoscope.recording.finishing:measure_step
    endoscope.recording.hearing:Holder.hold
    endoscope.recording.hooks:Hooks._hold_result
    endoscope.recording.listening:Listener.open
    endoscope.recording.losses:LossGradients.begin_pass
    endoscope.recording.hearing:StepRecorder.known_was_called
    endoscope.recording.hearing:StepRecorder.module_began
    endoscope.recording.postponed:Notes.position
    endoscope.recording.chains:Chain.still_holds
    endoscope.recording.bare_calls:BareCalls.now
    endoscope.recording.shortcuts:Shortcuts.look
    endoscope.recording.postponed:Notes.before_pass
    endoscope.recording.postponed:Notes.held
    endoscope.recording.postponed:Notes.read
    endoscope.recording.postponed:Notes.end
    endoscope.recording.capture:Capture.renew
    endoscope.recording.capture:Capture.wipe
    endoscope.recording.rooms:Rooms.copy
    endoscope.recording.cells:Cells.gather
    endoscope.recording.cells:Cells.give_slot
    endoscope.recording.cells:Cells.empty
    endoscope.recording.losses:LossGradients.tell_of_pass
    endoscope.recording.losses:LossGradients._hook_parameters
    endoscope.recording.losses:LossGradients._has_arrived
    endoscope.recording.unhooked:Unhooked.learn_from
    endoscope.recording.unhooked:Unhooked.arrived
    endoscope.recording.unhooked:Unhooked.relies_on_all
    endoscope.recording.sources:Sources.storages_now
    endoscope.recording.hearing:StepRecorder._begin_plain
    endoscope.recording.hearing:StepRecorder._learn
    endoscope.recording.hearing:StepRecorder.hold_inputs
    endoscope.recording.known_calls:all_hold
    endoscope.recording.known_calls:Known.node
    endoscope.recording.hearing:StepRecorder.loss_name
    endoscope.recording.losses:LossGradients._store
    endoscope.recording.losses:LossGradients._arrives
    endoscope.recording.losses:LossGradients._arrived
    endoscope.recording.losses:LossGradients.before_write
    endoscope.recording.losses:LossGradients.check
    endoscope.recording.losses:LossGradients.watch
    endoscope.recording.losses:LossGradients.watch_parameter
    endoscope.recording.meter:measure_part
    endoscope.recording.meter:Meter._as_before
    endoscope.recording.meter:Meter._worked_out
    endoscope.recording.meter:Meter.flush
    endoscope.recording.meter:Meter.gradient
    endoscope.recording.meter:Meter.value
    endoscope.recording.measuring:RawCollector.add
    endoscope.recording.measuring:_Found.found_again
    endoscope.recording.measuring:_Found.looked_for
    endoscope.recording.measuring:joined
    endoscope.recording.sources:Sources.put_into
    endoscope.recording.schedule:Schedule.begin
    endoscope.recording.schedule:Schedule.finish
    endoscope.recording.watch:Watch.moved_by
    endoscope.recording.worker:Worker.has_room
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
    recording = endoscope.open(run.path)
    assert recording.verify()
    said += [gap.reason for gap in recording.gaps]
    complete = len(recording.steps) == 4 and recording.closed and len(recording.nodes) >= 8
    assert complete or any("deliberately broken" in text for text in said)


def test_strict_lets_failures_through(tmp_path: Any, monkeypatch: Any) -> None:
    owner, name = owner_of("endoscope.recording.finishing:measure_step")
    monkeypatch.setattr(owner, name, broken(None, 0))
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run, pytest.raises(ArithmeticError):
        train(run.watch, run.step)
    assert torch._C._len_torch_function_stack() == 0


def test_strict_lets_failures_of_the_ear_through(tmp_path: Any, monkeypatch: Any) -> None:
    owner, name = owner_of("endoscope.recording.hooks:Hooks._hold_results")
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

"""`step.decide(keep=False)`: everything is let go at once, and the rest of the step is nobody's business."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack

import endoscope


class Training:
    def __init__(self, folder: Path) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.run = endoscope.Run(folder, trial="t", when=endoscope.policies.every(1))
        self.run.watch(self.model, self.optimizer)

    def loss(self) -> torch.Tensor:
        return self.model(torch.randn(6, 4)).square().mean()

    def update(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


def test_values_are_let_go_at_once(tmp_path: Path) -> None:
    training = Training(tmp_path)
    inside: list[weakref.ref[torch.Tensor]] = []
    training.model[1].register_forward_hook(lambda module, args, out: inside.append(weakref.ref(out)))
    with training.run.step() as step:
        loss = training.loss()
        loss.backward()
        del loss
        gc.collect()
        assert step.recording and inside[-1]() is not None  # held for us alone
        step.decide(keep=False)
        gc.collect()
        assert inside[-1]() is None and not step.recording
        training.update()
    training.run.close()
    assert len(endoscope.open(training.run.path).steps) == 0


def test_nothing_listens_any_more(tmp_path: Path) -> None:
    training, plain = Training(tmp_path), nn.Module._call_impl
    with training.run.step() as step:
        loss = training.loss()
        step.decide(keep=False)
        assert nn.Module._call_impl is plain and not _get_current_function_mode_stack()
        assert not any(parameter._backward_hooks for parameter in training.model.parameters())
        loss.backward()
        training.update()
    training.run.close()


def test_the_gradients_and_the_update_are_those_of_plain_training(tmp_path: Path) -> None:
    training = Training(tmp_path / "a")
    for _ in range(5):
        with training.run.step() as step:
            loss = training.loss()
            step.decide(keep=False)
            loss.backward()
            training.update()
    training.run.close()
    plain = Training(tmp_path / "b")
    plain.run.close()
    for _ in range(5):
        plain.loss().backward()
        plain.update()
    for one, other in zip(training.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_inside_of_a_pass_it_waits_for_the_end_of_the_step(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with training.run.step() as step:
        handle = training.model[1].register_forward_hook(lambda *_: step.decide(keep=False))
        training.loss().backward()
        handle.remove()
        training.update()
    with training.run.step():
        training.loss().backward()
        training.update()
    training.run.close()
    recording = endoscope.open(training.run.path)
    assert [step.number for step in recording.steps] == [1] and "1" in recording.nodes


def test_it_cannot_be_taken_back_and_that_is_said(tmp_path: Path) -> None:
    training = Training(tmp_path)
    with training.run.step() as step:
        training.loss().backward()
        step.decide(keep=False)
        step.decide(keep=True)
        training.update()
    training.run.close()
    recording = endoscope.open(training.run.path)
    assert len(recording.steps) == 0
    assert any("no values were held" in gap.reason for gap in recording.gaps)


def test_the_next_step_is_recorded_as_ever(tmp_path: Path) -> None:
    training = Training(tmp_path)
    for number in range(4):
        with training.run.step() as step:
            training.loss().backward()
            training.update()
            if number % 2:
                step.decide(keep=False)
    training.run.close()
    recording = endoscope.open(training.run.path)
    assert [step.number for step in recording.steps] == [0, 2]
    assert len(recording.series("0.weight", "norm", of="update").steps) == 2

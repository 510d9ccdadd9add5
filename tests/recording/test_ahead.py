"""Parameters are copied when a module is about to read them; updates are right whatever happens until the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording.ahead import AT_MOST, ChainCopies
from endoscope.stats import Copies


class Training:
    """Steps whose updates are known: what every parameter was before the optimizer moved it, and what it is then."""

    def __init__(self, folder: Path, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        self.run = endoscope.Run(folder, trial="t", when=1, keep=0, strict=True)
        self.run.watch(model, self.optimizer)
        self.expected: dict[str, list[float]] = {name: [] for name, _ in model.named_parameters()}

    def step(self, in_between: Callable[[], None] = lambda: None, passes: int = 1, keep: bool | None = True) -> None:
        """`keep` is None for a step that is certain to be recorded when it begins."""
        with self.run.step() as step:
            for _ in range(passes):
                self.model(torch.rand(4, 8)).square().sum().backward()
            in_between()
            before = {name: p.detach().clone() for name, p in self.model.named_parameters()}
            self.optimizer.step()
            if keep is not None:
                step.decide(keep=keep)
        if keep is not False:
            for name, parameter in self.model.named_parameters():
                self.expected[name].append(float((parameter.detach() - before[name]).double().norm()))
        self.optimizer.zero_grad()

    def check(self) -> None:
        self.run.close()
        recording = endoscope.open(self.run.path)
        for name, norms in self.expected.items():
            assert recording.series(name, "norm", of="update").values.tolist() == pytest.approx(norms, rel=1e-5)
        assert not recording.gaps


@pytest.fixture
def training(tmp_path: Path) -> Training:
    torch.manual_seed(0)
    return Training(tmp_path, nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.LayerNorm(8)))


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether it could be done, each time that parameters of a module were to be copied ahead."""
    calls: list[bool] = []
    alone, fit = Copies.make_if_fit, ChainCopies.fit

    def noted_alone(self: Copies) -> bool:
        calls.append(alone(self))
        return calls[-1]

    def noted_chain(self: ChainCopies) -> bool:
        calls.extend([fit(self)] * (len(self.makes) - self.makes.count(None)))
        return calls[-1]

    monkeypatch.setattr(Copies, "make_if_fit", noted_alone)
    monkeypatch.setattr(ChainCopies, "fit", noted_chain)
    return calls


def test_every_module_with_parameters_is_copied_once_a_step(training: Training, ahead: list[bool]) -> None:
    training.step()
    training.step()  # from the second step on it is known what there is
    ahead.clear()
    for passes in (1, 3):
        training.step(passes=passes)
        assert ahead == [True] * 3
        ahead.clear()
    training.check()


def test_steps_that_are_certain_to_be_recorded_do_the_same(tmp_path: Path, ahead: list[bool]) -> None:
    training = Training(tmp_path, nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
    for _ in range(4):
        training.step(keep=None)
    assert ahead and all(ahead)
    training.check()


def test_copies_of_a_step_that_is_decided_against_are_forgotten(training: Training) -> None:
    for keep in (True, True, False, None, False, True, False, False, True):
        training.step(keep=keep)
    training.check()


def overwritten(parameter: Tensor) -> None:
    with torch.no_grad():
        parameter.mul_(3)


def overwritten_through_data(parameter: Tensor) -> None:
    parameter.data.mul_(3)


@pytest.mark.parametrize("write", [overwritten, overwritten_through_data])
def test_whoever_writes_into_a_parameter_before_the_optimizer(
    training: Training, write: Callable[[Tensor], None]
) -> None:
    """What is heard is copied before it is written: then the update is all that has happened to it in the step."""
    layer = training.model[2]  # type: ignore[index]
    training.step()
    training.step()
    before = layer.weight.detach().clone()
    training.step(lambda: write(layer.weight))
    training.expected["2.weight"][-1] = float((layer.weight.detach() - before).norm())
    training.step()
    training.check()


def test_a_hook_that_writes_unheard_is_seen_by_the_optimizer_and_by_us(training: Training) -> None:
    """Inside of a backward pass nothing is heard. Where others have hooks on parameters, copies are made late."""
    weight: Any = training.model[2].weight  # type: ignore[index]
    training.step()
    training.step()
    weight.register_post_accumulate_grad_hook(overwritten_through_data)
    training.step()
    training.step()
    training.check()


def test_a_second_forward_pass_does_not_overwrite_what_was_before_the_first_update(training: Training) -> None:
    training.step()
    training.step()
    names = dict(training.model.named_parameters())
    with training.run.step() as step:
        before = {name: p.detach().clone() for name, p in names.items()}
        for _ in range(2):
            training.model(torch.rand(4, 8)).square().sum().backward()
            training.optimizer.step()
        step.decide(keep=True)
    for name, parameter in names.items():
        training.expected[name].append(float((parameter.detach() - before[name]).double().norm()))
    training.optimizer.zero_grad()
    training.step()
    training.check()


def test_memory_that_was_exchanged_is_not_read(training: Training, ahead: list[bool]) -> None:
    layer: Any = training.model[0]  # type: ignore[index]
    training.step()
    training.step()
    layer.weight.data = torch.rand(8, 8)
    ahead.clear()
    training.step()
    assert ahead == [False] * 3  # they are one chain
    training.step()
    training.check()


def test_what_does_not_fit_into_the_cache_is_left_for_later(tmp_path: Path, ahead: list[bool]) -> None:
    width = 1 + AT_MOST // (4 * 8)
    training = Training(tmp_path, nn.Sequential(nn.Linear(8, width, bias=False), nn.Linear(width, 2)))
    for _ in range(3):
        training.step()
    assert ahead == [True, True]  # the second layer, from the second step on
    training.check()


def test_who_decides_before_the_update_does_not_pay_for_copies(training: Training, ahead: list[bool]) -> None:
    def decided_early() -> int:
        ahead.clear()
        with training.run.step() as step:
            loss = training.model(torch.rand(4, 8)).square().sum()
            step.decide(keep=False)
            loss.backward()
            training.optimizer.step()
        training.optimizer.zero_grad()
        return len(ahead)

    training.step()
    training.step()
    assert [decided_early() for _ in range(6)] == [3, 3, 3, 0, 0, 0]
    training.step()  # copied before the update
    training.step()
    assert ahead == [True] * 3
    training.check()


def test_a_parameter_that_does_not_count_its_writes(tmp_path: Path) -> None:
    with torch.inference_mode():
        frozen = nn.Parameter(torch.ones(3), requires_grad=False)
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model.register_parameter("frozen", frozen)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    with endoscope.Run(tmp_path, trial="t", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            model(torch.rand(4, 8)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    recording = endoscope.open(run.path)
    assert len(recording.series("1.weight", "norm", of="update").values) == 3

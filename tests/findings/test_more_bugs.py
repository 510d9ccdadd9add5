"""Bugs of single lines, each beside the training without it: what must be said of the one and not of the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope
from endoscope.findings.finding import INFO
from tests.findings.runs import blobs, classifier, train


def said(path: Path, check: str) -> list[Any]:
    """Warnings and errors of one check."""
    return [one for one in endoscope.diagnose(path) if one.check == check and one.severity != INFO]


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.001),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.001),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.001),
}


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_that_are_not_zeroed_with_any_optimizer(name: str, clear: bool, tmp_path: Path) -> None:
    model = classifier()
    optimizer = OPTIMIZERS[name](model.parameters())
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(8):
            inputs, labels = blobs(number)
            if clear:
                optimizer.zero_grad()
            functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    assert bool(said(Path(run.path), "gradients_not_zeroed")) is not clear


class Reader(nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.memory, self.head = nn.LSTM(2, 8, batch_first=batch_first), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.memory(x.view(-1, 4, 2))[0][:, -1])


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_recurrence_over_the_samples(batch_first: bool, tmp_path: Path) -> None:
    found = said(train(tmp_path, Reader(batch_first), steps=6), "wrong_dimension")
    assert [one.node for one in found] == ([] if batch_first else ["memory"])
    assert all("batch_first" in one.causes[0] for one in found)


@pytest.mark.parametrize(("targets", "wrong"), [(-1.0, True), (0.0, False)])
def test_a_cross_entropy_below_zero(targets: float, wrong: bool, tmp_path: Path) -> None:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        return inputs, torch.where(labels == 0, 1.0, targets)[:, None]

    path = train(
        tmp_path, nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), batches=batches, steps=40,
        loss=functional.binary_cross_entropy_with_logits,
    )  # fmt: skip
    assert bool(said(path, "loss_mismatch")) is wrong


@pytest.mark.parametrize("softmax", [False, True])
def test_ctc_of_what_are_no_logarithms(softmax: bool, tmp_path: Path) -> None:
    lengths = torch.full((32,), 8), torch.full((32,), 2)

    def loss(out: Tensor, labels: Tensor) -> Tensor:
        of_time = out.view(32, 8, 2).transpose(0, 1)
        of_time = torch.cat([of_time, -of_time], dim=2)
        of_time = of_time.log_softmax(2) if softmax else of_time
        return functional.ctc_loss(of_time, labels[:, None].repeat(1, 2) + 1, *lengths, zero_infinity=True)

    path = train(tmp_path, nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16)), loss=loss, steps=30)
    assert bool(said(path, "loss_mismatch")) is not softmax


@pytest.mark.parametrize("leaks", [False, True])
def test_the_target_in_other_units_among_the_inputs(leaks: bool, tmp_path: Path) -> None:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, _ = blobs(step)
        targets = inputs[:, :1] * inputs[:, 1:2]
        if leaks:
            inputs = torch.cat([inputs[:, :7], 3.0 - 0.2 * targets], dim=1)
        return inputs, targets

    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    assert bool(said(train(tmp_path, model, batches=batches, loss=functional.mse_loss), "leaked_target")) is leaks


@pytest.mark.parametrize("held_from", [None, 12])
def test_weights_that_are_held_from_some_step_on(held_from: int | None, tmp_path: Path) -> None:
    model = classifier()
    saved: dict[str, Tensor] = {}

    def before(step: int) -> None:
        if step == held_from:
            saved.update({name: value.clone() for name, value in model.state_dict().items()})
        if saved:
            model.load_state_dict(saved)

    found = said(train(tmp_path, model, before=before), "weights_written")
    assert [one.first_step for one in found] == ([] if held_from is None else [held_from])


def test_steps_that_are_lost_in_rounding_are_not_undone(tmp_path: Path) -> None:
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-9)
    assert not said(train(tmp_path, model, optimizer=optimizer), "weights_written")


@pytest.mark.parametrize("same_seed", [False, True])
def test_workers_with_the_same_seed(same_seed: bool, tmp_path: Path) -> None:
    """Two workers take turns; each draws its samples by itself, and later steps are not all recorded."""
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters())
    with endoscope.Run(tmp_path, trial="trial", when=lambda step: step < 10 or step % 4 == 0, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(80):
            inputs, labels = blobs(number // 2 if same_seed else number)
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    assert bool(said(Path(run.path), "repeated_batches")) is same_seed


@pytest.mark.parametrize("frozen", [False, True])
def test_frozen_batch_normalisation_may_see_two_samples(frozen: bool, tmp_path: Path) -> None:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        return inputs[:2], labels[:2]

    model = classifier(nn.BatchNorm1d(16), nn.ReLU())

    def before(step: int) -> None:
        model[1].train(not frozen)

    assert bool(said(train(tmp_path, model, batches=batches, before=before, steps=6), "tiny_batch_norm")) is not frozen


@pytest.mark.parametrize("learns", [False, True])
def test_small_logits_may_grow_while_the_loss_falls(learns: bool, tmp_path: Path) -> None:
    """Beside their own past they grow in both; of labels that say nothing it is growth without end."""
    model = classifier()
    with torch.no_grad():
        model[2].weight.mul_(0.05)
        model[2].bias.zero_()

    def loss(out: Tensor, labels: Tensor) -> Tensor:
        if learns:
            return functional.cross_entropy(out, labels)
        return 1.0 + 0.0 * out.sum() + (1e-3 * (out - 1.1 * out.detach()) ** 2).sum()

    found = said(train(tmp_path, model, loss=loss, steps=120), "growing_activations")
    assert bool(found) is not learns

"""Which forward passes, backward passes and updates belong to one step: many passes, skipped updates."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.recording.helpers import (
    batches,
    close,
    complaints,
    mlp,
    numbers,
    recorded,
    same,
    sgd,
    slow_statistics,
    strict_run,
)
from tests.contract.recording.oracle import agree, compared, ends

cross_entropy = nn.functional.cross_entropy


class Cell(nn.Module):
    """One step of a recurrence, written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3 + 4, 4)
        self.read = nn.Linear(4, 1)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        return torch.tanh(self.mix(torch.cat([x, hidden], 1)))


def recurrence(run: Any, lengths: list[int]) -> tuple[list[float], list[Tensor]]:
    """The watched cell is called once for each element of the sequence, then one backward, one update."""
    model = Cell()
    optimizer = sgd(model)
    run.watch(model, optimizer)
    losses = []
    for length in lengths:
        hidden = torch.zeros(2, 4)
        for x in torch.randn(length, 2, 3):
            hidden = model(x, hidden)
        optimizer.zero_grad()
        loss = model.read(hidden).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        run.metric("mean", loss)
    return losses, ends(model)


# ---- many passes ---------------------------------------------------------------------------------


def test_two_hundred_cells_are_one_step(tmp_path: Any) -> None:
    seen, recording = compared(lambda run: recurrence(run, [200] * 4), tmp_path)
    assert numbers(recording) == [0, 1, 2, 3]
    assert [step.passes for step in recording.steps] == [200] * 4
    for number, step in enumerate(seen):
        agree(recording, number, step)
    assert recording.gaps == []


@pytest.mark.parametrize("when", [1, 3])
def test_recurrences_of_changing_length(tmp_path: Any, when: int) -> None:
    lengths = [1, 7, 130, 2, 255, 30, 31, 64, 65, 256, 3]
    seen, recording = compared(lambda run: recurrence(run, lengths), tmp_path, when=when)
    assert numbers(recording) == [*range(0, len(lengths), when)]
    assert [step.passes for step in recording.steps] == lengths[::when]
    for step in recording.steps:
        agree(recording, step.number, seen[step.number])
    assert recording.metrics["mean"].steps.tolist() == [*range(len(lengths))]


@pytest.mark.parametrize("when", [1, 4])
def test_episodes_of_random_length_then_one_update(tmp_path: Any, when: int) -> None:
    """REINFORCE: nobody knows before how often the policy will be asked."""

    def body(run: Any) -> Any:
        policy = mlp(4, 8, 2)
        optimizer = sgd(policy)
        run.watch(policy, optimizer)
        dice = random.Random(5)
        losses = []
        for _ in range(24):
            state, logs = torch.randn(1, 4), []
            for _ in range(dice.randint(1, 40)):
                choices = torch.log_softmax(policy(state), 1)
                action = int(torch.multinomial(choices.exp(), 1))
                logs.append(choices[0, action])
                state = state + 0.1 * torch.randn(1, 4)
            optimizer.zero_grad()
            loss = -torch.stack(logs).sum() * len(logs)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, ends(policy)

    seen, recording = compared(body, tmp_path, when=when)
    assert numbers(recording) == [*range(0, 24, when)]
    assert [step.passes for step in recording.steps] == [seen[n].passes for n in range(0, 24, when)]
    for step in recording.steps:
        agree(recording, step.number, seen[step.number])


def test_beyond_256_passes_there_are_statistics_and_one_sentence(tmp_path: Any) -> None:
    """The later passes are measured as they come: no raw values, but nothing is lost, and no step is cut."""
    seen, recording = compared(lambda run: recurrence(run, [300, 400]), tmp_path, may_complain=True)
    assert numbers(recording) == [0, 1]
    assert [step.passes for step in recording.steps] == [300, 400]
    for number, step in enumerate(seen):
        for pass_ in (1, 128, 256):
            assert same(recording.tensor("mix", number, pass_=pass_), step.values["mix", pass_])
        for pass_ in (1, 256, 257, 299, 300):
            found = recording.statistics("mix", number, pass_=pass_)
            for name, value in slow_statistics(step.values["mix", pass_]).items():
                assert close(found[name], value, 1e-5), (number, pass_, name)
            norm = recording.statistics("mix", number, of="gradient", pass_=pass_)["norm"]
            assert close(norm, step.gradients["mix", pass_].norm(), 1e-5), (number, pass_)
        for pass_ in (257, 300):
            with pytest.raises(endoscope.errors.ValueNotKept):
                recording.tensor("mix", number, pass_=pass_)
        for name, gradient in step.used.items():
            assert same(recording.tensor(name, number, of="gradient"), gradient), name
            assert same(recording.tensor(name, number, of="update"), step.updates[name]), name
    reasons = {gap.reason for gap in recording.gaps}
    assert len(reasons) <= 1, reasons


def test_the_sentence_about_many_passes_is_said_once(tmp_path: Any) -> None:
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        recurrence(run, [260, 270, 280])
    about = [text for text in said if "256" in text or "passes" in text]
    assert len(about) <= 1 and said == about
    recording = recorded(run)
    texts = [*about, *(gap.reason for gap in recording.gaps), *(note.text for note in recording.notes)]
    assert any("256" in text or "passes" in text for text in texts), texts


# ---- skipped updates -----------------------------------------------------------------------------


BAD = (1, 2, 5)


def scaled(run: Any, make: Any, clear: str) -> tuple[list[float], list[Tensor]]:
    """A gradient scaler skips the updates of bad batches; `clear` says when and how gradients are cleared."""
    model = mlp()
    optimizer = make(model)
    run.watch(model, optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4, growth_interval=100)
    losses = []
    for n, (x, y) in enumerate(batches(9)):
        if clear == "before":
            optimizer.zero_grad()
        loss = cross_entropy(model(x), y) * (float("inf") if n in BAD else 1.0)
        if clear.startswith("after"):
            optimizer.zero_grad(set_to_none=clear == "after")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(str(loss.item()))
        run.metric("mean", loss)
        if n in BAD:
            getattr(run, "cut", lambda: None)()
        if clear == "at once":
            model.zero_grad()
    return losses, ends(model)


@pytest.mark.parametrize("clear", ["before", "after", "after, to zero", "at once"])
def test_updates_that_a_scaler_skips_are_steps(tmp_path: Any, clear: str) -> None:
    seen, recording = compared(lambda run: scaled(run, sgd, clear), tmp_path)
    assert numbers(recording) == [*range(9)]
    assert [step.passes for step in recording.steps] == [1] * 9
    for number, step in enumerate(seen):
        agree(recording, number, step, gradients=False)
    for name in ("0.weight", "2.bias"):
        assert recording.series(name, "norm", of="update").steps.tolist() == [n for n in range(9) if n not in BAD]
    assert recording.metrics["mean"].steps.tolist() == [*range(9)]
    assert [np.isinf(value) for value in recording.metrics["mean"].values] == [n in BAD for n in range(9)]
    assert [step.skipped for step in recording.steps] == [n in BAD for n in range(9)]


def test_an_update_that_is_skipped_in_a_block_is_marked(tmp_path: Any) -> None:
    """The loop throws the gradients of a bad batch away, in the block of its own step."""
    model = mlp()
    optimizer = sgd(model)
    with endoscope.Run(tmp_path, trial="blocks", when=1) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(6)):
            with run.step():
                cross_entropy(model(x), y).backward()
                if n not in BAD:
                    optimizer.step()
                optimizer.zero_grad()
    recording = endoscope.open(run.path)
    assert [step.skipped for step in recording.steps] == [False, True, True, False, False, True]
    weight = recording.series("0.weight", "norm", of="update")
    assert weight.steps.tolist() == [0, 3, 4]


@pytest.mark.parametrize("clear", ["before", "after", "at once"])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_updates_that_a_fused_optimizer_skips_are_steps(tmp_path: Any, kind: str, clear: str) -> None:
    """It is called with scaled gradients and `found_inf`, and does not move then."""

    def make(model: nn.Module) -> Any:
        return getattr(torch.optim, kind)(model.parameters(), lr=0.01, fused=True)

    seen, recording = compared(lambda run: scaled(run, make, clear), tmp_path)
    assert numbers(recording) == [*range(9)]
    assert [step.passes for step in recording.steps] == [1] * 9
    for number in set(range(9)) - set(BAD):
        agree(recording, number, _unscaled(seen[number], 2.0**4 / 2 ** sum(bad < number for bad in BAD)))
    assert recording.metrics["mean"].steps.tolist() == [*range(9)]
    assert [step.skipped for step in recording.steps] == [n in BAD for n in range(9)]


def _unscaled(seen: Any, scale: float) -> Any:
    """The scale is a power of two, so that the division is exact. Results of modules keep their scaled gradients."""
    seen.used = {name: gradient / scale for name, gradient in seen.used.items()}
    seen.gradients = {}
    return seen


def cautious(run: Any, clear: str) -> tuple[list[float], list[Tensor]]:
    """A loop of one's own that goes on with the next batch where a gradient is not finite."""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    losses = []
    for n, (x, y) in enumerate(batches(9)):
        x = x * float("nan") if n in BAD else x
        if clear == "before":
            optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        if clear == "after":
            optimizer.zero_grad()
        loss.backward()
        losses.append(str(loss.item()))
        run.metric("mean", loss)
        if not all(torch.isfinite(p.grad).all() for p in model.parameters()):
            getattr(run, "cut", lambda: None)()
            if clear == "at once":
                optimizer.zero_grad()
            continue
        optimizer.step()
        if clear == "at once":
            optimizer.zero_grad()
    return losses, ends(model)


@pytest.mark.parametrize("when", [1, 2])
@pytest.mark.parametrize("clear", ["before", "after", "at once"])
def test_a_bad_batch_that_is_left_out_is_a_step(tmp_path: Any, clear: str, when: int) -> None:
    seen, recording = compared(lambda run: cautious(run, clear), tmp_path, when=when)
    expected = [*range(0, 9, when)]
    if clear == "after" and when == 2:  # that step 2 has begun is known only when it is half over
        assert {2} <= {gap.step for gap in recording.gaps if "zero_grad" in gap.reason}
        expected = numbers(recording)
    assert numbers(recording) == expected
    assert [step.passes for step in recording.steps] == [1] * len(recording.steps)
    for step in recording.steps:
        agree(recording, step.number, seen[step.number])
    assert recording.metrics["mean"].steps.tolist() == [*range(9)]
    assert [step.skipped for step in recording.steps] == [n in BAD for n in expected]


@pytest.mark.parametrize("clear", ["before", "after", "at once"])
def test_a_step_that_is_made_good_is_not_a_skipped_one(tmp_path: Any, clear: str) -> None:
    """Ordinary loops of every order, accumulation and a forward pass more: no update was skipped."""
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(8)):
            if clear == "before":
                optimizer.zero_grad()
            out = model(x)
            if clear == "after":
                optimizer.zero_grad()
            cross_entropy(out, y).backward()
            if n % 2:
                cross_entropy(model(x), y).backward()
            optimizer.step()
            if clear == "at once":
                optimizer.zero_grad()
    recording = recorded(run)
    assert [step.passes for step in recording.steps] == [1, 2] * 4
    assert [step.skipped for step in recording.steps] == [False] * 8


def test_a_critic_that_the_generator_fills_skips_nothing(tmp_path: Any) -> None:
    """Its gradients are cleared without an update of its own, but an optimizer has stepped."""
    maker, critic = mlp(2, 4, 3), mlp(3, 4, 1)
    optimizer_m, optimizer_c = sgd(maker), sgd(critic)
    with strict_run(tmp_path) as run:
        run.watch(maker, optimizer_m, name="maker")
        run.watch(critic, optimizer_c, name="critic")
        for _ in range(4):
            optimizer_m.zero_grad()
            (-critic(maker(torch.randn(4, 2)))).mean().backward()
            optimizer_m.step()
            optimizer_c.zero_grad()
            critic(maker(torch.randn(4, 2)).detach()).mean().backward()
            optimizer_c.step()
    recording = recorded(run)
    assert numbers(recording) == [*range(8)]
    assert [step.skipped for step in recording.steps] == [False] * 8


def test_the_first_half_of_a_sharpness_aware_step_skips_nothing(tmp_path: Any) -> None:
    """SAM clears its gradients between two backward passes, but the parameters have moved meanwhile."""
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(4):
            cross_entropy(model(x), y).backward()
            kept = [p.detach().clone() for p in model.parameters()]
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(p.grad, alpha=0.05)
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            with torch.no_grad():
                for p, old in zip(model.parameters(), kept, strict=True):
                    p.copy_(old)
            optimizer.step()
            optimizer.zero_grad()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3]
    assert [step.passes for step in recording.steps] == [2] * 4
    assert [step.skipped for step in recording.steps] == [False] * 4

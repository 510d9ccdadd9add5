"""Loops of every form are recorded, or a gap says what to type; nothing is said to be well that is not."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.store import files
from tests.contract.recording.helpers import (
    batches,
    complaints,
    mlp,
    numbers,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
)
from tests.contract.recording.oracle import ends

cross_entropy = nn.functional.cross_entropy
STEPS = 20


class Parts(nn.Module):
    """Whoever trains it may call it as a whole, by its forward, or part by part."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.mid, self.head = nn.Linear(6, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.mid(self.enc(x)))


def in_parts(model: Any, x: Tensor) -> Tensor:
    return model.head(model.mid(torch.relu(model.enc(x))))


def by_forward(model: Any, x: Tensor) -> Tensor:
    return model.forward(x)


def train(run: Any, call: Callable[[Any, Tensor], Tensor], expected: list[Any] | None = None) -> Any:
    """`expected` gets what `enc` and `mid` returned, the gradient of a weight, and its update."""
    torch.manual_seed(3)
    model = Parts()
    optimizer = sgd(model)
    run.watch(model, optimizer)
    losses = []
    for x, y in batches(STEPS):
        with torch.no_grad():
            hidden = nn.functional.linear(x, model.enc.weight, model.enc.bias)
        optimizer.zero_grad()
        loss = cross_entropy(call(model, x), y)
        loss.backward()
        before = model.enc.weight.detach().clone()
        optimizer.step()
        losses.append(loss.item())
        if expected is not None:
            expected.append((hidden, model.enc.weight.grad.clone(), model.enc.weight.detach() - before))
    return losses, ends(model)


class Nobody:
    def watch(self, *_: Any) -> None: ...


def says_what_to_type(texts: list[str]) -> bool:
    return any(re.search(r"run\.step|run\.watch|model\(|watch\(", text) for text in texts)


@pytest.mark.parametrize("call", [by_forward, in_parts])
def test_a_model_that_is_not_called_as_a_whole(tmp_path: Any, call: Any) -> None:
    expected: list[Any] = []
    plain = train(Nobody(), call, expected)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1, keep=64) as run:
        watched = train(run, call)
    assert watched[0] == plain[0]
    assert all(map(torch.equal, watched[1], plain[1]))
    recording = recorded(run)
    texts = [*said, *(gap.reason for gap in recording.gaps), *(note.text for note in recording.notes)]
    if "enc" not in recording.nodes:
        assert says_what_to_type(texts), texts
        return
    assert numbers(recording) == [*range(STEPS)]
    assert [step.passes for step in recording.steps] == [1] * STEPS
    for number, (hidden, gradient, update) in enumerate(expected):
        assert same(recording.tensor("enc", number), hidden)
        assert same(recording.tensor("enc.weight", number, of="gradient"), gradient)
        assert same(recording.tensor("enc.weight", number, of="update"), update)


def test_parts_that_are_called_one_by_one_inside_of_a_block(tmp_path: Any) -> None:
    """`with run.step()` says where the step is, so there is nothing to guess."""
    expected: list[Any] = []
    train(Nobody(), in_parts, expected)
    torch.manual_seed(3)
    model = Parts()
    optimizer = sgd(model)
    with strict_run(tmp_path, keep=64) as run:
        run.watch(model, optimizer)
        for x, y in batches(STEPS):
            with run.step():
                optimizer.zero_grad()
                cross_entropy(in_parts(model, x), y).backward()
                optimizer.step()
    recording = recorded(run)
    for number, (hidden, gradient, update) in enumerate(expected):
        assert same(recording.tensor("enc", number), hidden)
        assert same(recording.tensor("enc.weight", number, of="gradient"), gradient)
        assert same(recording.tensor("enc.weight", number, of="update"), update)
        assert {"enc", "mid", "mid.0", "mid.1", "head"} <= set(recording.nodes)


def test_forward_passes_in_training_mode_outside_of_the_loop_body(tmp_path: Any) -> None:
    """A look at other data, from which nothing follows: a pass, or a gap; steps stay what they are."""
    model = mlp()
    optimizer = sgd(model)
    expected = []
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1, keep=64) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(STEPS)):
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            expected.append((model[0].weight.grad.clone(), loss.detach()))
            optimizer.step()
            run.metric("mean", loss)
            if n % 5 == 4:
                model(torch.ones(3, 6))
    recording = recorded(run)
    texts = [*said, *(gap.reason for gap in recording.gaps)]
    assert recording.metrics["mean"].steps.tolist()[:5] == [0, 1, 2, 3, 4]
    updates = recording.series("0.weight", "norm", of="update").steps.tolist()
    assert len(updates) == STEPS
    for number, (gradient, loss) in zip(updates, expected, strict=True):
        assert same(recording.tensor("0.weight", number, of="gradient"), gradient)
        assert same(recording.tensor("loss", number), loss)
    extra = [step for step in recording.steps if step.passes > 1 or step.number not in updates]
    assert len(extra) >= STEPS // 5 - 1 or says_what_to_type(texts), texts


@pytest.mark.parametrize("move", ["in place", "data", "functional"])
def test_loops_without_an_optimizer(tmp_path: Any, move: str) -> None:
    def body(run: Any, expected: list[Any] | None = None) -> Any:
        torch.manual_seed(3)
        model = mlp()
        run.watch(model)
        losses = []
        for x, y in batches(STEPS):
            loss = cross_entropy(model(x), y)
            if move == "functional":
                gradients = torch.autograd.grad(loss, list(model.parameters()))
            else:
                loss.backward()
                gradients = [p.grad for p in model.parameters()]
            if expected is not None:
                expected.append(loss.detach())
            with torch.no_grad():
                for p, gradient in zip(model.parameters(), gradients, strict=True):
                    if move == "data":
                        p.data = p.data - 0.1 * gradient
                    else:
                        p -= 0.1 * gradient
                    p.grad = None
            losses.append(loss.item())
        return losses, ends(model)

    expected: list[Any] = []
    plain = body(Nobody(), expected)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1, keep=64) as run:
        watched = body(run)
    assert watched[0] == plain[0]
    assert all(map(torch.equal, watched[1], plain[1]))
    recording = recorded(run)
    texts = [*said, *(gap.reason for gap in recording.gaps), *(note.text for note in recording.notes)]
    if numbers(recording) == [*range(STEPS)] and "loss" in recording.nodes:
        for number, loss in enumerate(expected):
            assert same(recording.tensor("loss", number), loss)
    else:
        assert says_what_to_type(texts), texts


# ---- endoscope check -----------------------------------------------------------------------------


def check(path: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "endoscope", "check", str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def never_called(run: Any) -> None:
    run.watch(mlp())


def only_in_evaluation(run: Any) -> None:
    model = mlp().eval()
    run.watch(model)
    for x, _ in batches(STEPS):
        model(x)


def by_an_unknown_optimizer(run: Any) -> None:
    model = mlp()
    run.watch(model)
    for x, y in batches(STEPS):
        model.zero_grad()
        cross_entropy(model.forward(x), y).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)


@pytest.mark.parametrize("loop", [never_called, only_in_evaluation, by_an_unknown_optimizer])
def test_check_does_not_praise_a_recording_without_steps(tmp_path: Any, loop: Any) -> None:
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        loop(run)
    done = check(tmp_path)
    if not recorded(run).steps:
        assert "Nothing looks wrong" not in done.stdout
        assert done.stdout.strip() or done.stderr.strip()
        assert done.returncode != 0


def test_check_does_not_praise_a_recording_that_lost_most(tmp_path: Any, monkeypatch: Any) -> None:
    """The disk was full for all but the first two steps and the last one."""
    full = False
    write = files._write_some

    def perhaps(descriptor: int, buffers: Any) -> int:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, buffers)

    monkeypatch.setattr(files, "_write_some", perhaps)
    model = mlp()
    optimizer = sgd(model)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for steps, full in ((2, False), (40, True), (1, False)):  # noqa: B007
            simple_loop(model, optimizer, steps)
            with contextlib.suppress(Exception):
                run.flush()
    assert len(recorded(run).steps) < 10
    done = check(tmp_path)
    assert "Nothing looks wrong" not in done.stdout, done.stdout


def test_check_has_nothing_against_a_sound_recording(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 12)
    done = check(tmp_path)
    assert done.returncode in (0, 1), done.stdout
    assert "lost" not in done.stdout


# ---- close ---------------------------------------------------------------------------------------


def test_close_says_one_line(tmp_path: Any, capfd: Any, caplog: Any) -> None:
    """How many steps there were, how many were recorded, what it cost, what is missing."""
    model = mlp()
    optimizer = sgd(model)
    with caplog.at_level(logging.INFO):
        run = endoscope.Run(tmp_path, trial="trial", when=3, strict=True)
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 17)
        capfd.readouterr()
        caplog.clear()
        run.close()
        printed = capfd.readouterr()
    lines = [*printed.out.splitlines(), *printed.err.splitlines(), *(record.getMessage() for record in caplog.records)]
    about = [line for line in lines if "17" in line]
    assert len(about) == 1, lines
    (line,) = about
    assert re.search(r"\b17\b.*\bsteps?\b", line), line
    assert re.search(r"\b6\b", line), line  # recorded: 0, 3, 6, 9, 12, 15
    assert re.search(r"%|\bm?s\b|second", line), line
    assert "gap" in line, line
    assert Path(run.path).exists()


def test_a_jacobian_of_the_model_is_no_target(tmp_path: Path) -> None:
    """`torch.func` calls the model with tensors that hooks cannot follow; what comes out of it is no data."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def one(x: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(model.named_parameters()), (x,))

    with endoscope.Run(tmp_path, trial="penalty", when=1) as run:
        run.watch(model, optimizer)
        for _ in range(6):
            x, labels = torch.randn(5, 4), torch.randint(0, 3, (5,))
            penalty = torch.func.vmap(torch.func.jacrev(one))(x).square().sum()
            loss = nn.functional.cross_entropy(model(x), labels) + 0.01 * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    recording = endoscope.open(run.path)
    assert {key.pass_ for key in recording.tensors_of("target")} == {1}
    assert all(recording.tensor("target", step).ndim == 1 for step in range(6))
    assert len({step.graph for step in recording.steps}) == 1

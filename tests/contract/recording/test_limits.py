"""Disks that are full or slow, budgets of time and bytes: training goes on, and the recording says what is missing."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from endoscope import policies
from endoscope.store import files
from tests.contract.recording.helpers import (
    batches,
    complaints,
    mlp,
    numbers,
    plain_step,
    recorded,
    sgd,
    simple_loop,
    strict_run,
)


class Disk:
    """What the operating system does with bytes: takes them, takes its time, or has no room."""

    def __init__(self, monkeypatch: Any) -> None:
        self.is_full = False
        self.secs_per_write = 0.0
        self.stall: threading.Event | None = None  # until it is set
        self._write = files._write_some
        monkeypatch.setattr(files, "_write_some", self.write)

    def write(self, descriptor: int, buffers: Any) -> int:
        time.sleep(self.secs_per_write)
        if self.stall is not None:
            assert self.stall.wait(60)
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(descriptor, buffers)


@pytest.fixture
def disk(monkeypatch: Any) -> Disk:
    return Disk(monkeypatch)


def test_training_goes_on_when_the_disk_is_full(tmp_path: Any, disk: Disk) -> None:
    torch.manual_seed(1)
    twin = mlp()
    plain = simple_loop(twin, sgd(twin), 9)
    torch.manual_seed(1)
    model = mlp()
    optimizer = sgd(model)
    losses = []
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(9)):
            run.flush()
            disk.is_full = 3 <= n < 6
            with run.step() as step:
                losses.append(plain_step(model, optimizer, x, y).item())
                step.metric("inside", losses[-1])
            run.metric("loss", losses[-1])
            run.note(f"note {n}")
    assert losses == plain
    recording = recorded(run)
    assert set(numbers(recording)) >= {0, 1, 2, 7, 8}
    assert not set(numbers(recording)) & {3, 4}
    assert any("disk is full" in text and "Training goes on" in text for text in said)
    lost = set(range(9)) - set(numbers(recording))
    assert {gap.step for gap in recording.gaps if "disk is full" in gap.reason} == lost, "the recording says so"
    assert recording.closed
    for name in ("loss", "inside"):  # small things are written once there is room
        assert recording.metrics[name].steps.tolist() == list(range(9))


def test_a_disk_that_stays_full(tmp_path: Any, disk: Disk) -> None:
    model = mlp()
    optimizer = sgd(model)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        run.flush()
        disk.is_full = True
        assert len(simple_loop(model, optimizer, 5)) == 5
    assert said and all("Endoscope" in text for text in said)
    disk.is_full = False
    recording = endoscope.open(run.path)
    assert numbers(recording) == [0, 1]
    assert recording.verify()


def test_a_folder_that_is_removed_while_training(tmp_path: Any) -> None:
    import shutil

    model = mlp()
    optimizer = sgd(model)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        run.flush()
        shutil.rmtree(run.path)
        assert len(simple_loop(model, optimizer, 3)) == 3


def test_a_slow_disk_does_not_block_training(tmp_path: Any, disk: Disk, monkeypatch: Any) -> None:
    """Steps are left out, and that is said; nothing is dropped silently."""
    from endoscope.recording.output import worker

    monkeypatch.setattr(worker, "MOST_JOBS", 4)
    model = mlp()
    optimizer = sgd(model)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 1)
        run.flush()
        disk.secs_per_write = 0.05
        simple_loop(model, optimizer, 30)
        disk.secs_per_write = 0.0
    recording = recorded(run)
    missing = set(range(31)) - set(numbers(recording))
    assert missing  # if training had waited for the disk, there would have been room for every step
    assert missing == {gap.step for gap in recording.gaps if "queue" in gap.reason}
    assert any("slower" in text for text in said)


def test_max_bytes_thins_old_steps_evenly(tmp_path: Any) -> None:
    model = nn.Linear(64, 64)
    optimizer = sgd(model)
    limit = 400_000
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1, keep=5, max_bytes=limit) as run:
        run.watch(model, optimizer)
        for _ in range(120):
            optimizer.zero_grad()
            model(torch.randn(5, 64)).square().mean().backward()
            optimizer.step()
    recording = recorded(run)
    size = sum(file.stat().st_size for file in Path(run.path).rglob("*") if file.is_file())
    assert size <= limit * 1.1
    found = numbers(recording)
    assert found[-1] >= 118  # it did not stop
    assert found[0] <= 10
    assert max(b - a for a, b in itertools.pairwise(found)) <= 40
    assert recording.gaps  # and says so


def test_a_budget_leaves_steps_out_and_says_so(tmp_path: Any) -> None:
    """Recording everything would cost far more than that: steps are left out, and the books are in the recording."""
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=policies.every(1), budget=0.000001) as run:
        run.watch(model, optimizer)
        for _ in range(12):
            simple_loop(model, optimizer, 100)
    recording = recorded(run)
    spent = recording.config["endoscope"]["budget"]
    assert 0 < len(recording.steps) < 1200
    assert spent["refused"][""] == 1200 - len(recording.steps)
    assert spent["share"] > 0


def test_what_recording_cost_is_written(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=2) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 4)
    report = recorded(run).config["endoscope"]
    assert report["steps"] == {"": {"seen": 4, "recorded": 2}}
    assert report["recording_seconds"] > 0


def test_a_stalled_disk_bounds_what_a_kill_can_lose(tmp_path: Any, disk: Disk, monkeypatch: Any) -> None:
    """The disk takes nothing for a while. What waits for it is little, and every other step is said to be left out."""
    from endoscope.recording.output import worker

    monkeypatch.setattr(worker, "MOST_BYTES", 1)  # nothing is added while something waits
    goes_on = threading.Event()
    model = mlp()
    optimizer = sgd(model)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for _ in range(3):
            simple_loop(model, optimizer, 1)
            run.flush()
        disk.stall = goes_on
        simple_loop(model, optimizer, 30)
        shutil.copytree(run.path, tmp_path / "killed")  # what would be left if the process were killed now
        goes_on.set()
    assert numbers(endoscope.open(tmp_path / "killed")) == [0, 1, 2]
    recording = recorded(run)
    there = numbers(recording)
    assert there[:3] == [0, 1, 2] and len(there) <= 5
    assert set(range(33)) - set(there) == {gap.step for gap in recording.gaps if "queue" in gap.reason}


def test_many_metrics_of_a_step_are_no_jobs_of_their_own(tmp_path: Any, monkeypatch: Any) -> None:
    from endoscope.recording.output import worker

    jobs: list[int] = []
    put = worker.Worker.put
    monkeypatch.setattr(worker.Worker, "put", lambda self, job, size=0: (jobs.append(size), put(self, job, size))[1])
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=4) as run:
        run.watch(model, optimizer)
        jobs.clear()
        for x, y in batches(8):
            loss = plain_step(model, optimizer, x, y)
            for number in range(100):
                run.metric(f"metric {number}", loss)
        assert len(jobs) <= 8
    assert len(recorded(run).metrics["metric 0"]) == len(recorded(run).metrics["metric 99"]) == 8

"""When the writer is woken for a recorded step."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

import endoscope
from endoscope.recording.capture import Capture
from endoscope.recording.worker import Worker


def _train(run: endoscope.Run, alive: list[Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.watch(model, optimizer)
    for module in model:
        module.register_forward_hook(lambda module, args, out: alive.append(weakref.ref(out)))
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()


def test_the_tensors_of_a_step_are_gone_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeing a tensor gives the interpreter away, and a writer that is awake takes it."""
    alive: list[Any] = []
    seen: list[int] = []
    put = Worker.put
    monkeypatch.setattr(
        Worker, "put", lambda *args: (seen.append(sum(ref() is not None for ref in alive)), put(*args))[1]
    )
    with endoscope.Run(tmp_path, trial="t") as run:
        _train(run, alive)
        assert len(alive) == 3
        assert seen[-1] == 0


def test_a_step_is_written_even_if_letting_go_of_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Capture) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Capture, "let_go", fail)
    with endoscope.Run(tmp_path, trial="t") as run:
        _train(run, [])
    assert [step.number for step in endoscope.open(run.path).steps] == [0]

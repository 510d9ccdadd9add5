"""Between recorded steps the patches of torch may stay; they go with the first step that is not recorded."""

from pathlib import Path

import pytest
import torch
from torch import nn

import endoscope
from endoscope.capture import patches


@pytest.fixture
def original() -> object:
    assert not patches._installed, "an earlier test has left something behind"
    return nn.Module._call_impl


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_they_go_with_a_step_that_is_not_recorded(tmp_path: Path, original: object) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="trial", when=endoscope.policies.first(2), strict=True) as run:
        run.watch(model, optimizer)
        step(model, optimizer)
        step(model, optimizer)
        step(model, optimizer)
        assert nn.Module._call_impl is original


def test_they_go_with_the_run(tmp_path: Path, original: object) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        step(model, optimizer)
    assert nn.Module._call_impl is original and not patches._installed


def test_they_go_with_a_run_that_nobody_closes(tmp_path: Path, original: object) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(tmp_path, trial="trial", when=1, strict=True)
    run.watch(model, optimizer)
    step(model, optimizer)
    run._worker.stop()
    run.closed = True  # as after a crash of ours: nothing but the finalizer is left
    for watch in run._watches:
        watch.unhook()
    del run, model, optimizer, watch
    import gc

    gc.collect()
    assert nn.Module._call_impl is original


def test_a_trace_within_a_run_leaves_them_as_they_were(tmp_path: Path, original: object) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        step(model, optimizer)
        assert len(endoscope.trace(model, torch.ones(2, 3))) == 3
        step(model, optimizer)
    assert nn.Module._call_impl is original
    assert len(endoscope.open(run.path).steps) == 2


def test_where_code_was_compiled_they_do_not_stay(tmp_path: Path, original: object) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(nn.Linear(3, 2), backend="eager")
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        step(model, optimizer)
        assert nn.Module._call_impl is original
    assert compiled is not None
    torch._dynamo.reset()

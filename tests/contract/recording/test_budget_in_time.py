"""Budget and defaults, as far as they do not depend on a clock: what is always there, and what is never passed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import endoscope
from tests.contract.recording.helpers import batches, complaints, mlp, numbers, plain_step, recorded, sgd, strict_run


def size_of(path: Any) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


def loop(run: Any, steps: int, model: nn.Module | None = None, types: int = 0) -> None:
    model = model or mlp()
    optimizer = sgd(model, lr=0.01)
    run.watch(model, optimizer)
    for number, (x, y) in enumerate(batches(steps)):
        if types:
            with run.step(type=str(number % types)):
                loss = plain_step(model, optimizer, x, y)
        else:
            loss = plain_step(model, optimizer, x, y)
        run.metric("mean", loss)


def numbers_in(thing: Any) -> Iterator[tuple[str, float]]:
    """All numbers of nested settings, with their names."""
    if isinstance(thing, dict):
        for name, value in thing.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield str(name), float(value)
            yield from numbers_in(value)


# ---- without arguments ---------------------------------------------------------------------------


def test_a_run_without_arguments_has_a_budget_and_a_bounded_size(tmp_path: Any) -> None:
    """Five percent of the time, and less on disk than anyone would notice."""
    with complaints(), endoscope.Run(tmp_path) as run:
        loop(run, 20)
    settings = list(numbers_in(recorded(run).config["endoscope"]))
    assert 0.05 in [value for _, value in settings], settings
    limits = [value for name, value in settings if "bytes" in name and name != "raw_bytes"]
    assert any(2**20 <= value <= 2**31 for value in limits), settings


def test_a_run_without_arguments_records_from_the_first_step(tmp_path: Any) -> None:
    with complaints(), endoscope.Run(tmp_path) as run:
        loop(run, 60)
    recording = recorded(run)
    assert numbers(recording)[0] == 0
    assert len(recording.steps) > 1
    assert recording.metrics["mean"].steps.tolist() == [*range(60)]


def test_budgets_can_be_chosen_or_refused(tmp_path: Any) -> None:
    with complaints(), endoscope.Run(tmp_path, budget=0.2) as run:
        loop(run, 5)
    assert 0.2 in [value for _, value in numbers_in(recorded(run).config["endoscope"])]
    for wrong in (5, -0.1, "a lot"):
        with pytest.raises(endoscope.errors.BadArgument, match="budget"):
            endoscope.Run(tmp_path, budget=wrong)


# ---- what a budget never takes away --------------------------------------------------------------


@pytest.mark.parametrize("budget", [1e-6, 1e-3, 0.05])
def test_the_first_step_is_always_there(tmp_path: Any, budget: float) -> None:
    with complaints(), endoscope.Run(tmp_path, budget=budget) as run:
        loop(run, 12)
    recording = recorded(run)
    assert numbers(recording)[0] == 0
    assert {"0", "2", "0.weight", "loss"} <= set(recording.nodes)


@pytest.mark.parametrize("budget", [1e-6, 0.05])
def test_metrics_of_all_steps_are_there(tmp_path: Any, budget: float) -> None:
    with complaints(), endoscope.Run(tmp_path, budget=budget) as run:
        loop(run, 300)
    recording = recorded(run)
    assert len(recording.steps) < 300
    for name in ("mean", "lr"):
        assert recording.metrics[name].steps.tolist() == [*range(300)], name


@pytest.mark.parametrize("when", [None, 1])
@pytest.mark.parametrize("budget", [1e-6, 0.02])
def test_recorded_steps_never_stop(tmp_path: Any, budget: float, when: Any) -> None:
    """However small the budget: between two recorded steps lies at most a tenth of the steps so far."""
    steps = 1500
    with complaints(), endoscope.Run(tmp_path, budget=budget, when=when, keep=0) as run:
        loop(run, steps)
    found = numbers(recorded(run))
    for one, two in itertools.pairwise([*found, steps]):
        assert two - one <= max(1, two / 10) + 1, (one, two, found)
    tenths = {number * 10 // steps for number in found}
    assert tenths == set(range(10))


def test_no_type_of_step_is_forgotten(tmp_path: Any) -> None:
    steps = 900
    with complaints(), endoscope.Run(tmp_path, budget=1e-6, when=1, keep=0) as run:
        loop(run, steps, types=3)
    recording = recorded(run)
    for kind in range(3):
        found = [(step.number - kind) // 3 for step in recording.steps if step.type == str(kind)]
        assert found and found[0] == 0
        for one, two in itertools.pairwise([*found, steps // 3]):
            assert two - one <= max(1, two / 10) + 1, (kind, one, two)


# ---- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [40_000, 65_536, 100_001, 250_000, 1_000_000])
@pytest.mark.parametrize("keep", [0, 5])
def test_max_bytes_is_kept_to_the_byte(tmp_path: Any, limit: int, keep: int) -> None:
    """While the run goes on as well as at its end, with metrics and notes."""
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = sgd(model)
    sizes = []
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1, keep=keep, max_bytes=limit) as run:
        run.watch(model, optimizer)
        for number, (x, y) in enumerate(batches(150)):
            run.metric("mean", plain_step(model, optimizer, x, y))
            if number % 25 == 24:
                run.note(f"note {number}")
                run.flush()
                sizes.append(size_of(run.path))
    sizes.append(size_of(run.path))
    assert max(sizes) <= limit, (max(sizes) - limit, sizes)
    recording = recorded(run)
    assert recording.closed
    assert numbers(recording), "something is there all the same"


def test_a_size_that_is_enough_takes_nothing_away(tmp_path: Any) -> None:
    with strict_run(tmp_path, max_bytes=50_000_000) as run:
        loop(run, 30)
    assert numbers(recorded(run)) == [*range(30)]
    assert recorded(run).gaps == []


def test_the_first_step_survives_the_limit_of_bytes(tmp_path: Any) -> None:
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1, max_bytes=200_000) as run:
        loop(run, 200)
    found = numbers(recorded(run))
    assert found[0] == 0
    assert found[-1] >= 175
    assert size_of(run.path) <= 200_000


# ---- what is counted -----------------------------------------------------------------------------


def test_numbers_of_steps_do_not_depend_on_the_budget(tmp_path: Any) -> None:
    """The same loop, dear or cheap to record: a step that both recorded holds the same."""
    found = []
    for name, settings in (("all", {"when": 1}), ("few", {"when": 1, "budget": 1e-6})):
        torch.manual_seed(3)
        with complaints(), endoscope.Run(tmp_path, trial=name, **settings) as run:
            loop(run, 100)
        found.append(recorded(run))
    every, few = found
    assert set(numbers(few)) <= set(numbers(every))
    for number in numbers(few):
        assert few.statistics("0.weight", number, of="update") == every.statistics("0.weight", number, of="update")

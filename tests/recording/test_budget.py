"""The budget, on simulated clocks: the share holds, recorded steps never stop, what is dear is recorded rarely."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import endoscope
from endoscope.errors import BadArgument
from endoscope.recording.deciding.budget import CREDIT_SECONDS, DROPPED, IDLE, KEPT, Budget
from endoscope.recording.output import finishing
from endoscope.recording.output.worker import Worker
from endoscope.recording.steps import steps


class Run:
    """A training whose clock is a list of numbers."""

    def __init__(self, fraction: float, step: Callable[[int], float], cost: Callable[[int], float]) -> None:
        self.budget = Budget(fraction)
        self.step, self.cost = step, cost
        self.kept: list[int] = []
        self.added = self.trained = self.first = 0.0
        self.hooks = 0.0  # that each step costs

    def run(self, steps: int, type: str = "", urgent: bool = False) -> Run:
        first = self.budget.steps
        for number in range(first, first + steps):
            plain, kind, cost = self.step(number), IDLE, 0.0
            if self.budget.allows(type, urgent):
                kind, cost = KEPT, self.cost(number) * (1.0, 0.4, 0.1)[self.budget.detail]
                self.first = self.first if self.kept else cost
                self.added += cost if self.kept else 0.0
                self.kept.append(number)
            elif self.hooks and self.budget.wants_hooks_timed:
                self.budget.hooks_took(self.hooks / 1.5)
            self.trained += plain
            self.added += self.hooks
            self.budget.step_ended(type, plain + cost + self.hooks, kind, own=0.9 * cost)
        return self

    @property
    def share(self) -> float:
        return (self.added - CREDIT_SECONDS) / self.trained


def steady(seconds: float) -> Callable[[int], float]:
    return lambda _: seconds


def noisy(seconds: float, spread: float = 0.3) -> Callable[[int], float]:
    chance = random.Random(3)
    return lambda _: seconds * chance.lognormvariate(0.0, spread)


@pytest.mark.parametrize("fraction", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seconds", [0.0002, 0.005, 0.2])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("make", [steady, noisy])
def test_the_share_holds(
    fraction: float, seconds: float, ratio: float, make: Callable[[float], Callable[[int], float]]
) -> None:
    run = Run(fraction, make(seconds), make(ratio * seconds)).run(4000)
    assert run.share <= 1.1 * fraction + 0.01 * (fraction < 0.05)  # a tenth of the steps asks for more than 1 %
    assert run.added >= min(0.3 * fraction * run.trained, ratio * seconds * 3000)  # and it is used


@pytest.mark.parametrize("fraction", [1e-6, 0.02, 0.5])
@pytest.mark.parametrize("seconds", [0.0002, 0.2])
def test_recorded_steps_never_stop(fraction: float, seconds: float) -> None:
    run = Run(fraction, steady(seconds), steady(5 * seconds)).run(5000)
    assert run.kept[0] == 0
    assert all(b - a <= b // 10 + 1 for a, b in pairwise([*run.kept, 5000]))


def test_where_only_the_tenth_is_left_less_is_recorded() -> None:
    run = Run(1e-6, steady(0.1), steady(5.0)).run(500)
    assert run.budget.detail == 2
    assert Run(0.5, steady(0.1), steady(0.001)).run(500).budget.detail == 0


def test_distances_are_powers_of_two_on_one_grid() -> None:
    run = Run(0.05, steady(0.01), steady(0.02)).run(6000)
    late = [number for number in run.kept if number > 3000]
    distances = {b - a for a, b in pairwise(late)}
    assert len(distances) <= 2 and all(d & (d - 1) == 0 for d in distances)
    assert all(number % min(distances) == 0 for number in late)


def test_steps_that_suddenly_take_ten_times_as_long() -> None:
    run = Run(0.05, lambda n: 0.01 if n < 1000 else 0.1, lambda n: 0.02 if n < 1000 else 0.2).run(4000)
    assert run.share <= 0.06
    dense = Run(0.05, lambda n: 0.1 if n < 1000 else 0.01, lambda n: 0.2 if n < 1000 else 0.02).run(6000)
    assert dense.share <= 0.06


def test_a_first_step_of_a_minute_is_start_up() -> None:
    run = Run(0.05, steady(0.01), lambda n: 60.0 if n == 0 else 0.005).run(3000)
    assert run.budget.start_up_seconds == pytest.approx(54.0)
    assert len(run.kept) > 100


def test_hooks_that_cost_are_charged_and_said() -> None:
    run = Run(0.2, steady(0.001), steady(0.001))
    run.hooks = 0.0001
    run.run(5000)
    assert run.share <= 0.22
    assert run.budget.hook_seconds == pytest.approx(0.0001)
    assert not run.budget.hooks_alone_break_it
    tiny = Run(0.05, steady(0.0002), steady(0.001))
    tiny.hooks = 0.00003
    assert tiny.run(3000).budget.hooks_alone_break_it
    assert tiny.budget.share == pytest.approx(tiny.added / tiny.trained, rel=0.2)


def test_what_is_said_is_what_was_spent() -> None:
    run = Run(0.2, noisy(0.01, 0.1), noisy(0.02, 0.1)).run(4000)
    assert run.budget.share == pytest.approx(run.added / run.trained, rel=0.2)


def test_the_writer_is_charged() -> None:
    budget = Budget(0.1)
    written = 0.0
    kept = 0
    for number in range(4000):
        kind = KEPT if budget.allows("") else IDLE
        kept += kind == KEPT
        written += 0.05 if kind == KEPT else 0.0
        budget.step_ended("", 0.01 if kind == IDLE else 0.011, kind, 0.001, written)
        assert number or kept
    assert written <= 1.1 * (0.1 * 40 + CREDIT_SECONDS) + 0.05


def test_types_are_counted_each_by_itself() -> None:
    budget = Budget(0.05)
    kept: dict[str, list[int]] = {"a": [], "b": []}
    for number in range(3000):
        type = "ab"[number % 2]
        allowed = budget.allows(type)
        if allowed:
            kept[type].append(number)
        budget.step_ended(type, 0.01 + 0.03 * allowed, KEPT if allowed else IDLE, 0.02 * allowed)
    assert len(kept["a"]) > 30 and len(kept["b"]) > 30


def test_captured_steps_that_are_decided_against_are_charged() -> None:
    budget, added, trained = Budget(0.05), 0.0, 0.0
    captured = 0
    for _ in range(5000):
        is_held = budget.allows("", tentative=True)
        captured += is_held
        added += 0.005 * is_held
        trained += 0.01
        budget.step_ended("", 0.01 + 0.005 * is_held, DROPPED if is_held else IDLE, 0.002 * is_held)
    assert added - CREDIT_SECONDS <= 1.1 * 0.05 * trained
    assert captured > 200 and budget.unwatched == 5000 - captured


def test_urgent_steps_are_refused_when_nothing_is_left() -> None:
    run = Run(0.01, steady(0.001), steady(0.4)).run(100, urgent=True)
    assert 2 <= len(run.kept) < 40
    assert run.budget.refused[""] == 100 - len(run.kept)


def test_the_first_step_of_a_type_is_always_recorded() -> None:
    run = Run(1e-6, steady(0.001), steady(1.0)).run(100)
    assert run.budget.allows("another")


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5, True, "5 %", None])
def test_what_is_no_share(fraction: object) -> None:
    with pytest.raises(BadArgument, match="share of the training time"):
        Budget(fraction)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(
    fraction=st.floats(0.005, 0.5),
    seconds=st.floats(1e-4, 0.5),
    ratio=st.floats(0.02, 20.0),
    spread=st.floats(0.0, 0.5),
)
def test_any_training(fraction: float, seconds: float, ratio: float, spread: float) -> None:
    run = Run(fraction, noisy(seconds, spread), noisy(ratio * seconds, spread)).run(3000)
    tenths = 0.1 * ratio * len(run.kept) * seconds if ratio > 2 else 0.0  # a tenth may ask for more than the share
    assert run.share <= 1.2 * fraction + 0.01 + 2 * tenths / run.trained
    assert all(b - a <= b // 10 + 1 for a, b in pairwise([*run.kept, 3000]))


class Clock:
    """Stands for the module `time` where steps are timed."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_a_training_whose_clock_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes 10 ms, and 20 ms more where it is recorded."""
    clock, measured = Clock(), []
    measure_step = finishing.measure_step

    def slow_measuring(*args: Any) -> Any:
        measured.append(clock.now)
        clock.now += 0.02
        return measure_step(*args)

    class Net(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            clock.now += 0.01
            return super().forward(x)

    monkeypatch.setattr(steps, "time", clock)
    monkeypatch.setattr(finishing, "measure_step", slow_measuring)
    monkeypatch.setattr(Worker, "seconds", property(lambda _: 0.0, lambda *_: None), raising=False)
    model = Net(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(tmp_path, trial="t", when=1, budget=0.1, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(2000):
            model(torch.ones(4, 3)).sum().backward()
            optimizer.step()
    report = endoscope.open(run.path).config["endoscope"]["budget"]
    assert 0.02 * (len(measured) - 1) - CREDIT_SECONDS <= 0.1 * 20
    assert len(measured) > 60
    assert report["share"] == pytest.approx(0.02 * (len(measured) - 1) / 20, rel=0.05)


def test_what_the_rarest_process_records_all_record() -> None:
    """Processes of a job have clocks of their own; where recording costs one of them more, its steps are a part."""
    runs = [Run(0.02, steady(0.01), steady(cost)).run(4000) for cost in (0.002, 0.02, 0.2)]
    late = [{number for number in run.kept if number >= 1000} for run in runs]
    assert late[2] and late[2] < late[1] < late[0]

"""When a step is recorded: policies, types of steps, and decisions that come late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope import policies
from tests.contract.recording.helpers import batches, complaints, mlp, numbers, recorded, same, sgd, strict_run

cross_entropy = nn.functional.cross_entropy


def steps_of(root: Any, when: Any, types: str, **settings: Any) -> list[int]:
    """Numbers of the recorded steps; one character of `types` for each step."""
    with strict_run(root, when=when, **settings) as run:
        for type_ in types:
            with run.step(type=type_) as step:
                step.tag("x", torch.ones(2))
    return numbers(recorded(run))


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (policies.every(4), [0, 4, 8]),
        (3, [0, 3, 6, 9]),
        (policies.first(2), [0, 1]),
        (policies.at({2, 7, 99}), [2, 7]),
        (policies.either(policies.first(1), policies.at([5])), [0, 5]),
        (lambda info: info.number % 5 == 1, [1, 6]),
        (lambda info: info.seen == 3 and info.recorded == 0, [3]),
    ],
)
def test_policies(tmp_path: Any, when: Any, expected: list[int]) -> None:
    assert steps_of(tmp_path, when, "a" * 10) == expected


def test_decaying_is_dense_then_thin_and_bounded(tmp_path: Any) -> None:
    when = policies.decaying(5, growth=1.5, max_recorded=8)
    found = steps_of(tmp_path, when, "a" * 300)
    assert found[:5] == [0, 1, 2, 3, 4]
    assert len(found) == 8
    gaps = np.diff(found[4:])
    assert all(gaps[1:] >= gaps[:-1])


def test_each_type_is_counted_by_itself(tmp_path: Any) -> None:
    """A rare type is recorded the first times it is seen even when recording has become rare."""
    assert steps_of(tmp_path, policies.first(2), "aaaaaaabab") == [0, 1, 7, 9]
    assert steps_of(tmp_path, policies.every(3), "aaaabbbabb") == [0, 3, 4, 8]


def test_a_function_is_told_number_type_seen_and_recorded(tmp_path: Any) -> None:
    seen = []

    def when(info: Any) -> bool:
        seen.append((info.number, info.type, info.seen, info.recorded))
        return bool(info.number == 1)

    steps_of(tmp_path, when, "aab")
    assert seen == [(0, "a", 0, 0), (1, "a", 1, 0), (2, "b", 0, 0)]


@pytest.mark.parametrize("answer", [np.bool_(True), 1, "yes", torch.tensor(True)])
def test_anything_true_is_yes(tmp_path: Any, answer: Any) -> None:
    assert steps_of(tmp_path, lambda info: answer, "aa") == [0, 1]


def test_a_policy_that_raises_does_not_stop_training(tmp_path: Any) -> None:
    def broken(info: Any) -> bool:
        raise RuntimeError("out of order")

    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=broken) as run:
        for _ in range(3):
            with run.step() as step:
                step.tag("x", torch.ones(2))
    recording = recorded(run)
    assert any("out of order" in text for text in said)
    assert any("out of order" in gap.reason for gap in recording.gaps)


def test_decide_against_it(tmp_path: Any) -> None:
    with strict_run(tmp_path) as run:
        for n in range(4):
            with run.step() as step:
                step.tag("x", torch.ones(2))
                step.metric("n", n)
                step.decide(keep=n == 2)
    recording = recorded(run)
    assert numbers(recording) == [2]
    assert recording.metrics["n"].values.tolist() == [0, 1, 2, 3]


def test_decide_for_it_although_no_policy_says_so(tmp_path: Any) -> None:
    """From the first late decision on, values are held until the step ends."""
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=lambda info: False) as run:
        for n in range(6):
            with run.step() as step:
                step.tag("x", torch.full((2,), float(n)))
                step.decide(keep=torch.tensor(n % 2 == 1))
    recording = recorded(run)
    assert set(numbers(recording)) >= {3, 5}
    assert same(recording.tensor("x", 5), torch.full((2,), 5.0))
    missed = {1} - set(numbers(recording))
    assert all(any(gap.step == step for gap in recording.gaps) for step in missed)  # said, if it was missed


def test_the_type_may_be_decided_late(tmp_path: Any) -> None:
    with strict_run(tmp_path, when=policies.first(1)) as run:
        for type_ in "aabab":
            with run.step() as step:
                step.tag("x", torch.ones(2))
                step.decide(type=type_)
    recording = recorded(run)
    assert [(step.number, step.type) for step in recording.steps] == [(0, "a"), (2, "b")]


def test_samples_that_were_chosen_late_are_kept_raw(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, keep=2) as run:
        run.watch(model, optimizer)
        for x, y in batches(2, size=9):
            with run.step() as step:
                out = model(x)
                losses = cross_entropy(out, y, reduction="none")
                worst = losses.argsort(descending=True)[:3]
                losses.mean().backward()
                step.decide(samples=worst)
                optimizer.step()
    recording = recorded(run)
    assert sorted(recording.steps[1].raw_samples) == sorted(worst.tolist())
    for sample in worst.tolist():
        assert same(recording.tensor("input", 1, sample=sample), x[sample])
        assert same(recording.tensor("output", 1, sample=sample), out[sample])


def test_samples_that_are_not_there(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer)
        for x, y in batches(1):
            with run.step() as step:
                cross_entropy(model(x), y).backward()
                step.decide(samples=[3, 99, 3, 1])
    recording = recorded(run)
    assert sorted(set(recording.steps[0].raw_samples)) == [1, 3]
    for sample in (1, 3):
        assert same(recording.tensor("input", 0, sample=sample), x[sample])


def test_a_number_of_categories_that_does_not_fit_is_said(tmp_path: Any) -> None:
    model = mlp()
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model)
        for x, y in batches(1):
            with run.step() as step:
                cross_entropy(model(x), y).backward()
                step.decide(categories=["a", "b"])
    assert len(said) == 1 and "2 categories" in said[0]
    assert len(recorded(run).steps[0].raw_samples) == 4  # chosen without them


def test_samples_are_balanced_over_categories(tmp_path: Any) -> None:
    names = ["cat"] * 6 + ["dog"] + ["owl"]
    with strict_run(tmp_path, keep=3) as run, run.step() as step:
        step.tag("x", torch.arange(8.0), kind="input")
        step.decide(categories=names)
    step = recorded(run).steps[0]
    assert {names[sample] for sample in step.raw_samples} == {"cat", "dog", "owl"}


def test_categories_of_a_model_are_balanced(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    labels = torch.tensor([0, 0, 0, 0, 0, 0, 1, 2])
    with strict_run(tmp_path, keep=3) as run:
        run.watch(model, optimizer)
        for x, _ in batches(2, size=8):
            with run.step() as step:
                cross_entropy(model(x), labels).backward()
                step.decide(categories=labels)
                optimizer.step()
    for step in recorded(run).steps:
        assert sorted(labels[list(step.raw_samples)].tolist()) == [0, 1, 2]


def test_on_nonfinite(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, when=policies.on_nonfinite()) as run:
        run.watch(model, optimizer)
        for n, (x, y) in enumerate(batches(6)):
            if n == 3:
                x[0, 0] = float("inf")
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            if n != 3:
                optimizer.step()
            else:
                with torch.no_grad():
                    for p in model.parameters():
                        p.grad.zero_()
                optimizer.step()
    assert numbers(recorded(run)) == [3]


def test_on_spike(tmp_path: Any) -> None:
    with strict_run(tmp_path, when=policies.on_spike("loss", warmup_steps=5)) as run:
        for n in range(20):
            with run.step() as step:
                step.tag("x", torch.ones(2))
                step.metric("loss", 50.0 if n == 12 else 1.0 + 0.01 * (n % 3))
    recording = recorded(run)
    assert numbers(recording) == [12]
    assert "spike" in recording.steps[0].why


def test_on_outlier_samples(tmp_path: Any) -> None:
    with strict_run(tmp_path, when=policies.on_outlier_samples("loss", 2, warmup_steps=5), keep=2) as run:
        for n in range(15):
            losses = torch.linspace(1, 1.1, 8)
            if n == 9:
                losses[5], losses[2] = 40.0, 30.0
            with run.step() as step:
                step.tag("x", losses, kind="input")
                step.metric("loss", losses)
    recording = recorded(run)
    assert numbers(recording) == [9]
    assert sorted(recording.steps[0].raw_samples) == [2, 5]


def test_a_step_decided_against_is_let_go(tmp_path: Any) -> None:
    """Until decided, values are held by reference: nothing is measured, nothing written."""
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            with run.step() as step:
                cross_entropy(model(x), y).backward()
                step.decide(keep=False)
                optimizer.step()
    recording = recorded(run)
    assert recording.steps == []
    assert recording.nodes == []


def test_why_is_written(tmp_path: Any) -> None:
    with strict_run(tmp_path, when=policies.every(2)) as run:
        for _ in range(2):
            with run.step():
                pass
    assert "every(2)" in recorded(run).steps[0].why

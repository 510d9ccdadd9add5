"""`with run.step() as step:` tags, links, metrics, settings and notes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import EndoscopeError
from tests.contract.recording.helpers import (
    batches,
    complaints,
    edges,
    gaps_of,
    kinds,
    mlp,
    numbers,
    plain_step,
    recorded,
    same,
    sgd,
    strict_run,
)

cross_entropy = nn.functional.cross_entropy


def test_numbers_and_types_are_what_the_user_says(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for number, (x, y) in zip((10, 20, 21), batches(3), strict=True):
            with run.step(number, type="even" if number % 2 == 0 else "odd") as step:
                assert step.number == number
                plain_step(model, optimizer, x, y)
        with run.step() as step:
            assert step.number == 22  # goes on from there
    recording = recorded(run)
    assert numbers(recording)[:3] == [10, 20, 21]
    assert [step.type for step in recording.steps][:3] == ["even", "even", "odd"]
    assert set(recording.types) >= {"even", "odd"}


def test_a_step_may_hold_several_updates(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        with run.step():
            before = model[0].weight.detach().clone()
            for x, y in batches(3):
                plain_step(model, optimizer, x, y)
    recording = recorded(run)
    assert numbers(recording) == [0]
    assert recording.steps[0].passes == 3
    assert same(recording.tensor("0.weight", 0, of="parameter"), before)
    assert same(recording.tensor("0.weight", 0, of="update"), model[0].weight.detach() - before)


def test_tags_of_every_kind(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            step.tag("pixels", x, kind="input")
            step.tag("labels", y, kind="target")
            out = model(x)
            sums = step.tag("sums", out.cumsum(1))
            assert sums.requires_grad
            loss = step.tag("cost", cross_entropy(sums, y), kind="loss")
            loss.backward()
            expected = torch.autograd.grad(cross_entropy(leaf := sums.detach().requires_grad_(), y), leaf)[0]
            optimizer.step()
    recording = recorded(run)
    found = kinds(recording)
    assert (found["pixels"], found["labels"], found["sums"], found["cost"]) == ("input", "target", "computed", "loss")
    assert same(recording.tensor("sums", 0), sums)
    assert same(recording.tensor("sums", 0, of="gradient:cost"), expected)
    assert same(recording.tensor("labels", 0), y)
    assert ("sums", "cost") in edges(recording)
    assert ("labels", "cost") in edges(recording)


def test_anything_may_be_tagged(tmp_path: Any) -> None:
    """A parameter, a result of a module, a leaf from before the step, one tensor under two names."""
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    prompt = torch.zeros(6, requires_grad=True)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            step.tag("weight", model[0].weight, batch_dim=None)
            step.tag("prompt", prompt, batch_dim=None)
            out = model(x + prompt)
            step.tag("scores", out)
            step.tag("answers", out)
            cross_entropy(out, y).backward()
            expected = [model[0].weight.grad.clone(), prompt.grad.clone()]
            optimizer.step()
    recording = recorded(run)
    assert same(recording.tensor("weight", 0, of="gradient"), expected[0])
    assert same(recording.tensor("prompt", 0, of="gradient"), expected[1])
    assert same(recording.tensor("scores", 0), out) and same(recording.tensor("answers", 0), out)
    assert {("prompt", "input"), ("weight", "0")} <= edges(recording) or ("0.weight", "0") in edges(recording)


def test_gradients_blocks_nest_and_survive_exceptions(tmp_path: Any) -> None:
    model = mlp()
    ((x, y),) = batches(1)
    with strict_run(tmp_path) as run:
        run.watch(model)
        with run.step() as step:
            with step.gradients("outer"):
                cross_entropy(model(x), y).backward()
                with step.gradients("inner"):
                    model(x).mean().backward()
                cross_entropy(model(x), y).backward()
            with pytest.raises(KeyError), step.gradients("broken"):
                raise KeyError
            model(x).sum().backward()
    recording = recorded(run)
    assert recording.losses == ["outer", "inner", "loss"]


def test_roles_of_one_node(tmp_path: Any) -> None:
    digits = [torch.full((4, 2), float(n)) for n in range(3)]
    with strict_run(tmp_path) as run, run.step() as step:
        for n, digit in enumerate(digits):
            step.tag("partial sums", digit, role=f"digit {n}")
    recording = recorded(run)
    assert sorted(key.role for key in recording.tensors_of("partial sums")) == ["digit 0", "digit 1", "digit 2"]
    for n, digit in enumerate(digits):
        assert same(recording.tensor("partial sums", 0, role=f"digit {n}"), digit)


def test_the_same_tag_again_is_another_pass(tmp_path: Any) -> None:
    states = [torch.full((4, 2), float(n)) for n in range(3)]
    with strict_run(tmp_path) as run, run.step() as step:
        for state in states:
            step.tag("state", state)
    recording = recorded(run)
    for n, state in enumerate(states, 1):
        assert same(recording.tensor("state", 0, pass_=n), state)


def test_the_batch_may_lie_along_another_dimension(tmp_path: Any) -> None:
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    with strict_run(tmp_path, keep=4) as run, run.step() as step:
        step.tag("time first", tensor, batch_dim=1)
        step.tag("no batch", tensor, batch_dim=None)
        step.decide(samples=[0, 2])
    recording = recorded(run)
    key = recording.tensors_of("time first")[0]
    assert key.batch_dim == 1
    assert same(recording.tensor("time first", 0, sample=2), tensor[:, 2])
    assert np.allclose(recording.samples("time first", 0)["mean"], tensor.mean((0, 2)))
    assert same(recording.tensor("no batch", 0), tensor)


def test_a_link_across_detach_and_numpy(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        with run.step() as step:
            out = model(x)
            loss = cross_entropy(out, y)
            away = step.tag("threshold", torch.from_numpy((out.detach().numpy() > 0).astype("float32")))
            step.link(out, away)
            loss.backward()
            optimizer.step()
    found = edges(recorded(run))
    assert ("output", "threshold") in found or ("2", "threshold") in found


def test_a_link_by_names(tmp_path: Any) -> None:
    with strict_run(tmp_path) as run, run.step() as step:
        step.tag("a", torch.ones(3))
        step.tag("b", torch.ones(3))
        step.link("a", "b")
    assert edges(recorded(run)) == {("a", "b")}


def test_links_and_tags_of_steps_that_are_not_recorded(tmp_path: Any) -> None:
    with strict_run(tmp_path, when=lambda info: False) as run, run.step() as step:
        tensor = torch.ones(3)
        assert step.tag("a", tensor) is tensor
        step.link("a", tensor)
        with step.gradients("x"):
            pass
        step.metric("loss", 1.0)
        step.config(lr=0.1)
        assert not step.recording
    recording = recorded(run)
    assert recording.steps == []
    assert recording.metrics["loss"].values.tolist() == [1.0]


def test_metrics_of_every_step_recorded_or_not(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    losses = []
    with strict_run(tmp_path, when=3) as run:
        run.watch(model, optimizer)
        for x, y in batches(7):
            loss = plain_step(model, optimizer, x, y)
            run.metric("loss", loss)
            run.metric("half", loss.item() / 2)
            losses.append(loss.item())
    recording = recorded(run)
    assert numbers(recording) == [0, 3, 6]
    assert recording.metrics["loss"].steps.tolist() == list(range(7))
    assert np.allclose(recording.metrics["loss"].values, losses)
    assert np.allclose(recording.metrics["half"].values, np.array(losses) / 2)
    assert sorted(recording.metrics) == ["half", "loss", "lr"]


def test_run_metric_before_the_first_step_and_inside_a_block(tmp_path: Any) -> None:
    with strict_run(tmp_path) as run:
        run.metric("early", 1)
        with run.step(5):
            run.metric("inside", np.float32(2))
        run.metric("after", torch.tensor(3))
    metrics = recorded(run).metrics
    assert metrics["early"].values.tolist() == [1.0]
    assert metrics["inside"].steps.tolist() == [5]
    assert metrics["after"].steps.tolist() == [5]


def test_a_metric_has_the_type_of_its_step(tmp_path: Any) -> None:
    with strict_run(tmp_path) as run:
        with run.step(type="long") as step:
            step.metric("inside", 1)
        run.metric("after", 2)
    metrics = recorded(run).metrics
    assert metrics["inside"].types.tolist() == metrics["after"].types.tolist() == ["long"]


def test_words_after_close_are_not_lost_silently(tmp_path: Any) -> None:
    with complaints() as said:
        run = endoscope.Run(tmp_path, trial="trial", when=1)
        run.close()
        run.metric("late", 1)
        run.note("late")
        run.config(late=1)
        with run.step() as step:
            step.tag("late", torch.ones(2))
        run.flush()
        run.close()
    assert len(said) == 3 and all("closed" in text for text in said)
    assert recorded(run).steps == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0), (True, 1.0), (np.float64(0.5), 0.5), (np.array([2.0]), 2.0), (np.array(4), 4.0),
        (torch.tensor(2.5), 2.5), (torch.tensor([[2.5]]), 2.5), (torch.tensor(7, dtype=torch.int8), 7.0),
        (torch.tensor(1.5, dtype=torch.bfloat16), 1.5), (torch.tensor(True), 1.0),
        (torch.tensor([1.0, 3.0]), 2.0), (np.array([1, 3]), 2.0), ([1.0, 3.0], 2.0),
        (float("nan"), float("nan")), (float("inf"), float("inf")), (torch.tensor([float("nan"), 1]), float("nan")),
    ],
)  # fmt: skip
def test_numbers_of_any_kind(tmp_path: Any, value: Any, expected: float) -> None:
    with strict_run(tmp_path) as run, run.step() as step:
        step.metric("metric", value)
    assert np.array_equal(recorded(run).metrics["metric"].values, [expected], equal_nan=True)


@pytest.mark.parametrize("value", ["three", None, object(), torch.zeros(0), np.zeros(0), torch.tensor(1 + 2j), {}])
def test_metrics_that_are_no_numbers_do_not_stop_training(tmp_path: Any, value: Any) -> None:
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        with run.step() as step:
            step.metric("good", 1)
            step.metric("bad", value)
        run.metric("bad", value)
    recording = recorded(run)
    assert recording.metrics["good"].values.tolist() == [1.0]
    values = recording.metrics["bad"].values.tolist() if "bad" in recording.metrics else []
    assert all(np.isnan(v) for v in values)  # nothing that was never said
    assert values or said or recording.gaps


def test_settings_of_a_step_and_of_the_trial(tmp_path: Any) -> None:
    with strict_run(tmp_path, config={"lr": 0.1}) as run:
        run.config(layers=[1, 2])
        with run.step() as step:
            step.config(lr=0.05, phase="warm-up")
            step.config(phase="main")
    recording = recorded(run)
    assert recording.config["lr"] == 0.1
    assert recording.config["layers"] == [1, 2]
    assert recording.steps[0].config == {"lr": 0.05, "phase": "main"}


@pytest.mark.parametrize("value", [torch.tensor(0.5), np.float32(0.5), torch.float32, object(), {1, 2}, lambda: 0])
def test_settings_of_any_kind_do_not_stop_training(tmp_path: Any, value: Any) -> None:
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1, config={"odd": value, "good": 1}) as run:
        run.config(odder=value, better=2)
        with run.step() as step:
            step.config(oddest=value, best=3)
            step.tag("tensor", torch.ones(3))
    recording = recorded(run)
    assert recording.config["good"] == 1
    assert recording.config["better"] == 2
    assert recording.steps[0].config["best"] == 3
    assert recording.nodes == ["tensor"]


def test_notes_say_when(tmp_path: Any) -> None:
    before = time.time()
    with strict_run(tmp_path) as run:
        run.note("begin")
        for n in range(3):
            with run.step():
                if n == 1:
                    run.note("lr halved — ½")
        run.note("done")
    notes = recorded(run).notes
    assert [(note.step, note.text) for note in notes] == [(-1, "begin"), (1, "lr halved — ½"), (2, "done")]
    assert all(before <= note.time <= time.time() for note in notes)


def test_mistakes_in_a_step_become_gaps(tmp_path: Any) -> None:
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run, run.step() as step:
        step.tag("good", torch.ones(3))
        assert step.tag("list", [1, 2]) == [1, 2]
        step.tag("kind", torch.ones(3), kind="weird")
        step.link("nowhere", "good")
        step.link(object(), torch.ones(2))
    recording = recorded(run)
    assert recording.nodes == ["good"]
    reasons = " ".join(gap.node + gap.reason for gap in recording.gaps)
    assert "list" in reasons
    assert "input, target, loss, computed" in reasons
    assert len(said) >= 2
    assert gaps_of(recording, "good") == []


def test_mistakes_raise_when_strict(tmp_path: Any) -> None:
    with endoscope.Run(tmp_path, trial="trial", when=1, strict=True) as run, run.step() as step:
        with pytest.raises(EndoscopeError, match="list"):
            step.tag("list", [1, 2])
        with pytest.raises(EndoscopeError, match="input, target, loss, computed"):
            step.tag("kind", torch.ones(3), kind="weird")


def test_steps_do_not_nest(tmp_path: Any) -> None:
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run, run.step(1) as outer:
        outer.tag("a", torch.ones(3))
        with run.step(2) as inner:
            inner.tag("b", torch.ones(3))
        outer.tag("c", torch.ones(3))
    recording = recorded(run)
    assert numbers(recording) == [1]
    assert recording.nodes == ["a", "c"]
    assert len(said) == 1 and "nest" in said[0]


def test_a_step_without_a_model(tmp_path: Any) -> None:
    """Plain functions and tensors: everything that is tagged, with its edges."""
    weight = torch.randn(3, 2, requires_grad=True)
    with strict_run(tmp_path) as run, run.step() as step:
        x = step.tag("x", torch.randn(4, 3), kind="input")
        y = step.tag("y", x @ weight)
        step.tag("loss", y.square().mean(), kind="loss").backward()
    recording = recorded(run)
    assert edges(recording) >= {("x", "y"), ("y", "loss")}
    assert "gradient:loss" in {key.of for key in recording.tensors_of("y")}

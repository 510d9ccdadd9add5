"""`run.watch(model, optimizer)`: a plain loop needs nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import BadArgument
from tests.contract.recording.helpers import (
    batches,
    complaints,
    mlp,
    numbers,
    plain_step,
    recorded,
    same,
    sgd,
    simple_loop,
    strict_run,
)


def test_every_step_of_a_plain_loop_is_one_step(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 4)
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3]
    assert [step.passes for step in recording.steps] == [1] * 4
    assert [step.type for step in recording.steps] == [""] * 4
    assert all(step.recording_seconds > 0 for step in recording.steps)
    assert recording.gaps == []


def test_what_is_watched_without_being_asked_for(tmp_path: Any) -> None:
    """Outputs of every module, inputs, parameters, buffers, gradients on all of them, the updates."""
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Sequential(nn.ReLU(), nn.Linear(8, 3)))
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
    recording = recorded(run)
    of = {node: {key.of for key in recording.tensors_of(node)} for node in recording.nodes}
    for module in ("0", "1", "2", "2.0", "2.1"):
        assert of[module] == {"value", "gradient:loss"}, module
    for parameter, _ in model.named_parameters():
        assert of[parameter] == {"parameter", "gradient:loss", "update"}, parameter
    for buffer, _ in model.named_buffers():
        assert of[buffer] == {"value"}, buffer
    assert of["input"] == {"value"}
    assert of["loss"] == {"value", "gradient:loss"}


def test_a_run_without_an_optimizer_finds_it_by_itself(tmp_path: Any) -> None:
    model = mlp()
    optimizer, other = sgd(model), sgd(mlp())
    with strict_run(tmp_path) as run:
        run.watch(model)
        for x, y in batches(3):
            other.step()  # it trains another model, and ends no step of this one
            plain_step(model, optimizer, x, y)
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2]
    assert "update" in {key.of for key in recording.tensors_of("0.weight")}


def test_accumulation_is_one_step_of_several_passes(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        for _ in range(2):
            optimizer.zero_grad()
            for x, y in batches(3):
                nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1]
    assert [step.passes for step in recording.steps] == [3, 3]
    for number, (x, _) in enumerate(batches(3)):
        assert same(recording.tensor("input", 0, pass_=number + 1), x)


def test_gradient_accumulation_adds_up(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        optimizer.zero_grad()
        for x, y in batches(3):
            nn.functional.cross_entropy(model(x), y).backward()
        total = [p.grad.clone() for p in model.parameters()]
        optimizer.step()
    recording = recorded(run)
    assert recording.steps[0].passes == 3
    for (name, _), expected in zip(model.named_parameters(), total, strict=True):
        assert np.allclose(recording.tensor(name, 0, of="gradient"), expected, atol=1e-7)
    assert sorted({key.pass_ for key in recording.tensors_of("1")}) == [1, 2, 3]


def test_several_models_and_optimizers(tmp_path: Any) -> None:
    """A GAN: each optimizer ends a step of its own."""
    maker, critic = mlp(2, 4, 3), mlp(3, 4, 1)
    optimizer_m, optimizer_c = sgd(maker), sgd(critic)
    with strict_run(tmp_path) as run:
        run.watch(maker, optimizer_m, name="maker")
        run.watch(critic, optimizer_c, name="critic")
        for _ in range(2):
            optimizer_c.zero_grad()
            critic(maker(torch.randn(4, 2)).detach()).mean().backward()
            optimizer_c.step()
            optimizer_m.zero_grad()
            (-critic(maker(torch.randn(4, 2)))).mean().backward()
            optimizer_m.step()
    recording = recorded(run)
    assert numbers(recording) == [0, 1, 2, 3]
    assert {"maker", "maker.0", "maker.0.weight", "critic.0", "critic.2.bias"} <= set(recording.nodes)
    updates = {
        node: recording.series(node, "norm", of="update").steps.tolist()
        for node in ("maker.0.weight", "critic.0.weight")
    }
    assert updates == {"maker.0.weight": [1, 3], "critic.0.weight": [0, 2]}


def test_models_without_names_get_different_ones(tmp_path: Any) -> None:
    models = [mlp(), mlp()]
    optimizers = [sgd(model) for model in models]
    with strict_run(tmp_path) as run:
        for model, optimizer in zip(models, optimizers, strict=True):
            run.watch(model, optimizer)
        for model, optimizer in zip(models, optimizers, strict=True):
            simple_loop(model, optimizer, 1)
    recording = recorded(run)
    assert len([node for node in recording.nodes if node.endswith("0.weight")]) == 2


def test_one_model_with_two_optimizers(tmp_path: Any) -> None:
    model = mlp()
    optimizers = [torch.optim.SGD(model[n].parameters(), lr=0.1) for n in (0, 2)]
    with strict_run(tmp_path) as run:
        run.watch(model, optimizers)
        with run.step():
            for x, y in batches(1):
                nn.functional.cross_entropy(model(x), y).backward()
            for optimizer in optimizers:
                optimizer.step()
    recording = recorded(run)
    for name in ("0.weight", "2.weight"):
        assert recording.statistics(name, 0, of="update")["norm"] > 0


def test_watch_returns_the_model(tmp_path: Any) -> None:
    model = mlp()
    with strict_run(tmp_path) as run:
        assert run.watch(model) is model


def test_close_at_the_end_of_a_block(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
        run.flush()
        assert not endoscope.open(run.path).closed
        assert numbers(endoscope.open(run.path)) == [0, 1]  # complete without close
    assert endoscope.open(run.path).closed
    run.close()  # once more does no harm
    simple_loop(model, optimizer, 1)
    assert numbers(endoscope.open(run.path)) == [0, 1]


def test_a_name_that_exists_gets_a_number(tmp_path: Any) -> None:
    paths = []
    for _ in range(3):
        with strict_run(tmp_path, trial="same") as run:
            paths.append(run.path)
    assert [path.rpartition("/")[2] for path in paths] == ["same", "same-2", "same-3"]
    assert list(endoscope.open(tmp_path)) == ["same", "same-2", "same-3"]


def test_what_takes_patterns_of_the_tracer(tmp_path: Any) -> None:
    """Also of single operations, that no module stands for."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 8)
            self.last = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            return self.last(torch.tanh(self.first(x)))

    model = Model()
    optimizer = sgd(model)
    hidden = []
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer, what=["tanh*", "last"])
        for x, y in batches(2):
            hidden.append(torch.tanh(model.first(x)).detach())
            plain_step(model, optimizer, x, y)
    recording = recorded(run)
    tanh = [node for node in recording.nodes if node.startswith("tanh")]
    assert len(tanh) == 1
    assert "last" in recording.nodes
    assert "first" not in recording.nodes
    assert same(recording.tensor(tanh[0], 1), hidden[1])
    assert recording.statistics(tanh[0], 1, of="gradient")["norm"] > 0


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("type:relu", {"relu_1"}),
        (["in:2"], {"2", "2.weight", "2.bias"}),
        (["0.weight", "1"], {"0.weight", "1"}),
        (["type:linear & !in:0"], {"linear_2"}),
        (["kind:parameter"], {"0.weight", "0.bias", "2.weight", "2.bias"}),
        (["*.bias"], {"0.bias", "2.bias"}),
        (["0 | 2"], {"0", "2"}),
        (["default", "type:relu"], {"0", "1", "2", "0.weight", "0.bias", "2.weight", "2.bias", "input", "output"}),
    ],
)
def test_patterns_of_every_kind(tmp_path: Any, what: Any, expected: set[str]) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer, what=what)
        simple_loop(model, optimizer, 2)
    recording = recorded(run)
    assert set(recording.nodes) - {"loss", "target"} == expected
    assert recording.gaps == []


def test_a_choice_for_one_model_is_none_for_another(tmp_path: Any) -> None:
    models = [mlp(), mlp()]
    optimizers = [sgd(model) for model in models]
    with strict_run(tmp_path) as run:
        run.watch(models[0], optimizers[0], what=["a.1"], name="a")
        run.watch(models[1], optimizers[1], name="b")
        for model, optimizer in zip(models, optimizers, strict=True):
            simple_loop(model, optimizer, 1)
    nodes = set(recorded(run).nodes)
    assert {node for node in nodes if node.startswith("a")} == {"a.1"}
    assert {"b.0", "b.0.weight", "b.1", "b.2"} <= nodes


def test_a_pattern_that_means_nothing_is_said(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with complaints() as said, endoscope.Run(tmp_path, trial="trial", when=1) as run:
        run.watch(model, optimizer, what=["0", "no.such.layer"])
        simple_loop(model, optimizer, 3)
    assert len(said) == 1 and "'no.such.layer'" in said[0]
    assert "no.such.layer" in recorded(run).gaps[0].reason
    with endoscope.Run(tmp_path, trial="trial") as run, pytest.raises(BadArgument, match=r"child_of\(0\)"):
        run.watch(model, optimizer, what=["child_of(0)"])
    with endoscope.Run(tmp_path, trial="trial") as run, pytest.raises(BadArgument, match="pattern"):
        run.watch(model, optimizer, what=[3])


def test_wrong_arguments_say_what_to_type(tmp_path: Any) -> None:
    with endoscope.Run(tmp_path, trial="errors") as run:
        with pytest.raises(BadArgument, match=r"nn\.Module"):
            run.watch(lambda x: x)  # type: ignore[arg-type]
        with pytest.raises(BadArgument, match="Optimizer"):
            run.watch(mlp(), "sgd")
        model = mlp()
        run.watch(model)
        with pytest.raises(BadArgument, match="already"):
            run.watch(model)
    with pytest.raises(BadArgument, match="closed"):
        run.watch(mlp())
    with pytest.raises(BadArgument, match="keep"):
        endoscope.Run(tmp_path, trial="errors", keep="a lot")
    with pytest.raises(BadArgument, match="every"):
        endoscope.Run(tmp_path, trial="errors", when="often")
    with pytest.raises(BadArgument, match="budget"):
        endoscope.Run(tmp_path, trial="errors", budget=5)

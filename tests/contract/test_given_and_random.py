"""What the target is given, random generators that a trace keeps, and `seed=` wherever something runs again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope import edits
from endoscope.errors import BadArgument, CannotReplay, ValueNotKept

X = torch.arange(1.0, 13.0).reshape(3, 4)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x: Tensor, mask: Tensor | None = None, scale: float = 1.0) -> Tensor:
        return self.fc(x if mask is None else x * mask) * scale


# ---- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [X, (X,), {"x": X}])
def test_keyword_arguments_beside_the_inputs(inputs: Any) -> None:
    model, mask = Masked(), torch.zeros(3, 4)
    trace = endoscope.trace(model, inputs, mask=mask, scale=3.0)
    assert torch.equal(trace.result, model(X, mask=mask, scale=3.0))
    assert [op.path for op in trace.inputs] == ["x", "mask"]
    assert trace.validate()
    assert endoscope.validate(model, inputs, mask=mask, scale=3.0)


def test_an_argument_that_is_given_twice() -> None:
    with pytest.raises(BadArgument, match="x is in inputs and a keyword argument as well"):
        endoscope.trace(Masked(), {"x": X}, x=X)


def test_a_list_where_positional_arguments_were_meant() -> None:
    with pytest.raises(BadArgument, match=r"use a tuple: inputs=\(x,\) instead of inputs=\[x\]"):
        endoscope.trace(nn.Linear(4, 4), [X])


def test_a_list_is_one_argument_where_the_target_takes_one() -> None:
    assert torch.equal(endoscope.trace(lambda parts: parts[0] + parts[1], [X, X]).result, X * 2)


def test_gradients_that_were_not_asked_for() -> None:
    with pytest.raises(ValueNotKept, match="Trace with gradients=True"):
        _ = endoscope.trace(Masked(), X)["linear_1"].gradient


# ---- names ---------------------------------------------------------------------------------------------------------


def test_names_as_the_prose_of_the_paper_writes_them() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Conv2d(2, 2, 3), nn.MaxPool2d(2))
    trace = endoscope.trace(model, torch.rand(2, 1, 12, 12))
    assert trace["conv_2"] is trace["conv2d_2"] is trace["conv_2_4"] is trace["conv_2:1"]
    assert trace["maxpool_1"] is trace["max_pool2d_1"]
    assert trace["batchnorm_1"] is trace["batch_norm_1"]
    for wrong in ("conv_3", "conv_2_9", "convolution_1"):
        assert wrong not in trace


def test_batch_norm_in_training_is_all_that_its_module_does() -> None:
    trace = endoscope.trace(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train(), X)
    assert [op.place.is_whole_module for op in trace.ops] == [False, True, True, False]


# ---- random numbers ------------------------------------------------------------------------------------------------


def noisy(x: Tensor) -> Tensor:
    return F.dropout((torch.rand_like(x) + x) * 2, 0.5)


@pytest.mark.parametrize("save", ["all", "none"])
def test_generators_and_whether_they_were_used(save: str) -> None:
    own = torch.Generator().manual_seed(3)

    def target(x: Tensor) -> Tensor:
        return x * random.random() + torch.rand(4) + torch.rand(3, 4, generator=own)

    before = torch.get_rng_state(), random.getstate(), own.get_state()
    trace = endoscope.trace(target, X, save=save)
    kept = {state.generator: state for state in trace.random}
    assert {name for name, state in kept.items() if state.used} == {"cpu", "python", "generator 1"}
    assert torch.equal(kept["cpu"].state, before[0])
    assert kept["python"].state == before[1]
    assert torch.equal(kept["generator 1"].state, before[2])
    assert not kept["numpy"].used


def test_a_run_that_draws_nothing_uses_none() -> None:
    assert not any(state.used for state in endoscope.trace(torch.sin, X).random)
    assert endoscope.trace(lambda x: x * np.random.rand(), X).random[-1].used


def test_validate_with_a_seed() -> None:
    trace, before = endoscope.trace(noisy, X), torch.get_rng_state()
    assert endoscope.validate(noisy, X, seed=3)
    assert trace.validate(seed=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_rerun_with_a_seed_is_a_run_with_that_seed() -> None:
    trace = endoscope.trace(noisy, X)
    assert torch.equal(trace.rerun({}).result, trace.result)
    assert torch.equal(trace.rerun({}, seed=5).result, endoscope.trace(noisy, X, seed=5).result)
    change = {"mul_1": edits.scale(2)}
    assert torch.equal(trace.rerun(change, seed=5).result, endoscope.trace(noisy, X, seed=5, edit=change).result)


def test_a_rerun_without_one_repeats_the_numbers_of_the_trace() -> None:
    trace = endoscope.trace(noisy, X)
    rerun = trace.rerun({"mul_1": edits.scale(1)})
    assert torch.equal(rerun.result, trace.result)


def test_compare_with_a_seed() -> None:
    a, b = endoscope.trace(noisy, X), endoscope.trace(noisy, X)
    assert not endoscope.compare(a, b)
    assert endoscope.compare(a, b, seed=1)
    with endoscope.tracing() as block:
        noisy(X)
    with pytest.raises(CannotReplay, match="cannot be run again"):
        endoscope.compare(a, block, seed=1)


@pytest.mark.parametrize("ask", [endoscope.validate, lambda t, seed: t.rerun({}, seed=seed)])
def test_what_is_no_seed(ask: Any) -> None:
    with pytest.raises(BadArgument, match="is no seed"):
        ask(endoscope.trace(noisy, X), seed="one")

"""What is recorded of a tensor, compared with what torch and numpy compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import ValueNotKept
from tests.contract.recording.helpers import (
    STATISTICS,
    batches,
    close,
    complaints,
    gaps_of,
    mlp,
    plain_step,
    recorded,
    same,
    sgd,
    slow_statistics,
    strict_run,
)

ODD = {
    "normal": torch.randn(40, 25, generator=torch.Generator().manual_seed(1)),
    "skewed": torch.rand(3000, generator=torch.Generator().manual_seed(2)) ** 9 * 1e4,
    "one value": torch.full((7,), 3.25),
    "two zeros": torch.tensor([0.0, -0.0, 1.0]),
    "NaN and Inf": torch.tensor([float("nan"), float("inf"), float("-inf"), 1.0, 2.0]),
    "only NaN": torch.full((3,), float("nan")),
    "huge": torch.tensor([1e38, -3e38, 2e38]),
    "tiny": torch.tensor([1e-42, -1e-40, 1e-38]),
    "offset": 1e4 + torch.randn(500, generator=torch.Generator().manual_seed(3)),
    "double": torch.randn(100, dtype=torch.float64, generator=torch.Generator().manual_seed(4)) * 1e100,
    "half": torch.randn(100, generator=torch.Generator().manual_seed(5)).half(),
    "bfloat16": torch.randn(100, generator=torch.Generator().manual_seed(6)).bfloat16(),
    "int64": torch.randint(-1000, 1000, (50,), generator=torch.Generator().manual_seed(7)),
    "bool": torch.rand(50, generator=torch.Generator().manual_seed(8)) > 0.3,
    "uint8": torch.arange(256).to(torch.uint8),
    "complex": torch.complex(torch.arange(9.0), -torch.arange(9.0)),
    "transposed": torch.randn(13, 7, generator=torch.Generator().manual_seed(9)).t(),
    "strided": torch.randn(30, 30, generator=torch.Generator().manual_seed(10))[::2, ::3],
    "expanded": torch.randn(5, 1, generator=torch.Generator().manual_seed(11)).expand(5, 6),
    "0-d": torch.tensor(2.5),
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: Any) -> Any:
    with strict_run(tmp_path_factory.mktemp("odd"), keep=100) as run, run.step() as step:
        for name, tensor in ODD.items():
            step.tag(name, tensor, batch_dim=None)  # so each is kept whole
    return recorded(run)


@pytest.mark.parametrize("name", ODD)
def test_statistics_equal_their_slow_twins(odd: Any, name: str) -> None:
    found, expected = odd.statistics(name, 0), slow_statistics(ODD[name])
    for statistic in STATISTICS:
        assert odd.series(name, statistic).values[0] == found[statistic] or np.isnan(found[statistic])
        if statistic[0] != "q":
            assert np.allclose(found[statistic], expected[statistic], rtol=1e-5, atol=1e-30, equal_nan=True), statistic


@pytest.mark.parametrize("name", ODD)
def test_quantiles_are_near(odd: Any, name: str) -> None:
    """They may come from a histogram: never outside of the extremes, in order, and not far from the truth."""
    found, expected = odd.statistics(name, 0), slow_statistics(ODD[name])
    quantiles = [found[statistic] for statistic in STATISTICS if statistic[0] == "q"]
    if np.isnan(expected["min"]):
        assert np.isnan(quantiles).all()
        return
    assert all(np.diff(quantiles) >= 0)
    assert found["min"] <= quantiles[0] and quantiles[-1] <= found["max"]
    values = ODD[name].abs() if ODD[name].is_complex() else ODD[name]
    finite = values.to(torch.float64).flatten()
    finite = finite[finite.isfinite()].sort().values.numpy()
    for statistic in ("q05", "q50", "q95"):
        level = int(statistic[1:]) / 100
        below, above = (finite < found[statistic]).mean(), (finite <= found[statistic]).mean()
        slack = 0.02 + 1 / len(finite)
        near = np.isclose(found[statistic], expected[statistic], rtol=0.1)
        assert near or below - slack <= level <= above + slack, (statistic, found[statistic], expected[statistic])


@pytest.mark.parametrize("name", ODD)
def test_raw_values_are_the_tensor(odd: Any, name: str) -> None:
    tensor = ODD[name]
    if tensor.dtype is torch.bfloat16:
        assert np.array_equal(np.asarray(odd.tensor(name, 0), dtype=np.float32), tensor.float().numpy())
    else:
        assert same(odd.tensor(name, 0), tensor.contiguous())


@pytest.mark.parametrize("name", ODD)
def test_the_histogram_counts_what_is_finite(odd: Any, name: str) -> None:
    statistics, histogram = odd.statistics(name, 0), odd.histogram(name, 0)
    assert histogram.counts.sum() == statistics["count"] - statistics["nans"] - statistics["infs"]
    assert len(histogram.edges) == len(histogram.counts) + 1


def test_statistics_per_sample_and_over_the_batch(tmp_path: Any) -> None:
    tensor = torch.randn(6, 4, 5)
    tensor[2] = 0
    tensor[3, 1, 1] = float("nan")
    with strict_run(tmp_path) as run, run.step() as step:
        step.tag("x", tensor)
    recording = recorded(run)
    samples = recording.samples("x", 0)
    for sample in range(6):
        expected = slow_statistics(tensor[sample])
        for statistic in ("mean", "std", "abs_mean", "min", "max", "norm", "zeros", "nans", "infs"):
            assert close(samples[statistic][sample], expected[statistic], 1e-5), (sample, statistic)
    whole = tensor[torch.arange(6) != 3]
    with strict_run(tmp_path) as run, run.step() as step:
        step.tag("x", whole)
    recording = recorded(run)
    units = recording.units("x", 0)
    assert close(units["mean"], whole.mean(0), 1e-5)
    assert close(units["std"], whole.std(0, unbiased=False), 1e-5)
    assert close(units["abs_max"], whole.abs().amax(0), 1e-5)
    assert close(recording.series("x", "mean", sample=4).values, whole[4].mean(), 1e-5)
    assert close(recording.series("x", "std", unit=(1, 2)).values, whole[:, 1, 2].std(unbiased=False), 1e-5)


def test_values_are_those_of_the_moment(tmp_path: Any) -> None:
    """What the module returned, not what in-place operations made of it afterwards."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 8)
            self.act = nn.ReLU(inplace=True)
            self.last = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            hidden = self.act(self.first(x))
            out = self.last(hidden * 2)
            out[:, 0] += 1
            return out

    model = Model()
    optimizer = sgd(model)
    ((x, y),) = batches(1)
    with torch.no_grad():
        first = model.first(x.clone())
        hidden = first.relu()
        last = model.last(hidden * 2)
    with strict_run(tmp_path, keep=5) as run:
        run.watch(model, optimizer)
        out = model(x)
        returned = out.detach().clone()
        loss = nn.functional.cross_entropy(out * 1.0, y)
        loss.backward()
        out.detach().mul_(100)
        x.zero_()
        optimizer.step()
    recording = recorded(run)
    assert same(recording.tensor("first", 0), first)
    assert same(recording.tensor("act", 0), hidden)
    assert same(recording.tensor("last", 0), last)
    assert same(recording.tensor("output", 0), returned)
    ((expected, _),) = batches(1)
    assert same(recording.tensor("input", 0), expected)


def test_buffers_are_recorded(tmp_path: Any) -> None:
    model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
    optimizer = sgd(model)
    means = []
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        for x, y in batches(3):
            before = model[1].running_mean.clone()
            plain_step(model, optimizer, x, y)
            means.append((before, model[1].running_mean.clone()))
    recording = recorded(run)
    for step, (before, after) in enumerate(means):
        found = recording.tensor("1.running_mean", step)
        assert same(found, before) or same(found, after)
        assert recording.tensor("1.num_batches_tracked", step) in (step, step + 1)


def test_how_many_samples_are_kept(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    for keep in (0, 2, 50):
        with strict_run(tmp_path, keep=keep) as run:
            run.watch(model, optimizer)
            for x, y in batches(1, size=9):
                out = model(x).detach()
                plain_step(model, optimizer, x, y)
        recording = recorded(run)
        if keep == 0:
            with pytest.raises(ValueNotKept):
                recording.tensor("output", 0)
            continue
        chosen = list(recording.steps[0].raw_samples)
        assert len(chosen) == min(keep, 9)
        assert same(recording.tensor("output", 0), out[chosen])
        assert same(recording.tensor("output", 0, sample=chosen[-1]), out[chosen[-1]])


@pytest.mark.parametrize(
    ("limit", "word"), [("tensor_bytes", "one tensor"), ("step_bytes", "step's"), ("trial_bytes", "trial's")]
)
def test_a_limit_that_is_reached_is_said(tmp_path: Any, limit: str, word: str) -> None:
    with strict_run(tmp_path, keep={"samples": 4, limit: 200}) as run:
        for _ in range(2):
            with run.step() as step:
                step.tag("small", torch.ones(4, 2))
                step.tag("large", torch.ones(4, 100))
    recording = recorded(run)
    assert same(recording.tensor("small", 0), torch.ones(4, 2))
    with pytest.raises(ValueNotKept):
        recording.tensor("large", 0)
    assert any(word in reason and "200" in reason for reason in gaps_of(recording, "large"))
    assert recording.statistics("large", 1)["mean"] == 1.0  # statistics have no limit


def test_bytes_per_raw_float(tmp_path: Any) -> None:
    from pathlib import Path

    with strict_run(tmp_path, keep=1000) as run, run.step() as step:
        step.tag("x", torch.randn(1000, 1000))
    total = sum(file.stat().st_size for file in Path(run.path).rglob("*") if file.is_file())
    assert total / 1e6 <= 4.3


def test_a_tensor_that_is_overwritten_unheard_is_a_gap_or_true(tmp_path: Any) -> None:
    """numpy shares the memory and writes below torch: either the old value, or a gap, never the new one."""
    tensor = torch.ones(4, 3)
    array = tensor.numpy()
    with complaints(), endoscope.Run(tmp_path, trial="trial", when=1) as run, run.step() as step:
        step.tag("x", tensor.mul(1))
        y = step.tag("y", tensor + 1)
        torch.ops.aten.add_(y, 5)
    del array
    recording = recorded(run)
    if gaps_of(recording, "y"):
        assert "y" not in recording.nodes
    else:
        assert recording.statistics("y", 0)["mean"] == 2.0

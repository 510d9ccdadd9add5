"""Own anomalies as late policies: the steps that they keep, and that training does not notice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope import policies
from endoscope.analysis.user_rules import anomalies
from endoscope.errors import RecordingWarning
from endoscope.query.recording import Recording
from endoscope.recording.deciding.anomalies import OnAnomaly
from endoscope.recording.deciding.triggers import PATIENCE_STEPS

LARGE = (25, 26, 40)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    yield
    anomalies.clear()


def train(folder: Path, when: Any, steps: int = 50, **settings: Any) -> tuple[Recording, Any]:
    """Sample 3 of some batches is ten times too large."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    settings = {"strict": True, "keep": 1} | settings
    with endoscope.Run(folder, trial="trial", when=when, **settings) as run:
        run.watch(model, optimizer)
        for number in range(steps):
            inputs = torch.randn(32, 8)
            if number in LARGE:
                inputs[3] *= 10
            loss = nn.functional.cross_entropy(model(inputs), torch.randint(0, 3, (32,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return endoscope.open(run.path), [p.detach().clone() for p in model.parameters()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Every step."""
    return train(tmp_path_factory.mktemp("all"), 1)[0]


def test_the_steps_with_the_anomaly_are_kept_with_its_samples(tmp_path: Path) -> None:
    big = endoscope.anomaly("big X", "0: sample.norm > 8")
    recording, _ = train(tmp_path, policies.either(policies.at({2}), big))
    assert [step.number for step in recording.steps] == [2, *LARGE]
    assert [step.raw_samples for step in recording.steps[1:]] == [(3,)] * 3
    assert recording.steps[1].why == "big X: 0, sample.norm > 8"


@pytest.mark.parametrize(
    ("rule", "node", "of", "statistic"),
    [
        ("0: abs_max > {}", "0", "value", "abs_max"),
        ("0: q99 > {}", "0", "value", "q99"),
        ("0.weight of=gradient: norm > {}", "0.weight", "gradient", "norm"),
        ("type:linear & in:0 of=gradient: norm > {}", "0", "gradient", "norm"),
        ("0.weight of=update: norm > {}", "0.weight", "update", "norm"),
        ("2.weight: norm > {}", "2.weight", "value", "norm"),
    ],
)
def test_rules_mean_the_same_while_recording_and_afterwards(
    tmp_path: Path, whole: Recording, rule: str, node: str, of: str, statistic: str
) -> None:
    series = whole.series(node, statistic, of=of)
    limit = float(np.sort(series.values)[-3:-1].mean())  # true at two steps
    recording, _ = train(tmp_path, endoscope.anomaly("rule", rule.format(limit)))
    assert [step.number for step in recording.steps] == series.steps[series.values > limit].tolist()


def test_a_function_sees_the_same_while_recording_and_afterwards(tmp_path: Path) -> None:
    seen: dict[tuple[str, int], float] = {}

    def look_on(look: anomalies.Look) -> bool:
        seen[look.node, look.step] = float(look.samples["norm"][3])
        return look.statistics["abs_max"] > 8

    recording, _ = train(tmp_path, policies.either(1, endoscope.anomaly("fn", look_on, nodes="0 | 2")))
    live, seen = seen, {}
    endoscope.diagnose(recording.path)
    assert live.keys() == seen.keys() and len(seen) == 100
    assert all(live[key] == pytest.approx(seen[key]) for key in seen)


def test_training_is_the_same_with_and_without(tmp_path: Path) -> None:
    _, plain = train(tmp_path, policies.at({1}))
    rules = [
        "*: abs_max > 3",
        "* of=gradient: norm > 0",
        "* of=update: sample.norm > 1",
        "*.weight of=update: norm > 0",
    ]
    watchers = [endoscope.anomaly(f"rule {number}", rule) for number, rule in enumerate(rules)]
    _, watched = train(tmp_path, policies.either(*watchers))
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


def test_updates_are_recorded_right_after_somebody_looked_at_them(tmp_path: Path) -> None:
    plain, _ = train(tmp_path, 1)
    watched, _ = train(tmp_path, policies.either(1, endoscope.anomaly("moved", "*.weight of=update: norm > 0")))
    one, other = (r.series("0.weight", "norm", of="update").values for r in (plain, watched))
    assert (one == other).all()


def test_of_one_stretch_the_first_steps_are_kept(tmp_path: Path) -> None:
    recording, _ = train(tmp_path, endoscope.anomaly("always", "0: count > 1"))
    assert [step.number for step in recording.steps] == [0, 1, 2]


def test_one_object_in_two_runs(tmp_path: Path) -> None:
    always = endoscope.anomaly("always", "0: count > 1")
    for _ in range(2):
        assert len(train(tmp_path, always)[0].steps) == 3


def test_a_function_that_raises_does_not_stop_training(tmp_path: Path) -> None:
    def broken(look: anomalies.Look) -> bool:
        raise RuntimeError("no")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(tmp_path, endoscope.anomaly("broken", broken), strict=False)
    told = [str(one.message) for one in caught if issubclass(one.category, RecordingWarning)]
    assert len(told) == 1 and "RuntimeError: no" in told[0] and "anomaly('broken', broken)" in told[0]


def test_a_rule_about_nothing_is_told_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(tmp_path, endoscope.anomaly("typo", "encodr: max > 1"), strict=False, steps=PATIENCE_STEPS + 20)
    told = [str(one.message) for one in caught if issubclass(one.category, RecordingWarning)]
    assert len(told) == 1 and "'encodr' means" in told[0]


def test_types_of_step(tmp_path: Path) -> None:
    trigger = OnAnomaly(endoscope.anomaly("typed", "* type=long: max > 1"))
    look = anomalies.Look("a", "", 1, "value", "computed", 0, "long", {"max": 2.0}, {})
    asked = lambda where, samples: [look]  # noqa: E731
    assert trigger(policies.StepInfo(0, "long", metrics={}, held=asked)).keep
    assert not trigger(policies.StepInfo(1, "short", metrics={}, held=asked)).keep
    assert not trigger(policies.StepInfo(2, "long", metrics={})).keep  # nothing was held


def test_the_name_in_lists() -> None:
    big = endoscope.anomaly("big X", "0: max > 1")
    assert repr(policies.either(big, 50)) == "either(anomaly('big X', '0: max > 1'), every(50))"

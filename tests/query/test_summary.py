"""A trial in a few numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import endoscope
from endoscope.query import places
from endoscope.query.recording import Recording
from endoscope.query.series import Series
from endoscope.query.summary import CURVE_POINTS, loss_among, summarise, thinned
from tests.store.made_up import write_trial


def test_last_and_extreme_values_and_how_far_it_came(tmp_path: Path) -> None:
    with endoscope.Run(tmp_path, trial="t", when=2, strict=True) as run:
        for number, value in enumerate([3.0, 1.0, 2.0, math.nan]):
            with run.step(number) as step:
                step.metric("train/loss", value)
                step.metric("accuracy", number / 10)
    found = summarise(Recording(run.path))
    assert (found.loss, found.trained_to, found.closed) == ("train/loss", 3, True)
    metrics = {one.name: one for one in found.metrics}
    assert math.isnan(metrics["train/loss"].last)
    assert (metrics["train/loss"].lowest, metrics["train/loss"].highest) == (1.0, 3.0)
    assert metrics["accuracy"].last == pytest.approx(0.3)
    assert found.curve_steps.tolist() == [0, 1, 2, 3] and math.isnan(found.curve_values[3])


def test_steps_and_bytes_follow_from_the_journal(tmp_path: Path) -> None:
    path = write_trial(tmp_path, "t", range(5))
    recording = Recording(path)
    found = summarise(recording)
    assert (found.steps, found.last_step) == (5, recording.steps[-1].number)
    there = sum(file.stat().st_size for file in path.rglob("*") if file.suffix in (".arrow", ".safetensors"))
    graphs = sum(file.stat().st_size for file in path.glob("rank-0/graphs/*.json"))
    assert found.size == there + graphs + (path / "trial.json").stat().st_size
    assert places.has_ended(path) and not places.has_ended(tmp_path)


def test_a_curve_is_thinned_by_means_and_nan_is_never_averaged_away() -> None:
    values = np.arange(1000.0)
    values[500] = math.nan
    steps, means = thinned(Series(np.arange(1000), values, np.full(1000, "")))
    assert len(steps) == len(means) == CURVE_POINTS and np.count_nonzero(np.isnan(means)) == 1
    assert means[0] == pytest.approx(np.mean(np.arange(7))) and steps[-1] == 999
    assert thinned(Series(np.arange(3), values[:3], np.full(3, "")))[1].tolist() == [0, 1, 2]


def test_which_metric_stands_for_how_training_goes() -> None:
    assert loss_among(["accuracy", "val_loss", "loss"], ()) == "loss"
    assert loss_among(["accuracy", "Val_Loss"], ()) == "Val_Loss"
    assert loss_among(["a", "reward"], ["reward"]) == "reward"
    assert loss_among(["a"], ()) == "a" and loss_among([], ()) is None

"""Real jobs of two pipeline stages: each process records what plain hooks see, and the trial shows both stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import endoscope
from tests.end_to_end.conftest import start
from tests.end_to_end.pipeline_jobs import MICRO_BATCHES, SCHEDULES, STEPS
from tests.end_to_end.rank_jobs import oracles


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline")
    start(2, Path(__file__).with_name("pipeline_jobs.py"), folder, *SCHEDULES)
    return folder


@pytest.fixture(params=SCHEDULES)
def job(request: pytest.FixtureRequest, jobs: Path) -> Path:
    return jobs / str(request.param)


def opened(job: Path) -> Any:
    return endoscope.open(job / "runs" / "trial")


def test_training_is_the_same_with_endoscope(job: Path) -> None:
    for oracle in oracles(job):
        assert oracle["losses"] == oracle["recorded"]["losses"]
        assert all(torch.equal(end, oracle["recorded"]["end"][name]) for name, end in oracle["end"].items())


def test_each_stage_is_recorded_as_plain_hooks_see_it(job: Path) -> None:
    for rank, oracle in enumerate(oracles(job)):
        recording = opened(job).rank(rank)
        assert [step.number for step in recording.steps] == list(range(STEPS))
        for (node, of), seen in oracle["results"].items():
            # Before the first step torch calls each stage once more, to learn shapes: that is no training.
            passes = seen[-STEPS * MICRO_BATCHES :]
            for place, expected in enumerate(passes):
                step, number = divmod(place, MICRO_BATCHES)
                found = recording.tensor(node, step, of=of, pass_=number + 1)
                assert np.array_equal(found, expected.numpy()), (rank, node, of, step, number)
        for step, gradients in enumerate(oracle["gradients"]):
            for name, gradient in gradients.items():
                assert np.array_equal(recording.tensor(name, step, of="gradient"), gradient.numpy())


def test_the_trial_shows_both_stages(job: Path) -> None:
    recording = opened(job)
    assert recording.ranks == [0, 1] and [step.number for step in recording.steps] == list(range(STEPS))
    addresses = {module["address"] for module in recording.modules["modules"]}
    assert {"embed", "act", "norm", "head"} <= addresses
    assert {"embed", "act", "norm", "head", "embed.weight", "head.weight"} <= set(recording.nodes)
    graph = recording.graph(STEPS - 1)
    names = [node["node"] for node in graph["nodes"]]
    edges = {(names[a], names[b]) for a, b, _ in graph["edges"]}
    assert {("embed", "act"), ("norm", "head"), ("embed.weight", "embed")} <= edges
    own = recording.rank(1).series("head", "std", pass_=1)
    assert recording.series("head", "std", pass_=1).values.tolist() == own.values.tolist()


def test_a_healthy_pipeline_has_no_findings(job: Path) -> None:
    assert [one.check for one in endoscope.diagnose(job / "runs" / "trial") if one.severity == "error"] == []

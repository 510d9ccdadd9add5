"""The demo's bug is found in the trial that has it, and nothing is found in the other."""

from __future__ import annotations

from pathlib import Path

import pytest

import endoscope
from endoscope.demo import training
from endoscope.demo.training import Settings


@pytest.mark.parametrize("trial", training.TRIALS)
def test_the_bug_of_the_demo(trial: str, tmp_path: Path) -> None:
    settings = Settings(steps=60)
    with training.begin_run(tmp_path, trial, settings) as run:
        training.train(run, settings, activate_last=training.TRIALS[trial], say=lambda text: None)
    found = [finding for finding in endoscope.diagnose(run.path) if finding.severity != "info"]
    if trial == "repaired":
        assert [str(finding) for finding in found] == []
    else:
        assert (found[0].check, found[0].node) == ("asymmetric_range", "answer.leaky_relu_2")
        assert found[0].source.rpartition(":")[0].endswith("network.py")
        assert found[0].value < 0.2 < found[0].threshold

"""Real jobs of two processes with a fault planted in one of them, and the same job without: what `check` says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import endoscope
from tests.end_to_end.conftest import start
from tests.end_to_end.rank_faults import BAD_STEP, FAULTS

OF_RANKS = {
    "lost_ranks", "outlying_rank", "ranks_drift_apart", "ranks_see_same_data", "straggler", "unsynchronised_gradients",
}  # fmt: skip
#: How long things take depends on the machine: only a job in which one process sleeps is sure to have one that is slow.
NOT_TIMED = OF_RANKS - {"straggler"}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    start(2, Path(__file__).with_name("rank_faults.py"), folder, *FAULTS)
    return folder


def found(jobs: Path, fault: str) -> dict[str, endoscope.Finding]:
    """What the checks of ranks say of a trial."""
    return {one.check: one for one in endoscope.diagnose(jobs / fault) if one.check in OF_RANKS}


def test_the_healthy_job(jobs: Path) -> None:
    assert not found(jobs, "healthy").keys() & NOT_TIMED


def test_a_process_that_changes_a_parameter_by_itself(jobs: Path) -> None:
    by_check = found(jobs, "drift")
    assert by_check.keys() & NOT_TIMED == {"ranks_drift_apart"}
    assert by_check["ranks_drift_apart"].node == "module.0.weight"
    assert by_check["ranks_drift_apart"].severity == "error" and by_check["ranks_drift_apart"].first_step == 1


def test_a_module_that_is_called_around_its_wrapper(jobs: Path) -> None:
    finding = found(jobs, "around")["unsynchronised_gradients"]
    assert finding.severity == "error" and finding.of == "gradient" and finding.first_step == 0
    assert "ddp.module(x)" in " ".join(finding.causes)


def test_data_that_nobody_divides(jobs: Path) -> None:
    by_check = found(jobs, "same_data")
    assert by_check.keys() & NOT_TIMED == {"ranks_see_same_data"}
    assert "all ranks have the same batch at 100%" in by_check["ranks_see_same_data"].detail


def test_one_process_whose_gradient_stands_out(jobs: Path) -> None:
    by_check = found(jobs, "outlier")
    assert by_check.keys() & NOT_TIMED == {"outlying_rank"}
    finding = by_check["outlying_rank"]
    assert "of rank 1 is" in finding.title and finding.first_step == finding.last_step == BAD_STEP
    assert "in micro-batch 2 of 2" in finding.detail


def test_one_process_that_all_wait_for(jobs: Path) -> None:
    finding = found(jobs, "straggler")["straggler"]
    assert finding.title.startswith("rank 1 is slow") and "waiting for data" in finding.detail


def test_the_command_says_it(jobs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "endoscope", "check", jobs / "drift"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2 and "parameters drift apart" in done.stdout

"""Checks that compare the ranks of a job: which rank, at which step, and silence about healthy jobs."""

from __future__ import annotations

from pathlib import Path

import torch

import endoscope
from endoscope.findings.finding import ERROR
from tests.findings import ranks

OF_RANKS = (
    "lost_ranks", "outlying_rank", "ranks_drift_apart", "ranks_see_same_data", "straggler", "unsynchronised_gradients",
)  # fmt: skip


def _found(path: Path) -> dict[str, endoscope.Finding]:
    return {finding.check: finding for finding in endoscope.diagnose(path)}


def test_a_healthy_job(tmp_path: Path) -> None:
    assert set(_found(ranks.write(tmp_path))) & {*OF_RANKS, "lost_parts", "lost_steps", "no_steps"} == set()


def test_drift(tmp_path: Path) -> None:
    found = _found(ranks.drifting(tmp_path))
    finding = found["ranks_drift_apart"]
    assert finding.severity == ERROR and finding.node == "w" and finding.first_step == 1
    assert "unsynchronised_gradients" not in found


def test_gradients_that_nobody_averages(tmp_path: Path) -> None:
    found = _found(ranks.unsynchronised(tmp_path))
    assert found["unsynchronised_gradients"].node == "w" and found["unsynchronised_gradients"].of == "gradient"
    assert "ranks_drift_apart" not in found


def test_equal_data(tmp_path: Path) -> None:
    found = _found(ranks.same_data(tmp_path))
    assert found["ranks_see_same_data"].node == "input" and "all ranks" in found["ranks_see_same_data"].detail


def test_two_ranks_with_equal_data(tmp_path: Path) -> None:
    path = ranks.write(tmp_path, data=lambda rank, step: ranks.batch(min(rank, 2), step))
    assert "ranks 2, 3 have the same batch" in _found(path)["ranks_see_same_data"].detail


def test_which_rank_and_which_micro_batch(tmp_path: Path) -> None:
    finding = _found(ranks.one_bad_shard(tmp_path))["outlying_rank"]
    assert finding.title.startswith("the loss of rank 3 is ") and finding.title.endswith(" at step 7")
    assert finding.first_step == finding.last_step == 7
    assert "in micro-batch 2 of 2" in finding.detail


def test_a_gradient_that_is_not_finite(tmp_path: Path) -> None:
    def own(rank: int, step: int) -> torch.Tensor:
        return ranks.local(rank, step) * (float("nan") if (rank, step) == (1, 4) else 1.0)

    finding = _found(ranks.write(tmp_path, own=own))["outlying_rank"]
    assert (
        finding.title == "the local gradient of rank 1 is not finite at step 4"
        and finding.severity == ERROR
        and finding.first_step == 4
    )


def test_the_slow_rank(tmp_path: Path) -> None:
    finding = _found(ranks.slow(tmp_path))["straggler"]
    assert finding.title.startswith("rank 1 is slow") and "waiting for data" in finding.detail


def test_a_rank_that_was_killed(tmp_path: Path) -> None:
    finding = _found(ranks.killed(tmp_path))["lost_ranks"]
    assert "of 9 of 12 recorded steps there is nothing of rank 1." in finding.detail.lower()
    assert "lost_ranks" not in {one.check for one in endoscope.diagnose(tmp_path / "trial", rank=0)}


def test_ranks_that_nothing_ties_together(tmp_path: Path) -> None:
    assert _found(ranks.untied(tmp_path))["lost_ranks"].title == "ranks that nothing ties together"


def test_one_rank_by_itself_is_not_compared(tmp_path: Path) -> None:
    path = ranks.drifting(tmp_path)
    found = endoscope.open(path).rank(2)
    assert found.ranks == [2]

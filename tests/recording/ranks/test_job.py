"""Which job a process belongs to, by what launchers leave in its environment."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch.distributed as dist

from endoscope.recording.ranks import job


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "GROUP_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(job, "_runs", type(job._runs)())


def say(monkeypatch: pytest.MonkeyPatch, **words: Any) -> None:
    for name, value in words.items():
        monkeypatch.setenv(name, str(value))


def test_a_process_alone_is_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    assert job.member_of("runs/x") == (None, "")
    say(monkeypatch, SLURM_JOB_ID=7, SLURM_STEP_ID=0, SLURM_PROCID=1)  # tasks may be separate trainings
    assert job.member_of("runs/x") == (None, "")
    say(monkeypatch, RANK=0, WORLD_SIZE=1, TORCHELASTIC_RUN_ID="a")
    assert job.member_of("runs/x") == (None, "")


def test_torchrun_names_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, RANK=1, WORLD_SIZE=2, TORCHELASTIC_RUN_ID="a")
    member, problem = job.member_of("runs/x")
    assert member is not None and not problem
    assert (member.rank, member.world_size, member.job) == (1, 2, "torchrun a")


def test_another_run_of_that_name_is_another_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, RANK=1, WORLD_SIZE=2, TORCHELASTIC_RUN_ID="a")
    members = [job.member_of(place)[0] for place in ("runs/x", "runs/x", "runs/y")]
    jobs = [member.job for member in members if member is not None]
    assert jobs == ["torchrun a", "torchrun a run 2", "torchrun a"]


def test_torchrun_without_an_id_is_known_by_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, RANK=1, WORLD_SIZE=2, TORCHELASTIC_RUN_ID="none", GROUP_WORLD_SIZE=1)
    first, second = (job.member_of(place)[0] for place in ("runs/x", "runs/y"))
    assert first is not None and second is not None and first.job == second.job != "torchrun none"


def test_on_several_machines_somebody_has_to_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, RANK=1, WORLD_SIZE=4, TORCHELASTIC_RUN_ID="none", GROUP_WORLD_SIZE=2)
    found = [job.member_of(place) for place in ("runs/x", "runs/y")]
    assert all("start torchrun with --rdzv-id" in problem for _, problem in found)
    assert len({member.job for member, _ in found if member is not None}) == 2  # a trial of its own


def test_slurm_names_its_job_where_processes_have_met(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, SLURM_JOB_ID=7, SLURM_STEP_ID=2, SLURM_PROCID=1)
    monkeypatch.setattr(job, "_rank_and_size", lambda: (1, 2))
    member, _ = job.member_of("runs/x")
    assert member is not None and member.job == "slurm 7.2"


def test_rank_0_puts_a_word_into_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dist.HashStore()
    found: dict[int, str] = {}

    def ask(rank: int) -> None:
        found[rank], _ = job._from_store(store, rank, "key", f"word of {rank}")

    waiting = threading.Thread(target=ask, args=(1,))
    waiting.start()
    ask(0)
    waiting.join()
    assert found == {0: "word of 0", 1: "word of 0"}


def test_who_waits_in_vain_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "WAIT_SECONDS", 0.1)
    own, problem = job._from_store(dist.HashStore(), 1, "key", "job")
    assert own.startswith("job ") and len(own) > len("job ")
    assert problem.startswith("rank 1 has waited 0.1 seconds for rank 0") and "enabled=rank == 0" in problem

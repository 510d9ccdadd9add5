"""Processes of a job that are killed, start again, come late, or belong to another job of the same name."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import endoscope
from endoscope.cli import main as endoscope_command
from endoscope.query.recording import Recording
from endoscope.store import description, paths
from endoscope.store.reader import RankReader
from tests.end_to_end.rank_lives import KILLED_AFTER

LIVES = Path(__file__).with_name("rank_lives.py")


def environment(**words: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "TORCHELASTIC"))}
    return known | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)} | words


def process(root: Path, rank: int, job: str, *words: str, steps: int = 3) -> subprocess.Popen[str]:
    """A process as torchrun starts them; they need not meet."""
    env = environment(RANK=str(rank), WORLD_SIZE="2", TORCHELASTIC_RUN_ID=job)
    command = [sys.executable, LIVES, root, str(steps), *words]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


def ended(*processes: subprocess.Popen[str]) -> None:
    for one in processes:
        _, said = one.communicate(timeout=300)
        assert one.returncode == 0, said


def torchrun(root: Path, *options: Any, words: list[str], steps: int = 8) -> None:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        *options,
        LIVES,
        root,
        str(steps),
        *words,
    ]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


def steps_of(trial: Path, rank: int, attempt: int = 0) -> list[int]:
    reader = RankReader(trial, rank, attempt)
    reader.refresh()
    assert not reader.problems
    return [int(number) for number in reader.table("steps")["step"].to_pylist()]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def meeting(root: Path, steps: int, *words: str, **options: Any) -> list[subprocess.Popen[str]]:
    """Two processes that meet, and that no launcher ends together."""
    port = str(free_port())
    command = [sys.executable, LIVES, root, str(steps), "MEET", *words]
    places = [{"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port} for rank in "01"]
    return [
        subprocess.Popen(command, env=environment(**place), stderr=subprocess.PIPE, text=True, **options)
        for place in places
    ]


@pytest.mark.parametrize("options", [["--standalone"], ["--master-addr=localhost", "--master-port={}"]])
def test_a_killed_process_and_all_that_are_started_again(tmp_path: Path, options: list[str]) -> None:
    """Also where torchrun was given no id, and calls all its jobs "none"."""
    torchrun(tmp_path, *(o.format(free_port()) for o in options), "--max-restarts=1", words=["KILL"])
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    trial = tmp_path / "x"
    assert paths.ranks_of(trial) == [0, 1]
    for rank in (0, 1):
        assert paths.attempts_of(trial, rank) == [0, 1]
        first = steps_of(trial, rank)
        assert first == list(range(len(first))) and len(first) >= KILLED_AFTER
        assert steps_of(trial, rank, attempt=1) == list(range(8))


def test_a_process_that_is_killed_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    first, second = process(tmp_path, 0, "a", steps=8), process(tmp_path, 1, "a", "KILL", steps=8)
    ended(first)
    second.communicate(timeout=300)
    assert second.returncode == -signal.SIGKILL
    assert steps_of(tmp_path / "x", 0) == list(range(8))
    left = steps_of(tmp_path / "x", 1)
    assert left == list(range(len(left))) and len(left) >= KILLED_AFTER
    ended(process(tmp_path, 1, "a", steps=8))
    assert steps_of(tmp_path / "x", 1, attempt=1) == list(range(8))
    assert steps_of(tmp_path / "x", 1) == left


def test_a_process_that_is_killed_while_all_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = meeting(tmp_path, 1000, "LIVE", stdout=subprocess.PIPE)
    done = [[int(line.split()[1]) for line in one.communicate(timeout=300)[0].splitlines()] for one in (first, second)]
    assert second.returncode == -signal.SIGKILL and first.returncode == 1  # the other one was missing
    assert done[1] == list(range(KILLED_AFTER + 1)) and done[0][: KILLED_AFTER + 1] == done[1]
    recording = endoscope.open(tmp_path / "x")
    assert isinstance(recording, Recording) and not recording.problems and recording.verify()
    of_rank = [[step.number for step in recording.rank(rank).steps] for rank in (0, 1)]
    assert of_rank[0][: len(done[0])] == done[0]
    assert of_rank[1] == list(range(len(of_rank[1]))) and len(of_rank[1]) >= len(done[1]) - 1
    # What both have is whole, and what one lacks is a gap that names it.
    series = recording.series("module.weight", "norm", of="parameter")
    assert series.steps.tolist() == of_rank[0] and np.isfinite(series.values[: len(of_rank[1])]).all()
    lacks = [step for step in of_rank[0] if step not in of_rank[1]]
    assert np.isnan(series.values[len(of_rank[1]) :]).all() and len(lacks) == len(of_rank[0]) - len(of_rank[1])
    gaps = [gap.step for gap in recording.gaps if "rank 1 did not record it at this step" in gap.reason]
    assert set(gaps) == set(lacks)
    assert recording.rank(0).closed and not recording.rank(1).closed and not recording.closed
    assert endoscope_command(["ls", str(tmp_path)]) == 0
    assert "rank 1 ended early" in capsys.readouterr().out


def test_a_process_that_comes_late_and_another_job(tmp_path: Path) -> None:
    ended(process(tmp_path, 1, "a"))
    ended(process(tmp_path, 0, "a"))
    ended(process(tmp_path, 1, "another"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x-2"]
    assert paths.ranks_of(tmp_path / "x") == [0, 1] and paths.ranks_of(tmp_path / "x-2") == [1]
    assert steps_of(tmp_path / "x", 0) == steps_of(tmp_path / "x", 1) == [0, 1, 2]


def test_two_jobs_at_once(tmp_path: Path) -> None:
    ended(*(process(tmp_path, rank, job) for rank in (1, 0) for job in ("a", "b")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x-2"]
    jobs = [description.read(tmp_path / name)[0]["job"] for name in ("x", "x-2")]
    assert sorted(jobs) == ["torchrun a", "torchrun b"]
    for name in ("x", "x-2"):
        assert paths.ranks_of(tmp_path / name) == [0, 1]
        assert paths.attempts_of(tmp_path / name, 0) == paths.attempts_of(tmp_path / name, 1) == [0]


def test_a_job_that_no_launcher_names(tmp_path: Path) -> None:
    """Rank 0 puts a word into the store of the process group."""
    for _ in range(2):
        ended(*meeting(tmp_path, 2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x-2"]
    for name in ("x", "x-2"):
        assert paths.ranks_of(tmp_path / name) == [0, 1]
        assert steps_of(tmp_path / name, 1) == [0, 1]

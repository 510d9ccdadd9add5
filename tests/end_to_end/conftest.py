"""Jobs of several processes, each run once for all tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).with_name("rank_jobs.py")
TWO = ["ddp", "ddp-accumulation", "fsdp", "tp", "sequence", "sequence-summed", "replicas"]
FOUR = ["fsdp-tp", "hsdp"]


def start(processes: int, script: Path, *words: object) -> None:
    """Have torchrun start the processes, and wait for their end."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [*torchrun, script, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    start(2, JOBS, folder, *TWO)
    return folder


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("four")
    start(4, JOBS, folder, *FOUR)
    return folder


@pytest.fixture(params=[*TWO, *FOUR])
def job(request: pytest.FixtureRequest) -> Path:
    """The folder of one job: what an oracle has seen, and the recording."""
    folder: Path = request.getfixturevalue("two" if request.param in TWO else "four")
    return folder / request.param

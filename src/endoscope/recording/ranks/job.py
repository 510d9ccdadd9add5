"""Which job this process belongs to, and which of its processes it is.

    torchrun            ─► the id of its job; where that is "none", what it and its parent have in common
    Slurm               ─► the number of job and step, once the processes have met
    any other launcher  ─► a word that rank 0 puts into the store of the process group; the others wait for it

Without a process group, and without torchrun, a process is alone: tasks of Slurm may be separate trainings. Nothing
here is a collective, and nothing is asked again when training has begun.
"""

from __future__ import annotations

import datetime
import os
import socket
import uuid
from collections import Counter
from typing import Any

import torch

from endoscope.capture.patch.torch_private import default_store
from endoscope.store.joining import Member

WAIT_SECONDS = 10.0
_NO_ID = ("", "none")  # what torchrun says if it was given none

_runs: Counter[str] = Counter()  # that this process has begun, by folder and name


def member_of(place: str) -> tuple[Member | None, str]:
    """(which process of a job this is, or None if it is alone; a sentence if that is not certain).

    `place` is the folder and the name of the trial: a second run of that name is another trial, in all processes.
    """
    found = _rank_and_size()
    if found is None or found[1] == 1:
        return None, ""
    rank, size = found
    _runs[place] += 1
    suffix = f" run {_runs[place]}" if _runs[place] > 1 else ""
    job, problem = _job(rank, f"{place}{suffix}")
    return Member(rank, size, f"{job}{suffix}", socket.gethostname()), problem


def _rank_and_size() -> tuple[int, int] | None:
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    names = ("RANK", "WORLD_SIZE")
    if "TORCHELASTIC_RUN_ID" in os.environ and all(os.environ.get(name, "").isdecimal() for name in names):
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return None


def _job(rank: int, place: str) -> tuple[str, str]:
    given = os.environ.get("TORCHELASTIC_RUN_ID", "")
    if given not in _NO_ID:
        return f"torchrun {given}", ""
    step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID")
    if all(step) and "SLURM_PROCID" in os.environ:
        return f"slurm {step[0]}.{step[1]}", ""
    own = _own_word(given)
    store = default_store()
    if store is not None:
        return _from_store(store, rank, f"endoscope {place}", own)
    if given and os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
        return own, ""  # all processes have the same parent
    return f"{own} {uuid.uuid4()}", _NOT_MET.format(rank=rank)


def _own_word(given: str) -> str:
    """Of a job: processes that torchrun has started again on this machine find the same one."""
    return f"torchrun {socket.gethostname()} {_parent()}" if given else f"job {uuid.uuid4()}"


def _parent() -> str:
    """The number of the parent process and, where the system tells, when it began: numbers are used again."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", encoding="utf-8", errors="replace") as file:
            return f"{parent} {file.read().rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return str(parent)


def _from_store(store: Any, rank: int, key: str, own: str) -> tuple[str, str]:
    try:
        if rank == 0:
            store.set(key, own)
        else:
            store.wait([key], datetime.timedelta(seconds=WAIT_SECONDS))
        return store.get(key).decode(), ""
    except Exception as error:  # a store is whatever the process group was made with
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return f"{own} {uuid.uuid4()}", _NO_WORD.format(rank=rank, seconds=WAIT_SECONDS, reason=reason)


_NO_WORD = (
    "rank {rank} has waited {seconds:g} seconds for rank 0 to begin a run of this name, so it is recorded as a trial "
    "of its own. Make the endoscope.Run in every process, or in rank 0 only: endoscope.Run(…, enabled=rank == 0). "
    "({reason})"
)
_NOT_MET = (
    "rank {rank} cannot know which other processes belong to its job, so it is recorded as a trial of its own. Make "
    "the endoscope.Run after torch.distributed.init_process_group(), or start torchrun with --rdzv-id."
)

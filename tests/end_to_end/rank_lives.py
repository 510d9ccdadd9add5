"""One process of a job that may be killed: rank_lives.py ROOT STEPS [MEET] [KILL] [LIVE].

LIVE: rank 1 is killed in the middle of training, and rank 0 trains on until it notices; each says what it has done.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import endoscope

KILLED_AFTER = 5  # steps


def main(root: str, steps: int, *, meet: bool, kill: bool, live: bool) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model: nn.Module = nn.Linear(3, 2)
    if meet:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    is_first_life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = endoscope.Run(root, trial="x", when=1)
    run.watch(model, optimizer)
    for number in range(steps):
        model(torch.ones(4, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if live:
            print(f"done {number}", flush=True)
            if number == KILLED_AFTER and os.environ["RANK"] == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            continue
        if number == KILLED_AFTER - 1:
            run.flush()
        if kill and is_first_life and number == KILLED_AFTER:
            if os.environ["RANK"] == "1":
                wait_for_rank_0(Path(root, "x", "rank-0", "journal.jsonl"))
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)  # until torchrun ends it
    run.close()
    if meet:
        dist.destroy_process_group()


def wait_for_rank_0(journal: Path) -> None:
    while not journal.exists() or f'"step":{KILLED_AFTER - 1}' not in journal.read_text():
        time.sleep(0.05)


if __name__ == "__main__":
    words = sys.argv[3:]
    main(sys.argv[1], int(sys.argv[2]), meet="MEET" in words, kill="KILL" in words, live="LIVE" in words)

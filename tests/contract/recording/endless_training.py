"""Trains for ever in a child process, kills it at a random moment, and reads meanwhile; as often as it is told to.

Prints one line of JSON for each child. Run as a program: python endless_training.py ROOT TIMES SEED
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from typing import Any

import numpy as np
import torch

import endoscope
from tests.contract.recording.helpers import batches, mlp, plain_step, sgd, simple_loop


def train_for_ever(root: str, trial: str, told: int) -> None:
    model = mlp()
    optimizer = sgd(model)
    run = endoscope.Run(root, trial=trial, when=1, keep=5)
    run.watch(model, optimizer)
    number = 0
    while True:
        for x, y in batches(100):
            run.metric("loss", plain_step(model, optimizer, x, y))
            os.write(told, f"{number}\n".encode())
            number += 1


def check(recording: Any, step: Any) -> None:
    """All of a step is there, and its parts fit together."""
    rows = recording.sql(f"select count(*) from stats where step = {step.number}").fetchall()[0][0]
    assert rows == step.tensors, (step.number, rows, step.tensors)
    check_values(recording, step)


def check_values(recording: Any, step: Any) -> None:
    for node, of in (("output", "value"), ("0.weight", "update"), ("2", "gradient"), ("loss", "value")):
        values = recording.tensor(node, step.number, of=of)
        found = recording.statistics(node, step.number, of=of)
        assert np.isclose(values.mean(), found["mean"], rtol=1e-4, atol=1e-7), (step.number, node)
    assert recording.graph(step.number)["hash"] == step.graph


def look(path: str) -> int:
    """What a reader sees at any moment is whole."""
    if not os.path.exists(os.path.join(path, "trial.json")):
        return 0
    recording = endoscope.open(path)
    steps = recording.steps
    assert [step.number for step in steps] == list(range(len(steps)))
    for step in steps[-2:]:
        check_values(recording, step)
    return len(steps)


def kill_one(root: str, trial: str, steps: int, seconds: float) -> dict[str, Any]:
    """Kill a child some time after so many steps: a busy machine takes longer for them."""
    path = os.path.join(root, trial)
    ear, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            train_for_ever(root, trial, told)
        finally:
            os._exit(1)
    os.close(told)
    looks, said, end = 0, b"", time.monotonic() + 60
    while said.count(b"\n") < steps and time.monotonic() < end:
        if select.select([ear], [], [], 0)[0]:
            said += os.read(ear, 1 << 20)
        look(path)
        looks += 1
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(ear, 1 << 20):
        said += part
    os.close(ear)
    recording = endoscope.open(path)
    for step in recording.steps[-10:]:
        check_values(recording, step)
    if recording.steps:
        check(recording, recording.steps[-1])
    problems = [str(problem) for problem in recording.verify().problems]
    finished = [int(line) for line in said.split(b"\n")[:-1]]
    found = [step.number for step in recording.steps]
    return {"finished": finished[-1], "found": found, "problems": problems, "looks": looks}


def main() -> None:
    root, times, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    generator = random.Random(seed)
    with endoscope.Run(root, trial="warm", when=1) as run:  # load the kernels once, for all children
        model = mlp()
        optimizer = sgd(model)
        run.watch(model, optimizer)
        simple_loop(model, optimizer, 2)
    for number in range(times):
        told = kill_one(root, f"killed-{number}", generator.randint(1, 25), generator.uniform(0, 0.02))
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

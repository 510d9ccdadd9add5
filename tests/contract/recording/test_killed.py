"""`kill -9` at random moments: every finished step but at most the last is there, whole, and verified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import endoscope
from tests.contract.recording.helpers import numbers

TIMES = 20
PROGRAM = Path(__file__).with_name("endless_training.py")


def start(*words: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = (sys.executable, *map(str, words))
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_killed_twenty_times_while_somebody_reads(tmp_path: Any) -> None:
    process = start(PROGRAM, tmp_path, TIMES, 1)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    told = [json.loads(line) for line in out.splitlines()]
    assert len(told) == TIMES
    assert sum(child["looks"] for child in told) > TIMES
    assert sum(child["finished"] for child in told) > 5 * TIMES
    for child in told:
        assert child["problems"] == []
        assert child["found"] == list(range(len(child["found"])))
        assert len(child["found"]) >= child["finished"], (child["finished"], len(child["found"]))


ENDINGS = """
import os, sys, torch, endoscope
from tests.contract.recording.helpers import mlp, sgd, simple_loop
torch.set_num_threads(1)

def train(trial):
    run = endoscope.Run(sys.argv[1], trial=trial, when=1)
    model = mlp()
    optimizer = sgd(model)
    run.watch(model, optimizer)
    simple_loop(model, optimizer, 3)
    return run, model

children = {}
for ending in ("end", "raise", "exit"):  # in a child each: importing torch takes longest
    child = os.fork()
    if child == 0:
        kept = train(ending)
        if ending == "raise":
            raise KeyError("nobody catches this")
        sys.exit(3 if ending == "exit" else 0)
    children[ending] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(children)
"""


def test_a_program_that_ends_without_close(tmp_path: Any) -> None:
    """At its end, by an exception that nobody catches, and by sys.exit: the trial is closed, all steps are there."""
    process = start("-c", ENDINGS, tmp_path)
    out, errors = process.communicate(timeout=120)
    assert out.strip() == "{'end': 0, 'raise': 1, 'exit': 3}", errors
    assert errors.count("Error") == 1 and "nobody catches this" in errors
    for ending in ("end", "raise", "exit"):
        recording = endoscope.open(tmp_path / ending)
        assert numbers(recording) == [0, 1, 2]
        assert recording.closed
        assert recording.verify()

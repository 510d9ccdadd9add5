"""Does a trace leave plain torch slower? Two processes that differ only in one earlier trace, in turns.

    this process ──fork──► twin, which never traces
        │ traces once        │
        ▼                    ▼
      measures, asks the twin to measure, measures, ... and forms the ratio inside each round

What a trace leaves behind cannot be undone, so one process cannot alternate. A fork has the memory layout of
its parent, which a separately started process does not, and that alone would move ``x[0]`` by percents.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection

import torch
from measure import Comparison, sample
from models import ResNet18
from torch.nn import functional as F

Work = Callable[[], object]
CALLS_PER_SAMPLE = 3


def plain_work() -> dict[str, Work]:
    """What is timed: short calls, where a wrapper shows most, and one whole forward pass."""
    x, image, model = torch.randn(4, 4), torch.randn(1, 3, 224, 224), ResNet18().eval()
    return {
        "x[0]": lambda: _repeat(lambda: x[0]),
        "torch.zeros": lambda: _repeat(lambda: torch.zeros(4)),
        "F.relu": lambda: _repeat(lambda: F.relu(x)),
        "ResNet-18": lambda: model(image),
    }


def after_a_trace(trace_once: Work, rounds: int) -> dict[str, Comparison]:
    """For each piece of work the times of both sides, "plain" and "traced".

    Must run before this process has traced anything.
    """
    work = plain_work()
    context = multiprocessing.get_context("fork")
    pipe, twins_end = context.Pipe()
    twin = context.Process(target=_serve, args=(twins_end, work), daemon=True)
    twin.start()
    try:
        trace_once()
        return {name: _compared(pipe, work, name, rounds) for name in work}
    finally:
        twin.kill()
        twin.join()


def _serve(pipe: Connection, work: Mapping[str, Work]) -> None:
    while True:
        pipe.send(sample(work[pipe.recv()], CALLS_PER_SAMPLE))


def _compared(pipe: Connection, work: Mapping[str, Work], name: str, rounds: int) -> Comparison:
    def plain() -> float:
        pipe.send(name)
        secs: float = pipe.recv()
        return secs

    def traced() -> float:
        return sample(work[name], CALLS_PER_SAMPLE)

    plain(), traced()  # warm-up
    secs: dict[str, list[float]] = {"plain": [], "traced": []}
    for number in range(rounds):
        sides = [("plain", plain), ("traced", traced)]
        for side, measured in reversed(sides) if number % 2 else sides:
            secs[side].append(measured())
    return Comparison({side: tuple(values) for side, values in secs.items()})


def _repeat(call: Work, times: int = 3000) -> None:
    for _ in range(times):
        call()

"""Measures once, in a process of its own: the peak of a recorded training, its start-up, how fast a recording is read.

    memory KEEP FOLDER    KEEP is a number of raw samples, or "plain" for no recording
    disk MODEL FOLDER     the bytes of a step, without raw values and with those of 5 samples
    startup FOLDER
    write FOLDER          1,000 steps of about 500 tensors
    read RECORDING

Only the first use in a process tells the truth about memory and start-up, so everything of ours is imported late.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 8
SAMPLES = 5
LONG_STEPS = 1000
LAYERS = 62  # of 8 tensors each: the output, weight and bias, the gradients of all three, the updates of both
SERIES_NODES = 20


def memory(keep: str, folder: str) -> dict[str, float]:
    """The highest resident size of the process, what loading and opening took of it, raw bytes of one step."""
    from memory_probe import status
    from training import CASES

    training = CASES[1].make()
    before, loaded, raw = status("VmRSS"), 0, 0.0
    if keep != "plain":
        run, loaded_after = _watched(training, folder, int(keep)), status("VmRSS")
        loaded = loaded_after - before
    for _ in range(STEPS):
        training.step()
    peak = status("VmHWM")
    if keep != "plain":
        from disk import raw_numbers

        run.close()
        raw = 4 * raw_numbers(Path(run.path)) / STEPS
    return {"peak": peak, "loaded": loaded, "raw": raw}


def disk(model: str, folder: str) -> dict[str, float]:
    """Bytes of a step with statistics alone, and what one with raw values takes more for each of its numbers."""
    from disk import folder_bytes, raw_numbers
    from training import select

    sizes, numbers = [], 0.0
    for keep in (0, SAMPLES):
        training = select(model)[0].make()
        run = _watched(training, folder, keep)
        for _ in range(STEPS):
            training.step()
        run.close()
        sizes.append(folder_bytes(Path(run.path)) / STEPS)
        numbers = raw_numbers(Path(run.path)) / STEPS
    return {"statistics": sizes[0], "per_number": (sizes[1] - sizes[0]) / numbers if numbers else float("nan")}


def startup(folder: str) -> dict[str, Any]:
    """Seconds of `endoscope.Run` and the first recorded step beyond a later one; training has warmed up before."""
    from training import CASES

    training = CASES[0].make()
    for _ in range(3):
        training.step()
    start = _clocks()
    run = _watched(training, folder, 0)
    opened = _clocks()
    training.step()
    first = _clocks()
    later = []
    for _ in range(9):
        run.flush()  # off the clock: the writer's work would be charged to a later step
        begin = _clocks()
        training.step()
        later.append([end - start for end, start in zip(_clocks(), begin, strict=True)])
    run.close()
    wall, cpu = (first[clock] - start[clock] - statistics.median(step[clock] for step in later) for clock in (0, 1))
    return {"wall": wall, "cpu": cpu, "opening": opened[0] - start[0]}


def write(folder: str) -> dict[str, Any]:
    """Records a long run of a network of many small layers, through the same calls as any user."""
    import torch
    from torch import nn
    from training import Training

    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(LAYERS)])
    training = Training(model, torch.randn(8, 8), torch.randint(0, 8, (8,)), batch=8)
    run = _watched(training, folder, 0)
    start = _clocks()
    for _ in range(LONG_STEPS):
        training.step()
    run.close()
    return {"path": run.path, "wall": _clocks()[0] - start[0], "cpu": _clocks()[1] - start[1]}


def read(path: str) -> dict[str, Any]:
    """Opens a recording and reads the mean of some nodes over all steps: median seconds of a series."""
    import endoscope

    start = time.perf_counter()
    recording = endoscope.open(path)
    steps, nodes = recording.steps, list(recording.nodes)
    opened = time.perf_counter() - start
    secs, lengths = [], []
    for node in nodes[:: max(1, len(nodes) // SERIES_NODES)]:
        start = time.perf_counter()
        lengths.append(len(recording.series(node, "mean").values))
        secs.append(time.perf_counter() - start)
    return {
        "open": opened,
        "steps": len(steps),
        "tensors": steps[-1].tensors,
        "first_series": secs[0],
        "series": statistics.median(secs[1:]),
        "shortest": min(lengths),
    }


def _watched(training: Any, folder: str, keep: int) -> Any:
    import endoscope

    run = endoscope.Run(folder, trial="probe", when=1, keep=keep, budget=None, max_bytes=None)
    run.watch(training.model, training.optimizer)
    return run


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


PROBES: dict[str, Callable[..., dict[str, Any]]] = {
    "memory": memory,
    "disk": disk,
    "startup": startup,
    "write": write,
    "read": read,
}

"""What does recording cost in a job of two processes (DistributedDataParallel, gloo)?

CPU time, summed over the processes, of the same training without and with Endoscope. Each process is pinned to one
core; the sides take turns, each in processes of its own. `default` is `Run(folder)` as it is, `recorded` records every
step.

    python benchmarks/distributed.py                  about ten minutes on an idle machine
    python benchmarks/distributed.py --quick
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDES = ("plain", "default", "recorded")
MOST_DEFAULT = 1.06
MOST_BEYOND_ALONE = 1.05


def train(side: str, seconds: float, folder: str) -> dict[str, float]:
    """One process: as many steps as take about so long, and their CPU time; the first ones are not counted."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    import endoscope

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU())]
    model: nn.Module = nn.Sequential(*layers, nn.Linear(512, 10))
    if size > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = None
    if side != "plain":
        run = endoscope.Run(folder, trial="x", when=1 if side == "recorded" else None)
        run.watch(model, optimizer)
    data, labels = torch.randn(4096, 512), torch.randint(10, (4096,))

    def step() -> None:
        chosen = torch.randint(4096, (128,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[chosen]), labels[chosen]).backward()
        optimizer.step()

    def agreed(value: float) -> float:
        """All processes take the same number of steps."""
        if size == 1:
            return value
        found = torch.tensor([value])
        dist.broadcast(found, 0)
        return float(found)

    began = time.process_time()
    for _ in range(20):
        step()
    steps = int(agreed(max(seconds / max((time.process_time() - began) / 20, 1e-4), 40)))
    if side == "recorded":
        steps = max(steps // 2, 40)
    began = time.process_time()
    for _ in range(steps):
        step()
    if run is not None:
        run.flush()
    spent = time.process_time() - began
    if run is not None:
        run.close()
    if size > 1:
        dist.destroy_process_group()
    return {"steps": steps, "cpu": spent}


def job(side: str, processes: int, seconds: float) -> float:
    """CPU seconds of one step, summed over the processes."""
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port = str(found.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for rank in range(processes):
            words = {"RANK": str(rank), "WORLD_SIZE": str(processes), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
            command = [sys.executable, __file__, "--process", side, str(seconds), folder]
            env = os.environ | words | {"OMP_NUM_THREADS": "1"}
            started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        answers = [json.loads(one.communicate()[0].splitlines()[-1]) for one in started]
    return sum(answer["cpu"] / answer["steps"] for answer in answers)


def ratio(found: dict[str, list[float]], side: str) -> tuple[float, float]:
    """Median over the turns of side ÷ plain, and its error."""
    ratios = [one / plain for one, plain in zip(found[side], found["plain"], strict=True)]
    spread = statistics.stdev(ratios) if len(ratios) > 1 else float("nan")
    return statistics.median(ratios), spread / len(ratios) ** 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="shorter trainings, fewer turns")
    parser.add_argument("--seconds", type=float, help="of CPU time for each process and side")
    parser.add_argument("--turns", type=int)
    options = parser.parse_args()
    seconds = options.seconds or (5.0 if options.quick else 20.0)
    turns = options.turns or (3 if options.quick else 5)
    found: dict[int, dict[str, list[float]]] = {size: {side: [] for side in SIDES} for size in (1, 2)}
    for turn in range(turns):
        for size in found:
            for side in SIDES if turn % 2 else reversed(SIDES):
                found[size][side].append(job(side, size, seconds))
    print(f"{turns} turns, about {seconds:g} s of CPU time for each process and side, one core each\n")
    print(f"{'processes':>9}  {'plain ms/step':>13}  {'default':>15}  {'every step':>15}")
    results = {}
    for size, sides in found.items():
        default, recorded = ratio(sides, "default"), ratio(sides, "recorded")
        results[size] = default, recorded
        plain = 1000 * statistics.median(sides["plain"])
        print(f"{size:9}  {plain:13.2f}  {default[0]:7.3f} ± {default[1]:.3f}  {recorded[0]:7.3f} ± {recorded[1]:.3f}")
    (default, error), (together, _) = results[2]
    beyond = together / results[1][1][0]
    is_met = told(default - error <= MOST_DEFAULT)
    print(f"\ndefault with 2 processes: {default:.3f} - {error:.3f}; at most {MOST_DEFAULT}: {is_met}")
    is_met = told(beyond <= MOST_BEYOND_ALONE)
    print(f"a recorded step with 2 processes ÷ with one: {beyond:.3f}; at most {MOST_BEYOND_ALONE}: {is_met}")


def told(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--process":
        print(json.dumps(train(sys.argv[2], float(sys.argv[3]), str(Path(sys.argv[4])))))
    else:
        main()

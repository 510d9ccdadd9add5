"""What measuring a tensor costs: nanoseconds per number, against plain torch calls; a whole training step; start-up.

python benchmarks/statistics_speed.py
python benchmarks/statistics_speed.py --quick

Everything is measured that a recording holds: the whole tensor, histogram and quantiles, every sample, every unit.
Plain torch computes less: mean, standard deviation, mean magnitude, extremes, norm and zeros, of the whole tensor
and of every sample, mean, deviation and peak of every unit. No histogram, no quantiles, no NaN.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measure import FULL, QUICK, Effort, compare, one_thread

one_thread()

import torch  # noqa: E402 (after one_thread, which limits its threads)
from table import print_table  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from training import CASES, TrainingCase  # noqa: E402

from endoscope import stats  # noqa: E402
from endoscope.stats import Request  # noqa: E402

NANOSECONDS_AT_MOST = 0.68  # per number of a whole step: 3 ms for the MLP
STEPS_BEFORE = 5  # Adam's first update has the same size everywhere, which no later one has
START_SECS_AT_MOST = 0.15

START_UP = """
import time, torch
start = time.perf_counter()
from endoscope import stats
stats.warm()
stats.measure([stats.Request(torch.ones(128, 512), 0)])
print(time.perf_counter() - start)
"""


def tensors() -> dict[str, Request]:
    """One tensor for each way in which numbers can lie in memory."""
    torch.manual_seed(0)
    activations = torch.randn(128, 512)
    return {
        "weight 512×512": Request(torch.randn(512, 512), None),
        "activations 128×512": Request(activations, 0),
        "the same after a ReLU": Request(activations.relu(), 0),
        "the same, transposed": Request(activations.t().contiguous().t(), 0),
        "the same in bfloat16": Request(activations.bfloat16(), 0),
        "the same in float64": Request(activations.double(), 0),
        "tokens 16×64×256": Request(torch.randn(16, 64, 256), 0),
        "tokens first 64×16×256": Request(torch.randn(64, 16, 256), 1),
        "images 16×64×28×28": Request(torch.randn(16, 64, 28, 28), 0),
        "small images 16×512×7×7": Request(torch.randn(16, 512, 7, 7), 0),
        "points 16×10000×3": Request(torch.randn(16, 10_000, 3), 0),
        "bias 512": Request(torch.randn(512), None),
    }


def plain(request: Request) -> list[Tensor]:
    """The part of the statistics that torch has functions for, one call after the other."""
    x = request.tensor if request.tensor.is_floating_point() else request.tensor.float()
    found = _of(x, None)
    if request.batch_dim is not None and x.dim() > 1:
        rest = tuple(dim for dim in range(x.dim()) if dim != request.batch_dim)
        found += _of(x, rest)
        found += [x.mean(request.batch_dim), x.std(request.batch_dim), x.abs().amax(request.batch_dim)]
    return found


def _of(x: Tensor, dims: tuple[int, ...] | None) -> list[Tensor]:
    return [
        x.mean(dims), x.std(dims), x.abs().mean(dims), x.amin(dims or ()), x.amax(dims or ()),
        x.abs().amax(dims or ()), torch.linalg.vector_norm(x, dim=dims), (x == 0).sum(dims),
    ]  # fmt: skip


def print_kinds(effort: Effort) -> None:
    rows = []
    for name, request in tensors().items():
        again = [request] * max(1, 1_000_000 // request.tensor.numel())  # enough to see little of one call's own price
        numbers = sum(one.tensor.numel() for one in again)
        sides: dict[str, Callable[[], object]] = {
            "ours": lambda again=again: stats.measure(again, threads=1),
            "torch": lambda again=again: [plain(one) for one in again],
            "sum": lambda again=again: [one.tensor.sum() for one in again],
        }
        result = compare(sides, effort)
        ours, torchs = (1e9 * min(result.secs[side]) / numbers for side in ("ours", "torch"))
        ratios = [result.ratio("torch", "ours"), result.ratio("ours", "sum")]
        rows.append([name, f"{ours:.2f}", f"{torchs:.2f}", *(f"{ratio:.1f}" for ratio in ratios)])
    print("Nanoseconds per number, one thread, best round\n")
    print_table([["tensor", "ours", "plain torch", "torch ÷ ours", "ours ÷ torch.sum"], *rows])


def requests_of_a_step(case: TrainingCase) -> list[Request]:
    """Every tensor of one training step: outputs of all modules, parameters, gradients of both, updates."""
    training = case.make()
    for _ in range(STEPS_BEFORE):
        training.step()
    outputs: list[Tensor] = [training.inputs]

    def keep(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        output.retain_grad()
        outputs.append(output)

    hooks = [module.register_forward_hook(keep) for module in training.model.modules()]
    training.loss().backward()
    for hook in hooks:
        hook.remove()
    parameters = list(training.model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    training.optimizer.step()
    gradients = [output.grad for output in outputs if output.grad is not None]
    rest = [p.grad for p in parameters if p.grad is not None] + [
        p.detach() - old for p, old in zip(parameters, before, strict=True)
    ]
    batched = [Request(tensor.detach(), 0) for tensor in outputs + gradients]
    return batched + [Request(tensor.detach(), None) for tensor in [*parameters, *rest]]


def print_steps(effort: Effort) -> None:
    rows = []
    for case in CASES:
        requests = requests_of_a_step(case)
        numbers = sum(request.tensor.numel() for request in requests)
        best = {threads: _best_wall(requests, threads, effort) for threads in (1, 2)}
        limit = NANOSECONDS_AT_MOST * numbers
        verdict = "ok" if 1e9 * min(best.values()) <= limit else "MISSED"
        rows.append(
            [case.name, str(len(requests)), f"{numbers / 1e6:.1f} M"]
            + [f"{1e3 * best[threads]:.2f}" for threads in (1, 2)]
            + [f"{1e9 * best[1] / numbers:.2f}", f"≤ {1e-6 * limit:.1f} ms: {verdict}"]
        )
    print("Everything of one training step, wall time, best of many\n")
    print_table([["step", "tensors", "numbers", "ms, 1 thread", "ms, 2 threads", "ns/number", ""], *rows])


def _best_wall(requests: list[Request], threads: int, effort: Effort) -> float:
    best = float("inf")
    for _ in range(20 * effort.min_rounds):
        start = time.perf_counter()
        stats.measure(requests, threads=threads)
        best = min(best, time.perf_counter() - start)
    return best


def print_start_up() -> None:
    secs = min(_start_up() for _ in range(5))
    verdict = "ok" if secs <= START_SECS_AT_MOST else "MISSED"
    print("Start-up: loading, warm() and the first measurement, torch being imported already\n")
    print_table([["seconds", ""], [f"{secs:.3f}", f"≤ {START_SECS_AT_MOST}: {verdict}"]])


def _start_up() -> float:
    paths = [str(Path(stats.__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run(
        [sys.executable, "-c", START_UP], env=environment, capture_output=True, text=True, check=True
    )
    return float(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    effort = QUICK if parser.parse_args().quick else FULL
    stats.warm()
    print_kinds(effort)
    print_steps(effort)
    print_start_up()


if __name__ == "__main__":
    main()

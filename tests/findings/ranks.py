"""Jobs of several ranks with a fault planted in one of them, and healthy ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from endoscope.schema.recording import TimesRecord
from tests.query.ranks.made_up import Part, Step, part, placed, write_rank

STEPS, RANKS = 12, 4
MESH = {"names": ["data"], "shape": [RANKS], "ranks": list(range(RANKS))}

#: What a rank has at a step: of other samples, or the same on all ranks.
Own = Callable[[int, int], Tensor]


def _chance(*seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(sum(n * 1009**place for place, n in enumerate(seed, 1)))


def batch(rank: int, step: int) -> Tensor:
    return torch.randn(8, 5, generator=_chance(1, step, rank))


def weight(rank: int, step: int) -> Tensor:
    return torch.randn(5, 3, generator=_chance(2)) * (1 + 0.01 * step)


def gradient(rank: int, step: int) -> Tensor:
    return torch.randn(5, 3, generator=_chance(3, step))


def local(rank: int, step: int) -> Tensor:
    return torch.randn(5, 3, generator=_chance(4, step, rank))


def losses(rank: int, step: int) -> Tensor:
    """Of two micro-batches."""
    return 1 + 0.1 * torch.rand(2, generator=_chance(5, step, rank))


def data_secs(rank: int, step: int) -> float:
    return 0.01


def write(
    folder: Path, *, data: Own = batch, parameter: Own = weight, used: Own = gradient, own: Own = local,
    loss: Own = losses,
) -> Path:  # fmt: skip
    """A job of four ranks under data parallelism."""
    for rank in range(RANKS):
        steps = {}
        for number in range(STEPS):
            of_passes = loss(rank, number)
            parts: list[Part] = [
                part("input", data(rank, number), placed(["batch"]), kind="input", batch_dim=0, keep=False),
                part("w", parameter(rank, number), placed(["replicate"]), of="parameter", kind="parameter", keep=False),
                part("w", used(rank, number), placed(["replicate"]), of="gradient", kind="parameter", keep=False),
                part("w", own(rank, number), placed(["local"]), of="local_gradient", kind="parameter", keep=False),
            ]
            parts += [
                part("loss", value, placed(["batch"]), kind="loss", pass_=n, keep=False)
                for n, value in enumerate(of_passes, 1)
            ]
            steps[number] = Step(parts, metrics={"loss": float(of_passes.mean())})
        path = write_rank(folder, rank, steps, [MESH], trial="trial", times=times_of(rank))
    return path


def times_of(rank: int, slow: int = -1) -> list[TimesRecord]:
    """Two hundredths of a second for a step, and five more of one rank for its data."""
    data = 0.06 if rank == slow else 0.01
    return [
        TimesRecord(n, "train", 0, 1, 0.08, data, 0.01, 0.08 - data - 0.015, 0.005, 0.08, 10**6) for n in range(STEPS)
    ]


def drifting(folder: Path) -> Path:
    """Rank 2 learns a little more at every step."""
    return write(folder, parameter=lambda rank, step: weight(rank, step) * (1 + 0.001 * step * (rank == 2)))


def unsynchronised(folder: Path) -> Path:
    return write(folder, used=local)


def same_data(folder: Path) -> Path:
    return write(folder, data=lambda rank, step: batch(0, step))


def one_bad_shard(folder: Path) -> Path:
    """At step 7 the second micro-batch of rank 3 is broken."""

    def loss(rank: int, step: int) -> Tensor:
        return losses(rank, step) * (torch.tensor([1.0, 50.0]) if (rank, step) == (3, 7) else 1.0)

    return write(folder, loss=loss)


def killed(folder: Path) -> Path:
    """Rank 0 goes on alone."""
    for rank, last in ((0, STEPS), (1, 3)):
        steps = {n: Step([part("x", batch(rank, n), placed(["batch"]), batch_dim=0)]) for n in range(last)}
        path = write_rank(folder, rank, steps, trial="trial")
    return path


def untied(folder: Path) -> Path:
    """Replicas whose gradients are averaged by hand."""
    for rank in (0, 1):
        steps = {n: Step([part("x", batch(rank, n), "", batch_dim=0)]) for n in range(STEPS)}
        path = write_rank(folder, rank, steps, [], world=2, trial="trial")
    return path


def slow(folder: Path) -> Path:
    path = write(folder)
    for rank in range(RANKS):
        write_rank(folder / "slow", rank, {n: Step([]) for n in range(STEPS)}, [MESH], trial="trial",
                   times=times_of(rank, slow=1))  # fmt: skip
    return path.parent / "slow" / "trial"

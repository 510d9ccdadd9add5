"""Ranks that should have other samples, and have the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from endoscope.findings import across_ranks
from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Rows, Tensor

_STATISTICS = ("mean", "std", "norm", "q05", "q50", "q95")
_MOST_PAIRS = 2000  # of ranks that are compared; with more ranks each is compared with the next one only


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Every statistic of an input is equal, to the last bit, to that of another rank at the same step."""
    for tensor, ranks in across_ranks.batches(facts, facts.values):
        if tensor.key.kind != "input" or tensor.key.batch_dim < 0 or tensor.key.pass_ != 1:
            continue
        seen = _of_tensor(facts, limits, tensor, ranks)
        if seen is not None:
            yield seen


def _of_tensor(facts: Facts, limits: Limits, tensor: Tensor, ranks: tuple[int, ...]) -> Seen | None:
    pairs = list(combinations(range(len(ranks)), 2))
    pairs = pairs if len(pairs) <= _MOST_PAIRS else [(n, n + 1) for n in range(len(ranks) - 1)]
    print_ = np.stack([across_ranks.stacked(facts, ranks, _values, tensor, name) for name in _STATISTICS])
    varies = print_[_STATISTICS.index("std")] > 0
    same = np.array([(print_[:, a] == print_[:, b]).all(axis=0) & varies[a] for a, b in pairs])
    there = ~np.isnan(print_).any(axis=(0, 1)) & varies.any(axis=0)
    steps = np.count_nonzero(there)
    shares = (same & there).sum(axis=1) / max(steps, 1)
    worst = int(np.argmax(shares)) if len(shares) else 0
    if steps < limits["steps"] or shares[worst] < limits["share"]:
        return None
    bad = sorted(
        {ranks[n] for pair, share in zip(pairs, shares, strict=True) if share >= limits["share"] for n in pair}
    )
    named = "all ranks" if len(bad) == len(ranks) else "ranks " + ", ".join(map(str, bad))
    return Seen(
        severity=WARNING, title="ranks see the same data",
        detail=f"Going by the statistics of the input, {named} have the same batch at {shares[worst]:.0%} of the "
        "steps.",
        value=float(shares[worst]), threshold=limits["share"], tensor=tensor,
        **facts.steps_where((same & there).any(axis=0)),
    )  # fmt: skip


def _values(own: Facts) -> Rows:
    return own.values


CHECK = Check(
    name="ranks_see_same_data",
    description="Ranks that should train on different samples have the same batches.",
    stage=Stage.DATA,
    run=run,
    thresholds={"share": 0.5, "steps": 3},
    causes=(
        "The data loader has no DistributedSampler, and every rank shuffles with the same seed.",
        "A stream of data is not divided among the ranks.",
    ),
    remedies=(
        "`DataLoader(data, sampler=DistributedSampler(data))`, and `sampler.set_epoch(epoch)` each epoch.",
        "Of a stream, let rank r take every sample n with n % world_size == r.",
    ),
)

"""Gradients that every rank should have in common when the optimizer uses them, and that differ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import across_ranks
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """What the optimizer used, after all reductions."""
    for tensor, ranks in across_ranks.replicas(facts, facts.used_gradients):
        norms = across_ranks.stacked(facts, ranks, lambda own: own.used_gradients, tensor, "norm")
        apart = across_ranks.spread(norms)
        there = ~np.isnan(apart)
        bad = there & (apart > limits["difference"])
        share = float(np.mean(bad[there])) if there.any() else 0.0
        if not bad.any() or share < limits["share"]:
            continue
        place = int(np.flatnonzero(bad)[0])
        low, high = int(np.argmin(norms[:, place])), int(np.argmax(norms[:, place]))
        yield Seen(
            severity=ERROR, title="gradients are not synchronised",
            detail=f"At step {facts.numbers[place]} the optimizer of rank {ranks[low]} used a gradient of norm "
            f"{norms[low, place]:.3g}, that of rank {ranks[high]} one of {norms[high, place]:.3g}; they should be the "
            f"same. It is so at {share:.0%} of the steps.",
            value=float(np.nanmax(apart)), threshold=limits["difference"], tensor=tensor, **facts.steps_where(bad),
        )  # fmt: skip


CHECK = Check(
    name="unsynchronised_gradients",
    description="Ranks with the same parameters update them by different gradients.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"difference": 1e-4, "share": 0.1},
    evidence=Evidence(("norm",)),
    causes=(
        "`ddp.module(x)` is called instead of `ddp(x)`: then nobody averages the gradients.",
        "The last backward pass before the update runs inside `no_sync()`.",
    ),
    remedies=("Call the DistributedDataParallel module itself.", "Leave `no_sync()` before the last micro-batch."),
)

"""Parameters that every rank should have in common, and that differ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import across_ranks
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR

_STATISTICS = ("norm", "mean", "std", "abs_max")


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Replicas get the same updates, so their statistics are the same to the last bit; buffers may differ."""
    for replicas in across_ranks.replicas(facts, facts.parameters):
        tensor, ranks = replicas
        if tensor.key.kind != "parameter":
            continue
        apart = np.zeros(len(facts.steps))
        for statistic in _STATISTICS:
            values = across_ranks.stacked(facts, ranks, lambda own: own.parameters, tensor, statistic)
            apart = np.fmax(apart, across_ranks.spread(values))
        bad = apart > limits["share"]
        if bad.any():
            last = float(apart[bad][-1])
            yield Seen(
                severity=ERROR, title="parameters drift apart",
                detail=f"Ranks {_listed(ranks)} should have the same parameter. Its statistics differ by {last:.2g} of "
                f"their size at step {facts.numbers[np.flatnonzero(bad)[-1]]}; reported above {limits['share']:g}.",
                value=float(np.nanmax(apart)), threshold=limits["share"], tensor=tensor, **facts.steps_where(bad),
            )  # fmt: skip


def _listed(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}" if len(ranks) <= 4 else f"{ranks[0]} to {ranks[-1]}"


CHECK = Check(
    name="ranks_drift_apart",
    description="Parameters that are replicated over ranks are no longer the same on all of them.",
    stage=Stage.WEIGHTS,
    run=run,
    thresholds={"share": 1e-5},
    evidence=Evidence(("norm", "mean")),
    explained_by=("unsynchronised_gradients",),
    causes=(
        "Gradients are not averaged over the ranks before the update.",
        "Ranks began with other parameters, or change them in other ways: another seed, learning rate or clipping.",
    ),
    remedies=(
        "Call the DistributedDataParallel module itself, not the module inside of it.",
        "Compare the ranks: `endoscope.open(path).rank(1).series(node, 'norm')`.",
    ),
)

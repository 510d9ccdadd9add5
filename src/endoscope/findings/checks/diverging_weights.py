"""Weights that grow without end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import early, late, median_where


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Much larger than at first, large by any measure, and still growing."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix)
    if not len(weights):
        return
    size, there = rows["abs_mean"][weights].astype(np.float64), rows.there[weights]
    first, last = median_where(size, early(there, 0.05)), median_where(size, late(there, 0.1))
    middle = median_where(size, late(there, 0.5) & ~late(there, 0.4))
    growth = last / first
    bad = (growth > limits["growth"]) & (last > limits["size"]) & (last > 1.05 * middle) & (there.sum(axis=1) >= 8)
    for place in np.flatnonzero(bad).tolist():
        mask = there[place] & (size[place] > limits["growth"] * first[place])
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"weights have grown {growth[place]:.2g} times, and still grow",
            detail=f"Their mean size grew from {first[place]:.2g} to {last[place]:.2g} and still grows; reported from "
            f"{limits['growth']:g} times on.",
            value=float(growth[place]), threshold=limits["growth"], tensor=rows.tensors[int(weights[place])],
            **facts.steps_where(mask),
        )  # fmt: skip


CHECK = Check(
    name="diverging_weights",
    description="Weights are many times larger than at first, and still grow.",
    stage=Stage.WEIGHTS,
    run=run,
    needs_harm=True,
    thresholds={"growth": 8.0, "size": 1.0},
    evidence=Evidence(("norm",)),
    explained_by=LEARNING_RATE,
    causes=("A learning rate that is too large.", "A negative weight decay, or a loss without a lower bound."),
    remedies=("Lower the learning rate; add weight decay; clip the gradient.",),
)

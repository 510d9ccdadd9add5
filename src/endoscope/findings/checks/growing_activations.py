"""Activations that grow and grow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_no_normalisation
from endoscope.findings.check import LEARNING_RATE, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import early, late, median_where


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Much larger in the end than at first, and still growing; small ones only if nothing is learned meanwhile.

    The logits of a network that learns begin near zero, and may well grow.
    """
    rows = facts.values
    chosen = rows.rows(lambda t: t.key.kind in ("computed", "output") and t.key.batch_dim >= 0 and t.is_float)
    if not len(chosen):
        return
    std, there = rows["std"][chosen].astype(np.float64), rows.there[chosen]
    first, middle = median_where(std, early(there, 0.15)), median_where(std, late(there, 0.5) & ~late(there, 0.25))
    last = median_where(std, late(there, 0.15))
    growth = last / first
    bad = (growth > limits["growth"]) & (last > 1.2 * middle) & (there.sum(axis=1) >= 12)
    bad &= last > (limits["small"] if facts.is_supervised and not still_learns(facts) else limits["size"])
    for place in np.flatnonzero(bad).tolist():
        node = rows.tensors[int(chosen[place])].node
        mask = there[place] & (std[place] > limits["growth"] * first[place])
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"activations have grown {growth[place]:.2g} times, and still grow",
            detail=f"The standard deviation of `{node}` grew from {first[place]:.2g} to "
            f"{last[place]:.2g} and still "
            f"grows; reported from {limits['growth']:g} times on.",
            value=float(growth[place]), threshold=limits["growth"], tensor=rows.tensors[int(chosen[place])],
            **facts.steps_where(mask),
        )  # fmt: skip


def still_learns(facts: Facts) -> bool:
    """Whether a loss is clearly lower in the last part than in the middle, or nobody knows a loss."""
    for curve in facts.losses:
        values = curve.finite.values
        third = len(values) // 3
        if third >= 3 and np.median(values[-third:]) < np.median(values[third : 2 * third]) - 0.02 * abs(values[0]):
            return True
    return not facts.losses


CHECK = Check(
    name="growing_activations",
    description="The standard deviation of activations keeps growing during training.",
    stage=Stage.FORWARD,
    run=run,
    needs_harm=True,
    thresholds={"growth": 10.0, "size": 10.0, "small": 1.0},
    quantity="growth",
    evidence=Evidence(("std",)),
    explained_by=("asymmetric_range", *LEARNING_RATE, "diverging_weights"),
    causes=("A learning rate that is too large.", "Nothing holds the weights or the residual stream back."),
    remedies=("Lower the learning rate; add weight decay.",),
    remedies_where=((has_no_normalisation, "Add normalisation layers."),),
)

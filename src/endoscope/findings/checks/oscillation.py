"""A loss that jumps up and down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, START, Check, Limits, Seen, Stage
from endoscope.findings.curves import first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Large jumps compared with the level, without getting lower."""
    for curve in facts.losses:
        values = curve.finite.values
        if len(values) < limits["steps"] or (values <= 0).any():
            continue  # what goes below zero has no level, and need not be minimised
        later = values[len(values) // 3 :]
        level, jumps = float(np.median(later)), np.abs(np.diff(later))
        size = float(np.median(jumps)) / level if level > 0 else 0.0
        stays = last_level(values, 0.3) > 0.7 * first_level(values)
        turns = np.diff(later)[1:] * np.diff(later)[:-1] < 0
        # Two thirds of all steps turn if there is nothing but noise.
        swings = len(turns) > 0 and float(turns.mean()) > limits["turns"]
        if size > limits["jump"] and (stays or swings):
            yield Seen(
                severity=WARNING, title=f"`{curve.name}` jumps by {size:.0%} of its level from step to step",
                detail=f"From one step to the next {curve.name} changes by {size:.0%} of its level (median), "
                f"{'up and down in turns' if swings else 'and gets no lower'}; reported from {limits['jump']:.0%} on.",
                value=size, threshold=limits["jump"], **curve.at(np.arange(len(values) // 3, len(curve))),
            )  # fmt: skip


CHECK = Check(
    name="oscillation",
    description="The loss jumps by a large part of its level from step to step, up and down or without getting lower.",
    stage=Stage.LOSS,
    run=run,
    needs_harm=True,
    thresholds={"jump": 0.6, "steps": 20, "turns": 0.92},
    explained_by=("exploding_gradient", "unshuffled", *LEARNING_RATE, *START),
    causes=("A learning rate that is too large.", "Batches that are very small, or very different."),
    remedies=("Lower the learning rate.", "Use larger batches, or shuffle the data."),
)

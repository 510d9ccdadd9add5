"""A loss that goes up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, START, Check, Limits, Seen, Stage
from endoscope.findings.curves import first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Higher in the end than at first, and than ever before. Of several losses, one may rise as it should (GAN)."""
    for curve in facts.losses:
        values = curve.finite.values
        if len(values) < limits["steps"]:
            continue
        first, last = first_level(values), last_level(values)
        factor = last / first if first > 0 else 0.0
        rising = last_level(values, 0.2) >= 0.8 * last_level(values[: max(3, len(values) * 4 // 5)], 0.2)
        if factor < limits["factor"] or not rising:
            continue
        alone = len({other.name for other in facts.losses}) == 1
        where = np.flatnonzero(curve.values > limits["factor"] * first)
        yield Seen(
            severity=ERROR if alone or factor > 100 else INFO, title="the loss goes up",
            detail=f"{curve.name} began at {first:.3g} and ended at {last:.3g}, {factor:.3g} times as much; "
            "reported from "
            f"{limits['factor']:g} times on.",
            value=factor, threshold=limits["factor"], **curve.at(where),
        )  # fmt: skip


CHECK = Check(
    name="divergence",
    description="The loss is much higher at the end than at the beginning.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"factor": 1.5, "steps": 10},
    explained_by=("exploding_gradient", *LEARNING_RATE, *START),
    causes=("A learning rate that is too large.", "The wrong sign: the loss is maximised.", "Gradients that explode."),
    remedies=("Lower the learning rate, by a factor of ten to begin with.", "Clip the gradient.", "Check the sign."),
)

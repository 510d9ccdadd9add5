"""A loss that goes up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, START, Check, Limits, Seen, Stage
from endoscope.findings.curves import Curve, first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO, WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Higher in the end than at first, and than ever before. Of several losses, one may rise as it should (GAN)."""
    for curve in facts.losses:
        values = curve.finite.values
        if len(values) < limits["steps"]:
            continue
        first, last = first_level(values), last_level(values)
        if falls_without_end(values, limits):
            yield Seen(
                of_the_run=True, severity=WARNING, title=f"`{curve.name}` falls below zero without end",
                detail=f"{curve.name} went from {first:.3g} to {last:.3g}, and falls faster and faster: it has no "
                "lower bound.",
                value=abs(last), threshold=abs(first), cause="down", causes=_NO_BOUND, remedies=_BOUND,
                **curve.at(np.flatnonzero(curve.values < 0)),
            )  # fmt: skip
            continue
        if facts.has_no_level(curve.tensor):
            continue  # where the others become harder it rises by itself
        factor = last / first if first > 0 and (values > 0).all() else 0.0
        rising = last_level(values, 0.2) >= 0.8 * last_level(values[: max(3, len(values) * 4 // 5)], 0.2)
        if factor < limits["factor"] or not rising:
            continue
        alone = len({other.name for other in facts.losses}) == 1
        where = np.flatnonzero(curve.values > limits["factor"] * first)
        yield Seen(
            of_the_run=True, severity=ERROR if alone or factor > 100 else INFO,
            title=f"`{curve.name}` ended {factor:.3g} times as high as it began",
            detail=f"{curve.name} began at {first:.3g} and ended at {last:.3g}, {factor:.3g} times as much"
            f"{_broken(curve)}; reported from {limits['factor']:g} times on.",
            value=factor, threshold=limits["factor"], **curve.at(where),
        )  # fmt: skip


def falls_without_end(values: np.ndarray, limits: Limits) -> bool:
    """Far below zero, and in its last third no slower than before."""
    first, third = abs(first_level(values)), len(values) // 3
    ends = [float(np.median(part)) for part in (values[:third], values[third : 2 * third], values[-third:])]
    low = float(np.median(values[-max(3, third // 3) :]))
    return low < -limits["below"] * max(first, 0.1) and ends[1] - ends[2] > 0.8 * (ends[0] - ends[1]) > 0


_NO_BOUND = (
    "The wrong sign: a loss that should be minimised is maximised, or a minus is missing.",
    "A loss that expects something else, such as nll_loss of logits without log_softmax.",
)
_BOUND = ("Check the sign of the loss, and what it expects.",)


def _broken(curve: Curve) -> str:
    """What it was in the very end, if that is no number."""
    return "" if np.isfinite(curve.values[-1]) else f", and then as {curve.values[-1]:g}"


CHECK = Check(
    name="divergence",
    description="The loss is much higher at the end than at the beginning.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"factor": 1.5, "steps": 10, "below": 20.0},
    explained_by=("exploding_gradient", *LEARNING_RATE, *START),
    causes=("A learning rate that is too large.", "The wrong sign: the loss is maximised.", "Gradients that explode."),
    remedies=("Lower the learning rate, by a factor of ten to begin with.", "Clip the gradient.", "Check the sign."),
)

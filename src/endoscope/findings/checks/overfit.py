"""The loss on held-out data goes up while that on training data goes down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.curves import Curve, first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Metrics with "loss" in their name; held out are those with "val", "test" or "eval"."""
    held_out = [curve.finite for curve in facts.metrics if curve.is_loss and curve.is_held_out]
    training = [curve.finite for curve in facts.metrics if curve.is_loss and not curve.is_held_out]
    for curve in held_out:
        if len(curve) < limits["steps"] or not any(_falls(other) for other in training):
            continue
        smooth = np.array([np.median(curve.values[max(0, n - 1) : n + 2]) for n in range(len(curve))])
        lowest = int(np.argmin(smooth))
        last = last_level(curve.values)
        rise = last / smooth[lowest] - 1 if smooth[lowest] > 0 else 0.0
        fallen = np.max(curve.values[: lowest + 1]) - smooth[lowest]
        after = [last_level(other.values) < _at(other, int(curve.numbers[lowest])) for other in training]
        is_large = last - smooth[lowest] > limits["of_the_fall"] * fallen  # else all but nothing of it is lost again
        if rise > limits["rise"] and is_large and lowest < 0.8 * len(curve) and any(after):
            yield Seen(
                severity=WARNING,
                title=f"`{curve.name}` has risen by {rise:.0%}, while the training loss went on falling",
                detail=f"{curve.name} was {smooth[lowest]:.3g} at step {curve.numbers[lowest]} and is {last:.3g} now, "
                f"{rise:.0%} more, while the training loss went on falling; reported from {limits['rise']:.0%} on.",
                value=float(rise), threshold=limits["rise"], **curve.at(np.arange(lowest, len(curve))),
            )  # fmt: skip


def _falls(curve: Curve) -> bool:
    return len(curve) >= 5 and last_level(curve.values) < 0.95 * first_level(curve.values)


def _at(curve: Curve, number: int) -> float:
    """Its level around a step."""
    place = int(np.searchsorted(curve.numbers, number))
    return float(np.median(curve.values[max(0, place - 2) : place + 3])) if len(curve) else np.nan


CHECK = Check(
    name="overfit",
    description="The loss on held-out data rises while the training loss falls. Needs metrics of both.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"rise": 0.15, "of_the_fall": 0.1, "steps": 6},
    causes=("The network learns the training data by heart: too little data, or too large a network.",),
    remedies=("Stop at the lowest point.", "Use more data, augmentation, dropout or weight decay."),
)

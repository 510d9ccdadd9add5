"""A metric that jumps far beyond its own past, or that is no number any more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, Check, Limits, Seen, Stage
from endoscope.findings.curves import Curve, past_median, past_spread
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Whatever its name is; losses have checks of their own for what is finite."""
    losses = {curve.name for curve in facts.losses}
    for curve in facts.metrics:
        wrong = ~np.isfinite(curve.values)
        if wrong.any():
            first = int(np.argmax(wrong))
            word = "NaN" if np.isnan(curve.values[first]) else "infinite"
            lasting = wrong[first:].all() and (curve.is_loss or curve.name in losses)
            often = f"it is not finite at {np.count_nonzero(wrong)} of {len(wrong)} steps"
            yield Seen(
                severity=ERROR if lasting else WARNING, title=f"the metric `{curve.name}` is {word}",
                detail=f"At step {curve.numbers[first]} {curve.name} is {word} for the first time, and {often}.",
                value=float(np.count_nonzero(wrong)), threshold=0.0, cause=f"nonfinite {curve.name}",
                causes=(
                    "A loss or activation that was NaN or infinite at that step.",
                    "A mean over nothing: a division by zero (0/0), an empty batch, a mask that leaves no label.",
                ),
                remedies=(
                    "`endoscope origin DIR` names the operation, if that step was recorded; "
                    "`endoscope.Run(root, when=1)` records all.",
                ),
                **curve.at(np.flatnonzero(wrong)),
            )  # fmt: skip
        if curve.name not in losses and curve not in facts.rates and not curve.is_loss:
            yield from _jumps(curve.finite, limits)


def _jumps(curve: Curve, limits: Limits) -> Iterator[Seen]:
    name, window = curve.name, int(limits["window"])
    values = curve.values
    if len(values) < 2 * window or not (values > 0).all():
        return
    usual, spread = past_median(values, window), past_spread(values, window)
    highest = np.maximum.accumulate(values)
    before = np.concatenate([[np.inf], highest[:-1]])  # what it once was is no news
    bad = (values > limits["factor"] * usual) & (values > usual + limits["sigmas"] * spread)
    bad &= (values > 2 * before) & (np.arange(len(values)) >= window)
    if not bad.any():
        return
    at = int(np.argmax(np.where(bad, values / usual, 0)))
    yield Seen(
        of_the_run=True, severity=WARNING,
        title=f"the metric `{name}` jumps to {values[at] / usual[at]:.3g} times its level at step {curve.numbers[at]}",
        detail=f"At step {curve.numbers[at]} {name} is {values[at]:.3g}, {values[at] / usual[at]:.3g} times the "
        f"median of the {window} values before, and more than twice what it ever was; reported from "
        f"{limits['factor']:g} times on.",
        value=float(values[at] / usual[at]), threshold=limits["factor"], cause=f"jump {name}",
        **curve.at(np.flatnonzero(bad)),
    )  # fmt: skip


CHECK = Check(
    name="metric_jump",
    description="A metric is NaN or infinite, or jumps to many times its largest value until then.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"factor": 8.0, "sigmas": 12.0, "window": 10},
    explained_by=("nonfinite", "spiking_gradient", "exploding_gradient", "unusual_input", *LEARNING_RATE),
    causes=("A batch with outliers.", "Training that has become unstable at that step."),
    remedies=("Look at what else changed at that step.", "Clip the gradient; lower the learning rate."),
)

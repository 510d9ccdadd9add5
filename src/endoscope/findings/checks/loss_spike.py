"""Single steps with a loss far above the steps before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, Check, Limits, Seen, Stage
from endoscope.findings.curves import past_median, past_spread
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING
from endoscope.findings.health import learns_well


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Compared with the steps before, and worth mentioning beside where it all began."""
    window = int(limits["window"])
    for curve in facts.losses:
        finite = curve.finite
        values = finite.values
        usual, spread = past_median(values, window), past_spread(values, window)
        factor = values / usual
        began = float(np.median(values[:3])) if len(values) else 0.0
        bad = (factor > limits["factor"]) & (values > usual + limits["sigmas"] * spread)
        bad &= values > limits["of_the_first"] * began
        places = np.flatnonzero(bad)
        if not len(places) or len(places) > 0.15 * len(values) or places[-1] - places[0] + 1 == len(places) > 3:
            continue  # many in a row are no spike
        worst = int(places[np.argmax(factor[places])])
        yield Seen(
            of_the_run=True, severity=INFO if len(places) == 1 and learns_well(facts) else WARNING,
            title=f"`{curve.name}` jumps to {factor[worst]:.3g} times its level at step {finite.numbers[worst]}",
            detail=f"At step {finite.numbers[worst]} {curve.name} is {values[worst]:.3g}, {factor[worst]:.3g} "
            "times the "
            f"median of the {window} steps before; reported from {limits['factor']:g} times on.",
            value=float(factor[worst]), threshold=limits["factor"], **finite.at(places),
        )  # fmt: skip


CHECK = Check(
    name="loss_spike",
    description="Single steps at which the loss is far higher than at the steps before.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"factor": 3.0, "sigmas": 8.0, "window": 10, "of_the_first": 0.6},
    explained_by=("spiking_gradient", "exploding_gradient", *LEARNING_RATE),
    causes=("A batch with outliers or wrong labels.", "A learning rate at the edge of stability."),
    remedies=("Look at the samples of that step.", "Clip the gradient; lower the learning rate."),
)

"""A loss of zero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Too good to be true, for several steps in a row at the end."""
    for curve in facts.losses:
        tiny = np.abs(curve.values) < limits["size"]
        steps = int(limits["steps"])
        if len(tiny) >= steps and tiny[-steps:].all():
            begins = len(tiny) - int(np.argmin(tiny[::-1])) if not tiny.all() else 0
            value = float(np.abs(curve.values[begins:]).max())
            yield Seen(
                severity=WARNING, title=f"`{curve.name}` is as good as zero",
                detail=f"{curve.name} is {value:.1g} at most from step {curve.numbers[begins]} on; reported below "
                f"{limits['size']:g}.",
                value=value, threshold=limits["size"], **curve.at(np.arange(begins, len(curve))),
            )  # fmt: skip


CHECK = Check(
    name="zero_loss",
    description="The loss is zero, or as good as zero.",
    stage=Stage.LOSS,
    run=run,
    thresholds={"size": 1e-7, "steps": 3},
    causes=(
        "The answer is part of the input, or of the target that it is compared with.",
        "A softmax over one class, a mask that leaves nothing, or a weight of zero.",
        "The same few samples were learned by heart.",
    ),
    remedies=("Look at what the loss reads: is it what you think?", "Check shapes, masks and weights of the loss."),
)

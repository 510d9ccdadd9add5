"""A limit of the gradient that leaves next to nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The norm before clipping, beside the limit that was given."""
    ratio = np.full(len(facts.steps), np.nan)
    for place, calls in facts.extra("clipping"):
        ratio[place] = max((call["norm"] / call["limit"] for call in calls if call["limit"] > 0), default=np.nan)
    there = np.isfinite(ratio)
    bad = there & (ratio > limits["ratio"])
    if np.count_nonzero(bad) < max(limits["steps"], limits["steps_share"] * np.count_nonzero(there)):
        return
    value = float(np.median(ratio[bad]))
    yield Seen(
        severity=WARNING, title=f"clipping leaves only 1/{value:.3g} of the gradient",
        detail=f"The norm of the gradient is {value:.3g} times the limit that it is clipped to (median), at "
        f"{np.count_nonzero(bad)} of {np.count_nonzero(there)} recorded steps; reported above {limits['ratio']:g}.",
        value=value, threshold=limits["ratio"], **facts.steps_where(bad),
    )  # fmt: skip


CHECK = Check(
    name="strong_clipping",
    description="The gradient is clipped to a small part of its norm at nearly every step.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"ratio": 200.0, "steps_share": 0.8, "steps": 4},
    evidence=Evidence(("norm",), of="gradient"),
    causes=("A limit of clip_grad_norm_ that is far too small, or a gradient that has exploded.",),
    remedies=("Clip at a norm that is reached now and then: 1.0 is usual.",),
)

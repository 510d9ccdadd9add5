"""Gradients that are there, and exactly zero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING
from endoscope.findings.lasting import lasts


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Weights count; a single bias may be superfluous without harm."""
    norm = facts.parameter_gradients
    if not norm.size:
        return
    there = ~np.isnan(norm)
    bad = norm == 0
    for row in np.flatnonzero(lasts(bad, there, limits["steps_share"], int(limits["steps"]))).tolist():
        tensor = facts.parameters.tensors[row]
        share = float(np.count_nonzero(bad[row]) / np.count_nonzero(there[row]))
        yield Seen(
            of_the_run=True, severity=WARNING if tensor.is_matrix else INFO,
            title=f"the gradient is exactly zero at {share:.0%} of the steps",
            detail=f"The gradient is exactly zero at {share:.0%} of the recorded steps; reported from "
            f"{limits['steps_share']:.0%} on.",
            value=share, threshold=limits["steps_share"], tensor=tensor, **facts.steps_where(bad[row]),
        )  # fmt: skip


CHECK = Check(
    name="zero_gradient",
    description="Parameters whose gradient is exactly zero at nearly all steps.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"steps_share": 0.9, "steps": 4},
    evidence=Evidence(("norm",), of="gradient", page="zeros"),
    explained_by=("dead_units", "bad_initialisation"),
    causes=(
        "Everything behind it is dead: units that are always zero, a saturated function, a clamp.",
        "It is multiplied by zero: a mask, a weight of a loss, or weights that began as zero.",
        "A derivative in the loss that was made by torch.autograd.grad without create_graph=True, so nothing is "
        "learned from it.",
    ),
    remedies=(
        "Look at the nodes that read it, towards the loss: which is the first whose gradient is not zero?",
        "Begin with other weights; check masks, clamps and the weights of the losses.",
    ),
)

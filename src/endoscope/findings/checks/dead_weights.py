"""Weights of which nearly all are zero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import lasts, late


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """In the last steps; weights may well begin as zero."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix and facts.trainable.get(tensor.node, True))
    if not len(weights):
        return
    small = np.maximum(np.abs(rows["q01"][weights]), np.abs(rows["q99"][weights])) < limits["size"]
    share = rows.zero_share()[weights]
    there = late(rows.there[weights], 0.5)
    bad = small | (share > limits["share"])
    for place in np.flatnonzero(lasts(bad, there, 0.9, 3)).tolist():
        value = max(float(np.nanmedian(share[place])), 0.98 if small[place].any() else 0.0)
        yield Seen(
            severity=WARNING, title=f"{value:.0%} of the weights are as good as zero",
            detail=f"{value:.0%} of the elements are smaller than {limits['size']:g}; reported from "
            f"{limits['share']:.0%} on.",
            value=value, threshold=limits["share"], tensor=rows.tensors[int(weights[place])],
            **facts.steps_where(bad[place]),
        )  # fmt: skip


CHECK = Check(
    name="dead_weights",
    description="Nearly all weights of a layer are zero.",
    stage=Stage.WEIGHTS,
    run=run,
    thresholds={"share": 0.95, "size": 1e-5},
    evidence=Evidence(("zeros",)),
    causes=("A weight decay that is too strong.", "Weights that begin as zero and get no gradient."),
    remedies=("Lower the weight decay.", "Begin with other weights."),
)

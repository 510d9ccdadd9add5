"""Weights that nearly all have one sign."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import lasts, late


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Of matrices with enough elements to tell."""
    rows = facts.parameters
    least = int(limits["elements"])
    weights = rows.rows(lambda t: t.is_matrix and min(t.key.shape[:2]) > 1 and math.prod(t.key.shape) >= least)
    if not len(weights):
        return
    negative, positive = rows["q95"][weights] < 0, rows["q05"][weights] > 0
    varied = rows["std"][weights] > 0
    there = late(rows.there[weights], 0.5)
    bad = (negative | positive) & varied
    for place in np.flatnonzero(lasts(bad, there, 0.9, 3)).tolist():
        word = "negative" if negative[place][there[place]].any() else "positive"
        yield Seen(
            severity=WARNING, title=f"nearly all weights are {word}",
            detail=f"More than 95% of its elements are {word} in the last steps.",
            value=0.95, threshold=0.95, tensor=rows.tensors[int(weights[place])], **facts.steps_where(bad[place]),
        )  # fmt: skip


CHECK = Check(
    name="sign_collapse",
    description="Nearly all weights of a layer have the same sign.",
    stage=Stage.WEIGHTS,
    run=run,
    thresholds={"elements": 32},
    evidence=Evidence(("q05", "q50", "q95"), page="mean"),
    causes=("Weights that began with one sign only (torch.rand).", "Steps that pushed all of them in one direction."),
    remedies=("Begin with weights around zero.", "Lower the learning rate; normalise the inputs."),
)

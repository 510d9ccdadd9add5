"""Weights that fade away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import early, late, median_where


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Most weights of the model have become a small part of what they were."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix and facts.trainable.get(tensor.node, True))
    if not len(weights):
        return
    size, there = rows["norm"][weights].astype(np.float64), rows.there[weights]
    first, last = median_where(size, early(there, 0.05)), median_where(size, late(there, 0.1))
    ratio = last / first
    bad = (ratio < limits["shrunk"]) & (first > 0) & (there.sum(axis=1) >= limits["steps"])
    if np.count_nonzero(bad) < limits["share"] * len(weights):
        return
    place = int(np.argmin(np.where(bad, ratio, np.inf)))
    names = tuple(rows.tensors[int(weights[one])].node for one in np.flatnonzero(bad).tolist() if one != place)
    name = rows.tensors[int(weights[place])].node
    yield Seen(
        of_the_run=True, severity=WARNING,
        title=f"the weights have shrunk to {ratio[place]:.1%} of the norm that they began with",
        detail=f"{np.count_nonzero(bad)} of {len(weights)} weights have less than {limits['shrunk']:.0%} of the norm "
        f"that they began with: `{name}` fell from {first[place]:.2g} to {last[place]:.2g}.",
        value=float(ratio[place]), threshold=limits["shrunk"], tensor=rows.tensors[int(weights[place])], also=names,
        **facts.steps_where(there[place] & (size[place] < limits["shrunk"] * first[place])),
    )  # fmt: skip


CHECK = Check(
    name="shrinking_weights",
    description="Most weights of the model fall to a small part of the size that they began with.",
    stage=Stage.WEIGHTS,
    run=run,
    thresholds={"shrunk": 0.2, "share": 0.5, "steps": 6},
    evidence=Evidence(("norm",)),
    explained_by=LEARNING_RATE,
    causes=("A weight decay that is far too strong, or a penalty on weights that outweighs the loss.",),
    remedies=("Lower the weight decay; with AdamW it does not depend on the gradient.",),
)

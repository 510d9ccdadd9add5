"""Attention that looks at one place only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import above, lasts, late, median_where
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The mean sum of squared probabilities: 1 if each row is one-hot, 1/n if it is even."""
    rows = facts.values
    chosen = rows.rows(lambda tensor: _is_attention(facts, tensor, int(limits["places"])))
    if not len(chosen):
        return
    norm, total = rows["norm"][chosen].astype(np.float64), rows["mean"][chosen] * rows["count"][chosen]
    sharpness = norm**2 / total
    there, bad = rows.there[chosen], above(sharpness, limits["sharpness"])
    usual = median_where(sharpness, bad)
    for place in np.flatnonzero(lasts(bad, late(there), 0.8, 3)).tolist():
        yield Seen(
            severity=WARNING, title="nearly every row of attention looks at a single place",
            detail=f"The squares of the probabilities of a row add up to {usual[place]:.2f} (1 means that each "
            "looks at a "
            f"single place); reported from {limits['sharpness']:g} on.",
            value=float(usual[place]), threshold=limits["sharpness"], tensor=rows.tensors[int(chosen[place])],
            **facts.steps_where(bad[place]),
        )  # fmt: skip


def _is_attention(facts: Facts, tensor: Tensor, places: int) -> bool:
    """A softmax inside the network, over enough places."""
    shape = tensor.key.shape
    if facts.type_of(tensor) != "softmax" or len(shape) < 2 or shape[-1] < places:
        return False
    return any(facts.structure.type.get(place) == "parameter" for place in _parents_behind(facts, tensor))


def _parents_behind(facts: Facts, tensor: Tensor) -> set[tuple[str, str, int]]:
    behind = facts.structure.below([tensor.place]) - {tensor.place}
    return {parent for place in behind for parent in facts.structure.parents.get(place, ())}


CHECK = Check(
    name="attention_collapse",
    description="A softmax inside the network is one-hot nearly everywhere.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"sharpness": 0.9, "places": 4},
    evidence=Evidence(("q05", "q50", "q95"), page="std"),
    causes=(
        "Logits that have grown: queries and keys are too large.",
        "The division by the root of the width is missing.",
    ),
    remedies=("Normalise queries and keys; lower the learning rate.", "Divide by the root of the width of a head."),
)

"""Activations that are far too large or too small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_no_normalisation
from endoscope.findings.check import LEARNING_RATE, START, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import above, below, lasts, median_where


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The spread of what modules return."""
    rows = facts.values
    chosen = rows.rows(lambda t: t.key.kind in ("computed", "output") and t.key.batch_dim >= 0 and t.is_float)
    if not len(chosen):
        return
    std, there = rows["std"][chosen], rows.there[chosen]
    large = above(std, limits["high"])
    # All zero is another matter: dead units, or a branch that begins at zero.
    small = below(std, limits["low"]) & (rows["abs_max"][chosen] > 0) & (rows["count"][chosen] > 1)
    for bad, word, limit in ((large, "large", limits["high"]), (small, "small", limits["low"])):
        usual = median_where(std, bad)
        for place in np.flatnonzero(lasts(bad, there, 0.5, 3)).tolist():
            node = rows.tensors[int(chosen[place])].node
            yield Seen(
                severity=WARNING,
                title=f"activations are very {word}: their standard deviation is {usual[place]:.2g}",
                detail=f"The standard deviation of `{node}` is {usual[place]:.2g} (median); "
                f"reported {'above' if word == 'large' else 'below'} {limit:g}.",
                value=float(usual[place]), threshold=limit, tensor=rows.tensors[int(chosen[place])], cause=word,
                **facts.steps_where(bad[place]),
            )  # fmt: skip


CHECK = Check(
    name="scale_range",
    description="The standard deviation of activations is far outside of what networks work with.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"low": 1e-5, "high": 300.0},
    quantity="activation_std",
    evidence=Evidence(("std",)),
    explained_by=(*START, *LEARNING_RATE),
    causes=(
        "Weights that began too large or too small for the size of the layer.",
        "Inputs that are not normalised.",
        "Steps that were too large.",
    ),
    remedies=("Normalise the inputs; use He or Glorot initialisation.",),
    remedies_where=((has_no_normalisation, "Add normalisation layers."),),
)

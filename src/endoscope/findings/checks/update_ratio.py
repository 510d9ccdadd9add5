"""How far one step moves the weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING
from endoscope.findings.lasting import above, median_where


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The applied change, not learning rate times gradient: optimizers scale, clip and decay."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix)
    if not len(weights):
        return
    ratio = facts.parameter_updates[weights] / rows["norm"][weights]
    moving = np.isfinite(ratio) & (ratio > 0)
    counted = np.count_nonzero(moving, axis=1) >= limits["steps"]
    usual = np.where(counted, median_where(ratio, moving), np.nan)
    for place in np.flatnonzero(above(usual, limits["high"])).tolist():
        value, bad = float(usual[place]), above(ratio[place], limits["high"])
        yield Seen(
            severity=ERROR if value > limits["error_high"] else WARNING, title="steps are too large",
            detail=f"A step changes the weight by {value:.2g} of its norm (median); about 0.001 is usual, and "
            "more than "
            f"{limits['high']:g} is reported.",
            value=value, threshold=limits["high"], tensor=rows.tensors[int(weights[place])], cause="high",
            **facts.steps_where(bad),
        )  # fmt: skip
    if counted.any() and np.nanmax(usual) < limits["low"]:
        place = int(np.nanargmax(usual))
        yield Seen(
            severity=WARNING, title="steps are too small",
            detail=f"A step changes no weight by more than {usual[place]:.1e} of its norm (median); about 0.001 "
            "is usual, "
            f"and less than {limits['low']:g} is reported.",
            value=float(usual[place]), threshold=limits["low"], tensor=rows.tensors[int(weights[place])], cause="low",
            **facts.steps_where(moving[place]),
        )  # fmt: skip


CHECK = Check(
    name="update_ratio",
    description="One step changes weights by a large part of their size, or by next to nothing.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"high": 0.1, "error_high": 1.0, "low": 1e-5, "steps": 5},
    evidence=Evidence(("norm",), of="update"),
    causes=("A learning rate that is too large, or too small.", "Weights that began too small, or too large."),
    remedies=(
        "Change the learning rate so that a step changes weights by about a thousandth.",
        "Warm the learning rate up; clip the gradient.",
    ),
)

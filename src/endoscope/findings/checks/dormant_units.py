"""Units behind a ReLU that are next to silent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import units
from endoscope.findings.architecture import has_no_normalisation
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.checks.dead_units import rectified
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING

_STEPS = 10  # the last ones


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The mean of a unit beside the mean of its layer, in the last steps; dead units have a check of their own."""
    sums: dict[int, np.ndarray] = {}
    highest: dict[int, np.ndarray] = {}
    places: dict[int, list[int]] = {}
    for found in units.backwards(facts, rectified(facts), _STEPS):
        row, mean = found.tensor.row, found.mean.mean(axis=0).astype(np.float64)
        if row in sums and len(sums[row]) != len(mean):
            continue
        sums[row] = sums.get(row, 0.0) + mean
        now = found.abs_max.max(axis=0)
        highest[row] = np.fmax(highest.get(row, now), now)
        places.setdefault(row, []).append(found.place)
    for row, total in sums.items():
        score = total / total.mean() if total.mean() > 0 else np.ones(len(total))
        share, dead = float(np.mean(score <= limits["tau"])), float(np.mean(highest[row] == 0))
        if len(places[row]) < 5 or len(total) < 8 or share < limits["share"] or dead >= 0.5:
            continue
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[places[row]] = True
        yield Seen(
            severity=WARNING, title=f"{share:.0%} of {len(total)} units are almost always near zero",
            detail=f"{share:.0%} of {len(total)} units have a mean below {limits['tau']:g} of the mean of their layer; "
            f"reported from {limits['share']:.0%} on.",
            value=share, threshold=limits["share"], tensor=facts.values.tensors[row], **facts.steps_where(mask),
        )  # fmt: skip


CHECK = Check(
    name="dormant_units",
    description="Most units of a layer are almost silent, compared with the mean of the layer.",
    stage=Stage.FORWARD,
    run=run,
    needs_harm=True,
    thresholds={"tau": 0.025, "share": 0.65},
    evidence=Evidence(("abs_mean",), units="abs_max"),
    explained_by=("dead_units",),
    causes=("Targets that move (reinforcement learning, continual learning).", "A few units that have become huge."),
    remedies=("Begin those units anew from time to time.", "Lower the learning rate."),
    remedies_where=((has_no_normalisation, "Add a normalisation layer."),),
)

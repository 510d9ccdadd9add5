"""Representations that use fewer and fewer directions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_attention
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Effective rank, in the steps for which singular values were recorded, compared with the beginning."""
    ranks: dict[int, list[tuple[int, float]]] = {}
    for place, entries in facts.extra("spectra"):
        for node, role, pass_, of, rank, _ in entries:
            row = facts.values.row_of.get((node, role, pass_)) if of == "value" else None
            if row is not None and rank is not None:
                ranks.setdefault(row, []).append((place, float(rank)))
    for row, found in ranks.items():
        tensor = facts.values.tensors[row]
        if len(found) < limits["steps"] or tensor.key.kind not in ("computed", "output"):
            continue
        third = max(1, len(found) // 3)
        first, last = (float(np.median([rank for _, rank in part])) for part in (found[:third], found[-third:]))
        fall = 1 - last / first if first > 0 else 0.0
        if fall < limits["fall"] or first < limits["rank"]:
            continue
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[[place for place, rank in found if rank < (1 - limits["fall"]) * first]] = True
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"the effective rank fell from {first:.3g} to {last:.3g}",
            detail=f"The effective rank fell from {first:.3g} to {last:.3g}, by {fall:.0%}; reported from "
            f"{limits['fall']:.0%} on.",
            value=fall, threshold=limits["fall"], tensor=tensor, **facts.steps_where(mask),
        )  # fmt: skip


CHECK = Check(
    name="rank_collapse",
    description="The effective rank of activations falls to less than half. Needs recorded singular values.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"fall": 0.6, "rank": 3.0, "steps": 4},
    evidence=Evidence(("std",)),
    causes=(
        "Self-supervised learning that found a shortcut.",
        "Too much decay.",
    ),
    causes_where=((has_attention, "Attention without skip connections."),),
    remedies=("Add a term that keeps variances up.", "Lower the weight decay."),
    remedies_where=((has_attention, "Look whether each attention has its skip connection."),),
)

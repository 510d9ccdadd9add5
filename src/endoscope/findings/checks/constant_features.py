"""Features of the input that never change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import units
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING

_STEPS = 12


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The same for every sample of every step that is looked at."""
    rows = facts.values
    chosen = rows.rows(lambda t: t.key.kind == "input" and t.key.batch_dim == 0 and t.is_float and t.key.shape[0] > 1)
    lowest: dict[int, np.ndarray] = {}
    highest: dict[int, np.ndarray] = {}
    moves: dict[int, np.ndarray] = {}
    steps: dict[int, list[int]] = {}
    for found in units.backwards(facts, set(chosen.tolist()), _STEPS):
        row, mean = found.tensor.row, found.mean.ravel()
        if row in moves and len(moves[row]) != len(mean):
            continue
        lowest[row] = np.fmin(lowest.get(row, mean), mean)
        highest[row] = np.fmax(highest.get(row, mean), mean)
        moves[row] = moves.get(row, np.zeros(len(mean), dtype=bool)) | (found.std.ravel() > 0)
        steps.setdefault(row, []).append(found.place)
    for row, moving in moves.items():
        same = ~moving & (highest[row] == lowest[row])
        share = float(same.mean())
        if len(steps[row]) < limits["steps"] or len(same) < 2 or share < limits["share"]:
            continue
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[steps[row]] = True
        yield Seen(
            severity=WARNING, title=f"{same.sum()} of {len(same)} features are the same for every sample",
            detail=f"{same.sum()} of {len(same)} features of the input are the same for every sample; reported from "
            f"{limits['share']:.0%} on.",
            value=share, threshold=limits["share"], tensor=rows.tensors[row], **facts.steps_where(mask),
        )  # fmt: skip


CHECK = Check(
    name="constant_features",
    description="Many features of the input are the same for every sample.",
    stage=Stage.DATA,
    run=run,
    thresholds={"share": 0.5, "steps": 3},
    evidence=Evidence(("std",), units="std"),
    causes=(
        "Columns that were not filled, or were overwritten with one value.",
        "Padding that is larger than the data.",
    ),
    remedies=("Look at the loader: are these columns read?", "Leave out features that never change."),
)

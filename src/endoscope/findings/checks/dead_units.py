"""Units behind a ReLU that are zero for every sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import units
from endoscope.findings.architecture import has_no_normalisation, has_rectifier
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING
from endoscope.findings.functions import DROPOUTS, RECTIFIERS
from endoscope.findings.rows import Tensor


def rectified(facts: Facts) -> set[int]:
    """Rows of `facts.values` that are never negative and often exactly zero, as behind a ReLU."""
    rows = facts.values
    zero, low = rows.zero_share(), rows["min"]
    nonnegative = ~(low < 0).any(axis=1) & (low == 0).any(axis=1)
    computed = rows.rows(lambda t: t.key.kind in ("computed", "output") and t.key.batch_dim >= 0 and t.is_float)
    above = np.asarray((rows["max"] > 0).any(axis=1))
    often = np.nanmax(np.where(np.isnan(zero), 0, zero), axis=1, initial=0) > 0.05
    return {
        row for row in computed.tolist()
        if nonnegative[row] and often[row] and (above[row] or facts.type_of(rows.tensors[row]) in RECTIFIERS | DROPOUTS)
    }  # fmt: skip


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Backwards in time: a unit is dead since the step after which it never was above zero."""
    wanted = rectified(facts)
    highest: dict[int, np.ndarray] = {}
    shares: dict[int, list[tuple[int, float]]] = {row: [] for row in wanted}
    for found in units.backwards(facts, wanted):
        row, now = found.tensor.row, found.abs_max.max(axis=0)
        if row in highest and len(highest[row]) != len(now):
            continue  # another shape: its units are others
        highest[row] = np.fmax(highest.get(row, now), now)
        shares[row].append((found.place, float(np.mean(highest[row] <= limits["size"]))))
    for row in sorted(highest):
        tensor = facts.values.tensors[row]
        # Few steps, or few samples, are no proof that a unit never fires.
        if len(shares[row]) >= limits["steps"] and len(highest[row]) >= 4:
            yield from _judge(facts, tensor, shares[row], len(highest[row]), limits)


def _judge(facts: Facts, tensor: Tensor, shares: list[tuple[int, float]], count: int, limits: Limits) -> Iterator[Seen]:
    share = shares[-1][1] if len(shares) <= 10 else shares[9][1]  # over the last ten steps that were looked at
    began = shares[-1][1] if len(shares) > 1 else 1.0
    died = share >= limits["died"] and began <= limits["died"] / 3
    if share < limits["share"] and not died:
        return
    since = min(place for place, found in shares if found >= min(share, limits["share"]))
    mask = np.zeros(len(facts.steps), dtype=bool)
    mask[since:] = facts.values.there[tensor.row, since:]
    yield Seen(
        severity=ERROR if share >= limits["error_share"] else WARNING,
        title=f"{share:.0%} of {count} units are zero for every sample",
        detail=f"{share:.0%} of {count} units are zero for every sample of the last steps; "
        f"reported from {limits['share']:.0%} on.",
        value=share, threshold=limits["share"], tensor=tensor, **facts.steps_where(mask),
    )  # fmt: skip


CHECK = Check(
    name="dead_units",
    description="Units after a ReLU (channels of images) that are zero for every sample, so they cannot learn.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"share": 0.7, "died": 0.55, "error_share": 0.95, "size": 1e-7, "steps": 5},
    evidence=Evidence(("zeros",), units="abs_max"),
    causes=(
        "A step with a large learning rate pushed the biases far below zero.",
        "Biases that begin very negative, or inputs that are not centred.",
    ),
    remedies=(
        "Lower the learning rate, or warm it up.",
        "Begin with biases of zero and He initialisation.",
    ),
    remedies_where=(
        (has_rectifier, "Use LeakyReLU, GELU or SiLU instead of ReLU."),
        (has_no_normalisation, "Put a normalisation before the activation."),
    ),
)

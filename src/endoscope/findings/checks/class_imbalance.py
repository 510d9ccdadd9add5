"""Targets of which nearly all are the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import late
from endoscope.findings.rows import Tensor
from endoscope.query import bulk
from endoscope.schema.stats import HISTOGRAM_BINS


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The share of the commonest target, at least."""
    rows = facts.values
    for row in rows.rows(lambda tensor: _is_class(tensor) and facts.is_compared(tensor)).tolist():
        there = rows.there[row]
        low, high = rows["min"][row, there], rows["max"][row, there]
        if len(low) < limits["steps"] or not _are_classes(facts, rows.tensors[row], there) or low.min() == high.max():
            continue  # always the same: perhaps not a class at all
        share = _largest_share(facts, row, there)
        if share > limits["share"]:
            yield Seen(
                severity=WARNING, title=f"{share:.0%} of the targets are one class",
                detail=f"{share:.0%} of the targets or more are the same; reported above {limits['share']:.0%}.",
                value=share, threshold=limits["share"], tensor=rows.tensors[row],
                **facts.steps_where(late(there[None], 1.0)[0]),
            )  # fmt: skip


def _is_class(tensor: Tensor) -> bool:
    shape = tensor.key.shape
    return tensor.key.kind == "target" and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1))


def _are_classes(facts: Facts, tensor: Tensor, there: np.ndarray) -> bool:
    """Whole numbers, or floats that are all zero or one: then squares are what they are squares of."""
    if not tensor.is_float:
        return True
    rows, row = facts.values, tensor.row
    total = rows["mean"][row, there] * rows["count"][row, there]
    in_range = bool((rows["min"][row, there] >= 0).all() and (rows["max"][row, there] <= 1).all())
    return in_range and bool(np.allclose(rows["norm"][row, there] ** 2, total, rtol=1e-3))


def _largest_share(facts: Facts, row: int, there: np.ndarray) -> float:
    """Share of the commonest class: whoever is in another class is at least 1 away from it."""
    rows, key = facts.values, facts.values.tensors[row].key
    middle = float(np.round(np.median(rows["q50"][row, there])))
    away = rows["std"][row, there].astype(np.float64) ** 2 + (rows["mean"][row, there] - middle) ** 2
    certain = max(float(rows.zero_share()[row, there].mean()), 1 - float(away.mean()))
    if float(rows["max"][row, there].max()) - float(rows["min"][row, there].min()) < 2:
        return certain
    # Each class below 4 has a bin of its own; of others, two and more share one.
    found = bulk.histograms(facts.recording, bulk.Which(key.node, "value", key.role, key.pass_))
    counts = np.zeros(HISTOGRAM_BINS)
    for first, histogram in zip(found["hist_first"].to_pylist(), found["hist"].to_pylist(), strict=True):
        counts[first : first + len(histogram)] += histogram
    return max(certain, float(counts.max() / max(counts.sum(), 1)))


CHECK = Check(
    name="class_imbalance",
    description="One class is far more frequent than all others together.",
    stage=Stage.DATA,
    run=run,
    thresholds={"share": 0.88, "steps": 3},
    evidence=Evidence(("mean",)),
    causes=("The data is like that.", "A filter or a join has removed samples of the other classes."),
    remedies=("Weight the loss by class, or draw samples evenly: WeightedRandomSampler.", "Look beyond accuracy."),
)

"""Whether a training goes well, by its losses and scores: then what only may do harm is worth less of a word."""

from __future__ import annotations

import numpy as np

from endoscope.findings.curves import Curve, fall, first_level, last_level
from endoscope.findings.facts import Facts
from endoscope.findings.functions import LOSSES_OF_CLASSES


def learns_well(facts: Facts) -> bool:
    """Whether the one loss has fallen far and stays low, as those on held-out data do, and scores have risen."""
    if len({curve.name for curve in facts.losses}) != 1:
        return False
    held_out = [curve for curve in facts.metrics if curve.is_loss and curve.is_held_out and len(curve) >= 4]
    scores = [curve.finite.values for curve in facts.metrics if curve.is_score and len(curve.finite) >= 4]
    chance = guessing(facts)[0] if facts.is_supervised else 0.0
    falls = all(_has_fallen(curve, chance) for curve in facts.losses) and all(map(_stays_low, held_out))
    return falls and all(last_level(values) > first_level(values) for values in scores)


def _has_fallen(curve: Curve, chance: float) -> bool:
    """By more than half, also of what guessing costs, and it is not on its way back; below zero there is no half."""
    values = curve.values
    if len(values) < 12 or not np.isfinite(values).all() or (values < 0).any():
        return False
    return fall(values) > 0.5 and _stays_low(curve) and not last_level(values) > 0.5 * chance > 0


def _stays_low(curve: Curve) -> bool:
    """Whether it ends about where it was lowest, as a part of how far it has come."""
    if not len(curve) or not np.isfinite(curve.values[-1]):
        return False
    values = curve.finite.values
    parts = [float(np.median(part)) for part in np.array_split(values, min(5, max(len(values) // 2, 1)))]
    return len(parts) > 0 and parts[-1] - min(parts) <= 0.1 * max(first_level(values) - min(parts), 0.0)


def guessing(facts: Facts) -> tuple[float, str]:
    """What it costs to answer the same for every sample, and in which words; 0 if that is not known."""
    losses = facts.remarks("loss")
    if len(losses) != 1 or len(losses[0]["shapes"]) < 2:
        return 0.0, ""
    type_, shapes = losses[0]["type"], losses[0]["shapes"]
    if type_ in LOSSES_OF_CLASSES and len(shapes[0]) == 2 and len(shapes[1]) == 1 and shapes[0][1] > 1:
        return float(np.log(shapes[0][1])), f"guessing among {shapes[0][1]} classes"
    targets = [t for t in facts.values.tensors if t.key.kind == "target" and t.is_float]
    if len(targets) != 1:
        return 0.0, ""
    rows, row = facts.values, targets[0].row
    there = rows.there[row]
    mean, std = rows["mean"][row, there].astype(np.float64), rows["std"][row, there].astype(np.float64)
    if type_ == "mse_loss" and len(mean):
        return float((std**2).mean() + mean.var()), "always saying the mean of the targets"
    if (
        type_ == "binary_cross_entropy_with_logits"
        and len(mean)
        and set(np.unique(rows["max"][row, there])) <= {0.0, 1.0}
    ):
        p = float(np.clip(mean.mean(), 1e-6, 1 - 1e-6))
        return float(-p * np.log(p) - (1 - p) * np.log(1 - p)), "always saying how often the answer is yes"
    return 0.0, ""

"""Parameters that have a gradient and do not move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO, WARNING
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """An update of zero, or none at all, at every step with a gradient."""
    gradient, update = facts.parameter_gradients, facts.parameter_updates
    if not gradient.size:
        return
    has_gradient = gradient > 0
    moves = (update > 0).any(axis=1) | _changes(facts)
    enough = np.count_nonzero(has_gradient, axis=1) >= limits["steps"]
    still = np.flatnonzero(enough & ~moves).tolist()
    learners = np.count_nonzero(enough)
    for row in still:
        tensor = facts.parameters.tensors[row]
        if facts.trainable.get(tensor.node, True):
            yield _seen(facts, tensor, has_gradient[row], np.isnan(update[row]).all(), len(still) == learners, limits)


def _changes(facts: Facts) -> np.ndarray:
    """Whether a parameter has other values at the end than at first, whoever changed it."""
    found = np.zeros(len(facts.parameters), dtype=bool)
    for statistic in ("mean", "norm"):
        values = facts.parameters[statistic]
        found |= np.nanmax(values, axis=1, initial=-np.inf) > np.nanmin(values, axis=1, initial=np.inf)
    return found


def _seen(facts: Facts, tensor: Tensor, mask: np.ndarray, in_none: bool, all_still: bool, limits: Limits) -> Seen:
    count = int(np.count_nonzero(mask))
    why = "no optimizer that was seen holds it" if in_none else "its optimizer adds zero"
    which = " No parameter of the model moves." if all_still else ""
    return Seen(
        severity=ERROR if all_still else WARNING if tensor.is_matrix else INFO, title="parameter does not move",
        detail=f"It had a gradient at {count} recorded steps and did not change at any: {why}.{which}",
        value=0.0, threshold=0.0, tensor=tensor, cause="none" if in_none else "zero", **facts.steps_where(mask),
    )  # fmt: skip


CHECK = Check(
    name="unchanged_parameters",
    description="Parameters that can learn and have a gradient, but keep their values.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"steps": 3},
    evidence=Evidence(("norm",), of="update"),
    causes=(
        "The parameter was not given to the optimizer: a layer added later, or a list of groups that misses it.",
        "A learning rate of zero for it, or one so small that the change is lost in rounding.",
        "optimizer.step() is never called.",
    ),
    remedies=(
        "Build the optimizer from model.parameters() after the model is complete.",
        "Check the learning rates of all groups, and the schedule.",
        "If it is frozen on purpose, say so: parameter.requires_grad_(False).",
    ),
)

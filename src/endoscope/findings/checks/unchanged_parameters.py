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
    yield from _stops(facts, limits)
    has_gradient = gradient > 0
    moves = (update > 0).any(axis=1) | _changes(facts)
    enough = np.count_nonzero(has_gradient, axis=1) >= limits["steps"]
    still = np.flatnonzero(enough & ~moves).tolist()
    learners = np.count_nonzero(enough)
    for row in still:
        tensor = facts.parameters.tensors[row]
        if facts.trainable.get(tensor.node, True):
            yield _seen(facts, tensor, has_gradient[row], np.isnan(update[row]).all(), len(still) == learners, limits)


def _stops(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """All weights of the model moved at first, and none of them does any more, although they have gradients."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix and facts.trainable.get(tensor.node, True))
    order = np.argsort(facts.numbers, kind="stable")
    update, gradient = facts.parameter_updates[weights][:, order], facts.parameter_gradients[weights][:, order]
    moved = (update > 0).any(axis=0)
    if not moved.any():
        return
    of_those = gradient[:, moved]
    usual = float(np.median(of_those[of_those > 0])) if (of_those > 0).any() else 0.0
    largest = np.nanmax(np.where(np.isnan(gradient), -1.0, gradient), axis=0)
    broken = facts.updates["nans"].max(initial=0, where=facts.updates.there) > 0
    if broken:
        return  # NaN is added to NaN: that is another matter
    # Where training has arrived the gradient is tiny; where it was dropped there is none.
    goes_on = (largest < 0) | (largest > limits["stopped_gradient"] * usual)
    trains = np.isin(facts.types[order], np.unique(facts.types[order][moved].astype(str)))
    seen = np.flatnonzero(goes_on & trains)
    if len(seen) < limits["steps"]:
        return
    last = int(np.flatnonzero(moved)[-1])
    after = seen[seen > last]
    if len(after) < max(limits["stopped_steps"], limits["stopped"] * len(seen)):
        return
    why = "the optimizer adds zero" if np.isfinite(update[:, after]).any() else "no optimizer updates them"
    mask = np.zeros(len(facts.steps), dtype=bool)
    mask[order[after]] = True
    yield Seen(
        severity=WARNING, title=f"none of {len(weights)} weights moves any more",
        detail=f"Since step {facts.numbers[order[last]]} none of {len(weights)} weights has changed, at {len(after)} "
        f"of {len(seen)} recorded steps: {why}.",
        value=len(after) / len(seen), threshold=limits["stopped"], tensor=rows.tensors[int(weights[0])], cause="stops",
        causes=(
            "A learning rate that a schedule has brought to zero.", "A gradient scaler that skips every step.",
            "Gradients that are dropped before optimizer.step(), such as by a zero_grad() in the wrong place.",
        ),
        **facts.steps_where(mask),
    )  # fmt: skip


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
        severity=ERROR if all_still else WARNING if tensor.is_matrix else INFO,
        title="the parameter has a gradient and does not move",
        detail=f"The parameter had a gradient at {count} recorded steps and did not change at any: {why}.{which}",
        value=0.0, threshold=0.0, tensor=tensor, cause="none" if in_none else "zero", **facts.steps_where(mask),
    )  # fmt: skip


CHECK = Check(
    name="unchanged_parameters",
    description="Parameters that can learn and have a gradient, but keep their values.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"steps": 3, "stopped": 0.25, "stopped_steps": 5, "stopped_gradient": 0.01},
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

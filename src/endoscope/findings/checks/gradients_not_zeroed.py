"""Gradients of earlier steps that nobody has cleared, so that they add up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """What was in `.grad` before the first backward pass of a step, although an optimizer had used it before.

    The recorder looks at each step. Whoever adds up gradients on purpose has steps without an update, or many passes
    in one step; here every step has an update, and what it uses was never cleared.
    """
    left = np.full(facts.parameter_updates.shape, np.nan)
    for place, norms in facts.extra("not_cleared"):
        for name, norm in norms.items():
            row = facts.parameters.row_of.get((name, "", 1))
            if row is not None:
                left[row, place] = norm
    later = facts.numbers > facts.numbers.min() if len(facts.numbers) else np.zeros(0, dtype=bool)
    found = {}
    for row in range(len(facts.parameters)):
        there = later & np.isfinite(facts.parameter_gradients[row])
        moved = there & np.isfinite(facts.parameter_updates[row])
        kept = there & (left[row] > 0)
        steps = np.count_nonzero(there)
        if steps >= limits["steps"] and min(moved.sum(), kept.sum()) >= limits["steps_share"] * steps:
            found[row] = kept
    if not found:
        return
    row = max(found, key=lambda one: float(np.nan_to_num(left[one]).sum()))
    own = facts.parameter_gradients[row]
    counted = found[row] & (own > 0)
    ratio = float(np.median(left[row][counted] / own[counted])) if counted.any() else float("inf")
    names = tuple(facts.parameters.tensors[one].node for one in found if one != row)
    told = f"`{facts.parameters.tensors[row].node}`" + (f" and {len(names)} other parameters" if names else "")
    yield Seen(
        of_the_run=True, severity=ERROR, title=f"the gradients of {told} are not set to zero between steps",
        detail=f"At {np.count_nonzero(found[row])} recorded steps the gradients of earlier steps were still there "
        f"when backward() began, in {len(found)} parameters, and were added to: their norm is {ratio:.2g} times that "
        "of the step's own gradient (median).",
        value=ratio, threshold=0.0, tensor=facts.parameters.tensors[row], also=names, **facts.steps_where(found[row]),
    )  # fmt: skip


CHECK = Check(
    name="gradients_not_zeroed",
    description="The gradients of the last step are still there, and the new ones are added to them.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"steps_share": 0.8, "steps": 3},
    evidence=Evidence(("norm",), of="gradient"),
    causes=(
        "optimizer.zero_grad() is missing.",
        "It is called for another optimizer or model, or outside of the loop.",
    ),
    remedies=("Call optimizer.zero_grad() before each backward().",),
)

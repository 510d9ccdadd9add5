"""One loss drowns another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Norms of the gradients of two losses, over the parameters that both reach in the same steps."""
    norms = {name: _parameter_norms(facts, name) for name in facts.gradients}
    for one, other in itertools.combinations(norms, 2):
        a, b = norms[one], norms[other]
        shared = (a > 0) & (b > 0)
        with_both = np.asarray(shared.any(axis=0))
        if np.count_nonzero(with_both) < limits["steps"]:
            continue
        totals = [np.sqrt((np.where(shared, part, 0) ** 2).sum(axis=0))[with_both] for part in (a, b)]
        ratio = float(np.median(totals[0] / totals[1]))
        large, small = (one, other) if ratio > 1 else (other, one)
        if max(ratio, 1 / ratio) <= limits["ratio"]:
            continue
        row = int(np.argmax(np.where(shared, np.maximum(a, b), 0).sum(axis=1)))
        yield Seen(
            severity=WARNING,
            title=f"the gradient of the loss {large!r} is {max(ratio, 1 / ratio):.3g} times that of {small!r}",
            detail=f"The gradient of {large!r} is {max(ratio, 1 / ratio):.3g} times that of {small!r} in the "
            "parameters "
            f"that both reach (median over steps); reported above {limits['ratio']:g}.",
            value=max(ratio, 1 / ratio), threshold=limits["ratio"], tensor=facts.parameters.tensors[row],
            cause=f"{one} {other}", **facts.steps_where(with_both),
        )  # fmt: skip


def _parameter_norms(facts: Facts, loss: str) -> np.ndarray:
    rows = facts.gradients[loss]
    norms = np.full((len(facts.parameters), len(facts.steps)), np.nan)
    for tensor in rows.tensors:
        row = facts.parameters.row_of.get(tensor.place)
        if row is not None:
            norms[row] = rows["norm"][tensor.row]
    return norms


CHECK = Check(
    name="loss_imbalance",
    description="The gradient of one loss is many times that of another in the parameters that they share.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"ratio": 100.0, "steps": 3},
    evidence=Evidence(("norm",), of="gradient"),
    explained_by=("conflicting_losses",),
    causes=("Losses of different scale are added without weights.", "One is summed, the other averaged."),
    remedies=("Weight the losses so that their gradients are of similar size.", "Average over the batch in both."),
)

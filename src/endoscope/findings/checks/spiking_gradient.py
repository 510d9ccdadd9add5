"""Single steps with a gradient far larger than before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import LEARNING_RATE, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.curves import past_median, past_spread
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Compare the norm over all parameters, before clipping, with the steps before, for each type of step."""
    norms = facts.parameter_gradients
    squares = np.where(np.isfinite(norms), norms, 0.0) ** 2
    clipped = facts.norms_before_clipping()
    total = np.where(np.isfinite(clipped), clipped, np.sqrt(squares.sum(axis=0)))
    window = int(limits["window"])
    bad = np.zeros(len(total), dtype=bool)
    factor = np.zeros(len(total))
    for type_ in dict.fromkeys(facts.types.tolist()):
        rows = np.flatnonzero((facts.types == type_) & (total > 0))
        usual, spread = past_median(total[rows], window), past_spread(total[rows], window)
        factor[rows] = np.nan_to_num(total[rows] / usual)
        # A gradient that had become tiny and is as large as in the beginning is no spike worth a word.
        start = np.median(total[rows][:window]) if len(rows) else 0.0
        bad[rows] = (factor[rows] > limits["factor"]) & (total[rows] > usual + 6 * spread) & (total[rows] > 2 * start)
    if not bad.any() or bad.mean() > 0.2:
        return
    worst = int(np.argmax(np.where(bad, factor, 0)))
    row = int(np.argmax(squares[:, worst]))
    name = facts.parameters.tensors[row].node
    yield Seen(
        of_the_run=True, severity=WARNING,
        title=f"the norm of the whole gradient jumps to {factor[worst]:.3g} times its level at step "
        f"{facts.numbers[worst]}, most of it in `{name}`",
        detail=f"At step {facts.numbers[worst]} the norm of the gradient is {factor[worst]:.3g} times the "
        "median of the "
        f"{window} recorded steps before; reported above {limits['factor']:g}. Most of it is in `{name}`.",
        value=float(factor[worst]), threshold=limits["factor"], tensor=facts.parameters.tensors[row],
        **facts.steps_where(bad),
    )  # fmt: skip


CHECK = Check(
    name="spiking_gradient",
    description="Single steps at which the gradient is many times larger than at the steps before.",
    stage=Stage.BACKWARD,
    run=run,
    needs_harm=True,
    thresholds={"factor": 15.0, "window": 10},
    evidence=Evidence(("norm",), of="gradient", past=True),
    explained_by=LEARNING_RATE,
    causes=("A batch with an outlier or with a wrong label.", "A learning rate at the edge of stability."),
    remedies=(
        "Look at the samples of that step.",
        "Clip the gradient: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).",
        "Lower the learning rate.",
    ),
)

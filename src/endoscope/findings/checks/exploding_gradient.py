"""Gradients that are huge, or that grow out of all proportion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_no_normalisation, is_recurrent
from endoscope.findings.check import LEARNING_RATE, START, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING
from endoscope.findings.lasting import above


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Look at the norm over all parameters; the parameter with most of it is named."""
    norms = facts.parameter_gradients
    if not norms.size or any(tensor.key.dtype == "float16" for tensor in facts.values.tensors):
        return  # with 16-bit floats the loss is scaled up on purpose
    squares = np.where(np.isfinite(norms), norms, 0.0) ** 2
    total = np.sqrt(squares.sum(axis=0))
    there = total > 0
    if np.count_nonzero(there) < 3:
        return
    first = np.median(total[there][: max(3, np.count_nonzero(there) // 10)])
    # Large by any measure, or large beside what it was at first.
    limit = min(limits["norm"], max(limits["growth"] * float(first), limits["least"]))
    bad = above(total, limit)
    if np.count_nonzero(bad) < 3:
        return
    largest = float(total.max())
    row = int(np.argmax(squares[:, bad].sum(axis=1)))
    name = facts.parameters.tensors[row].node
    yield Seen(
        severity=ERROR if largest > limits["error_norm"] else WARNING,
        title=f"the norm of the whole gradient reaches {largest:.2g}, most of it in `{name}`",
        detail=f"The norm of the gradient over all parameters reaches {largest:.2g}, {float(first):.2g} at first; "
        f"reported above {limit:.2g}. Most of it is in `{name}`.",
        value=largest, threshold=float(limit), tensor=facts.parameters.tensors[row], **facts.steps_where(bad),
    )  # fmt: skip


CHECK = Check(
    name="exploding_gradient",
    description="The norm of the gradient over all parameters is huge at several steps.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"norm": 1e3, "growth": 100.0, "least": 30.0, "error_norm": 1e6},
    evidence=Evidence(("norm",), of="gradient"),
    explained_by=(*START, *LEARNING_RATE),
    causes=(
        "Weights that began too large.",
        "A learning rate that is too large.",
        "Inputs or targets that are not normalised, or a loss that is summed and not averaged.",
    ),
    causes_where=((is_recurrent, "A long recurrence."),),
    remedies=(
        "Clip the gradient: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).",
        "Lower the learning rate; normalise inputs and targets; average the loss.",
        "Use smaller initial weights.",
    ),
    remedies_where=(
        (has_no_normalisation, "Add normalisation layers."),
        (is_recurrent, "Cut long sequences into parts."),
    ),
)

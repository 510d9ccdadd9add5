"""Batches whose targets differ far more than chance allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import late
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Spread of the means of batches, compared with the spread within all samples divided by the size of a batch."""
    rows = facts.values
    # What no function compares with an answer may be an action, or a step of time.
    chosen = rows.rows(
        lambda t: (
            t.key.kind == "target"
            and t.key.batch_dim == 0
            and _is_flat(t.key.shape)
            and _are_labels(facts, t)
            and facts.is_compared(t)
        )
    )
    for row in chosen.tolist():
        for type_ in dict.fromkeys(facts.types.tolist()):
            there = rows.there[row] & (facts.types == type_) & (rows["count"][row] >= 4)
            if np.count_nonzero(there) < limits["steps"]:
                continue
            mean, std = rows["mean"][row, there].astype(np.float64), rows["std"][row, there].astype(np.float64)
            between, within = float(mean.var()), float((std**2).mean())
            expected = (between + within) / float(np.median(rows["count"][row, there]))
            ratio = between / expected if expected > 0 else 0.0
            if ratio > limits["ratio"]:
                yield Seen(
                    of_the_run=True, severity=WARNING,
                    title="batches are not shuffled: their mean targets differ too much",
                    detail=f"The mean target varies from batch to batch {ratio:.3g} times as much as it would "
                    "if samples "
                    f"were drawn by chance (variance); reported above {limits['ratio']:g}.",
                    value=ratio, threshold=limits["ratio"], tensor=rows.tensors[row],
                    **facts.steps_where(late(there[None], 1.0)[0]),
                )  # fmt: skip


def _are_labels(facts: Facts, tensor: Tensor) -> bool:
    """Whole numbers, or floats between fixed ends: values that a network is asked for drift while it learns."""
    if not tensor.is_float:
        return True
    rows, row = facts.values, tensor.row
    there = rows.there[row]
    ends = np.concatenate([rows["min"][row, there], rows["max"][row, there]])
    return bool((ends == np.round(ends)).all())


def _is_flat(shape: tuple[int, ...]) -> bool:
    """One number per sample."""
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


CHECK = Check(
    name="unshuffled",
    description="The targets of different batches differ far more than they would if samples were shuffled.",
    stage=Stage.DATA,
    run=run,
    thresholds={"ratio": 6.0, "steps": 8},
    evidence=Evidence(("mean",)),
    causes=(
        "shuffle=True is missing in the DataLoader, and the data is sorted.",
        "A sampler that groups similar samples.",
    ),
    remedies=("Shuffle: DataLoader(data, shuffle=True).",),
)

"""Batch normalisation over next to nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import lasts
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Numbers of each channel that a mean and a spread are taken over, at the steps with a backward pass."""
    rows = facts.values
    learns = np.isfinite(facts.parameter_gradients).any(axis=0)
    for tensor in rows.tensors:
        shape = tensor.key.shape
        if facts.type_of(tensor) != "batch_norm" or len(shape) < 2 or not _uses_the_batch(facts, tensor):
            continue
        there = rows.there[tensor.row] & learns
        numbers = rows["count"][tensor.row] / shape[1]
        bad = there & (numbers <= limits["numbers"])
        if not lasts(bad[None], there[None], 0.5, int(limits["steps"]))[0]:
            continue
        value = float(np.median(numbers[bad]))
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"batch normalisation takes its statistics over {value:g} numbers only",
            detail=f"Each channel of a batch has {value:g} numbers, and their mean and spread are what is normalised "
            f"by; reported up to {limits['numbers']:g}. Of two numbers normalisation leaves nothing but which is "
            "larger.",
            value=value, threshold=limits["numbers"], tensor=tensor, **facts.steps_where(bad),
        )  # fmt: skip


def _uses_the_batch(facts: Facts, tensor: Tensor) -> bool:
    """One that is frozen, in evaluation mode, uses its running statistics, which stay as they are."""
    running = facts.value_at(f"{tensor.node}.running_mean")
    if running is None:
        return True
    norms = facts.values["norm"][running.row]
    return bool(np.nanmax(norms, initial=-np.inf) > np.nanmin(norms, initial=np.inf))


CHECK = Check(
    name="tiny_batch_norm",
    description="Batch normalisation takes its mean and standard deviation over a few numbers only.",
    stage=Stage.START,
    run=run,
    needs_harm=True,
    thresholds={"numbers": 4, "steps": 3},
    evidence=Evidence(("mean", "std"), page="std"),
    causes=("The batch is too small for batch normalisation: a few samples, behind a layer without positions.",),
    remedies=(
        "Use larger batches, or GroupNorm or LayerNorm, which do not depend on the batch.",
        "Put the batch normalisation into evaluation mode, if its running statistics are from a training before.",
    ),
)

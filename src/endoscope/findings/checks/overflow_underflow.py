"""Half-precision numbers at the ends of their range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import above, lasts

LARGEST_HALF = 65504.0


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Near the largest float16, or gradients most of which have become zero."""
    rows = facts.values
    half = rows.rows(lambda tensor: tensor.key.dtype == "float16")
    if len(half):
        near = above(rows["abs_max"][half], limits["high"] * LARGEST_HALF)
        for place in np.flatnonzero(near.any(axis=1)).tolist():
            value = float(np.nanmax(rows["abs_max"][half[place]]))
            yield Seen(
                severity=WARNING, title=f"float16 numbers reach {value:.3g}, close to overflow",
                detail=f"The largest element is {value:.3g}; float16 ends at 65,504, and {limits['high']:.0%} "
                "of that is "
                "reported.",
                value=value, threshold=limits["high"] * LARGEST_HALF, tensor=rows.tensors[int(half[place])],
                cause="high", **facts.steps_where(near[place]),
            )  # fmt: skip
    for found in facts.gradients.values():
        chosen = found.rows(lambda t: t.key.dtype == "float16" and t.key.kind == "parameter" and t.is_matrix)
        if not len(chosen):
            continue
        zero = found.zero_share()[chosen]
        # Around the smallest float16, 6e-8, and largely zero: the rest was rounded away.
        tiny = found["abs_max"][chosen] < limits["low"]
        bad = tiny & above(zero, limits["zeros"]) & (found["abs_max"][chosen] > 0)
        for place in np.flatnonzero(lasts(bad, found.there[chosen], 0.5, 3)).tolist():
            share = float(np.nanmedian(zero[place]))
            yield Seen(
                severity=WARNING, title=f"{share:.0%} of the float16 gradient is rounded to zero",
                detail=f"{share:.0%} of the gradient is zero and the rest is below {limits['low']:g}: float16 has no "
                f"smaller numbers. Reported from {limits['zeros']:.0%} on.",
                value=share, threshold=limits["zeros"], tensor=found.tensors[int(chosen[place])], cause="low",
                **facts.steps_where(bad[place]),
            )  # fmt: skip


CHECK = Check(
    name="overflow_underflow",
    description="Elements of float16 tensors close to the largest number, or gradients that were rounded to zero.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"high": 0.5, "low": 1e-5, "zeros": 0.3},
    evidence=Evidence(("abs_max",)),
    causes=("float16 without a gradient scaler.", "Activations that are too large for 16 bits."),
    remedies=("Use torch.amp.GradScaler, or bfloat16.", "Keep this part in float32; normalise before it."),
)

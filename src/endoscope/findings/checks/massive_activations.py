"""A few elements that are thousands of times larger than the rest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_attention
from endoscope.findings.check import START, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO
from endoscope.findings.lasting import lasts, late, median_where


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The largest element, compared with the quartiles. Large language models live well with it."""
    rows = facts.values
    chosen = rows.rows(lambda t: t.key.kind == "computed" and t.key.batch_dim >= 0 and t.is_float)
    if not len(chosen):
        return
    usual = np.maximum(np.abs(rows["q25"][chosen]), np.abs(rows["q75"][chosen])).astype(np.float64)
    ratio = rows["abs_max"][chosen] / usual
    bad = (rows["abs_max"][chosen] > limits["size"]) & (usual > 0) & (ratio > limits["ratio"])
    value = median_where(ratio, bad)
    for place in np.flatnonzero(lasts(bad, late(rows.there[chosen]), 0.8, 3)).tolist():
        yield Seen(
            severity=INFO, title=f"a few elements are {value[place]:.3g} times as large as most others",
            detail=f"The largest element is {value[place]:.3g} times as large as the quartiles (median over steps); "
            f"reported above {limits['ratio']:g}, if it is larger than {limits['size']:g}.",
            value=float(value[place]), threshold=limits["ratio"], tensor=rows.tensors[int(chosen[place])],
            **facts.steps_where(bad[place]),
        )  # fmt: skip


CHECK = Check(
    name="massive_activations",
    description="A few elements are thousands of times larger than the others.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"size": 100.0, "ratio": 1000.0},
    evidence=Evidence(("abs_max", "q99"), units="abs_max"),
    explained_by=(*START, "scale_range"),
    causes=("A sample that is an outlier.",),
    causes_where=((has_attention, "Attention sinks of transformers, which are mostly harmless."),),
    remedies=("Keep such tensors out of 8-bit and 16-bit formats.", "Look at the samples with the largest elements."),
)

"""Single batches, or an ongoing drift, with inputs of quite another size than the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The largest element of a batch, beside what is usual for it over the steps of its type."""
    rows = facts.values
    chosen = rows.rows(
        lambda t: t.key.kind in ("input", "target") and t.is_float and t.key.batch_dim >= 0 and not facts.is_made(t)
    )
    for row in chosen.tolist():
        for type_ in dict.fromkeys(facts.types.tolist()):
            there = rows.there[row] & (facts.types == type_) & (rows["count"][row] > 1)
            size = np.where(there, rows["abs_max"][row], np.nan).astype(np.float64)
            if np.count_nonzero(there) < limits["steps"]:
                continue
            usual = float(np.nanmedian(size))
            spread = float(np.nanquantile(size, 0.75)) / usual if usual > 0 else np.inf
            bad = size > limits["factor"] * usual
            share = np.count_nonzero(bad) / np.count_nonzero(there)
            if usual == 0 or spread > limits["spread"] or not bad.any() or share > limits["share"]:
                continue
            worst = int(np.nanargmax(size))
            yield Seen(
                severity=WARNING,
                title=f"a few batches have elements {size[worst] / usual:.3g} times as large as usual",
                detail=f"At step {facts.numbers[worst]} the largest element is {size[worst]:.3g}, "
                f"{size[worst] / usual:.3g} times what is usual ({usual:.3g}); reported from {limits['factor']:g} "
                f"times on. {np.count_nonzero(bad)} of {np.count_nonzero(there)} recorded steps have such an outlier.",
                value=float(size[worst] / usual), threshold=limits["factor"], tensor=rows.tensors[row],
                samples=_samples(facts, row, worst), **facts.steps_where(bad),
            )  # fmt: skip


def _samples(facts: Facts, row: int, place: int) -> tuple[int, ...]:
    """The sample with the largest element."""
    tensor = facts.values.tensors[row]
    found = facts.of_samples(tensor, place, "abs_max")
    return (int(np.nanargmax(found)),) if len(found) and not np.isnan(found).all() else ()


CHECK = Check(
    name="unusual_input",
    description="A few batches with elements many times larger than those of all other batches.",
    stage=Stage.DATA,
    run=run,
    thresholds={"factor": 30.0, "spread": 3.0, "share": 0.35, "steps": 8},
    evidence=Evidence(("abs_max",), units="abs_max"),
    causes=(
        "A sample with an outlier: a missing value coded as a huge number (99999, 1e20), or a corrupt file.",
        "A sample that was not scaled like the others.",
    ),
    remedies=("Look at the sample that is named.", "Clean, clip or leave out such values before training."),
)

"""Gradients that come from a few samples of the batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Rows
from endoscope.findings.units import MOST_STEPS, chosen_steps, steps_until
from endoscope.store.streams import to_numpy


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The largest share of one sample in the gradient on the output, already in the first steps.

    Later it is normal that a few hard samples remain.
    """
    for rows in facts.gradients.values():
        wanted = {t.row for t in rows.tensors if t.key.kind == "output" and t.key.batch_dim == 0 and t.key.pass_ == 1}
        for row, found in _shares(facts, rows, wanted, int(limits["batch"])).items():
            early = [entry for entry in found if entry[0] < max(4, len(facts.steps) // 3)]
            shares = np.array([share for _, share, _ in found])
            early_shares = np.array([share for _, share, _ in early])
            if (
                len(early) < 3
                or (early_shares > limits["share"]).mean() < 0.7
                or (shares > limits["share"]).mean() < 0.6
            ):
                continue
            mask = np.zeros(len(facts.steps), dtype=bool)
            mask[[place for place, share, _ in found if share > limits["share"]]] = True
            first = next(sample for _, share, sample in found if share > limits["share"])
            value = float(np.median(shares))
            yield Seen(
                severity=WARNING, title=f"a single sample has {value:.0%} of the gradient of its batch",
                detail=f"One sample has {value:.0%} of the gradient of its batch (norm, median over steps); "
                "reported from "
                f"{limits['share']:.0%} on.",
                value=value, threshold=limits["share"], tensor=rows.tensors[row], samples=(first,),
                **facts.steps_where(mask),
            )  # fmt: skip


def _shares(facts: Facts, rows: Rows, wanted: set[int], least: int) -> dict[int, list[tuple[int, float, int]]]:
    """Row -> (place of the step, share of the largest sample, which sample)."""
    found: dict[int, list[tuple[int, float, int]]] = {}
    for place in chosen_steps(steps_until(facts, "samples"), MOST_STEPS).tolist() if wanted else ():
        batch = facts.recording.tables.batch("samples", facts.steps[place])
        if batch is None:
            continue
        norms, offsets = to_numpy(batch.column("norm").values), to_numpy(batch.column("norm").offsets)
        for number, key in enumerate(to_numpy(batch.column("key")).tolist()):
            row = rows.row_of_key.get(key, -1)
            own = norms[offsets[number] : offsets[number + 1]]
            if row in wanted and len(own) >= least and np.isfinite(own).all() and own.sum() > 0:
                found.setdefault(row, []).append((place, float(own.max() / own.sum()), int(np.argmax(own))))
    return found


CHECK = Check(
    name="few_samples",
    description="One sample of the batch has most of the gradient, from the beginning on.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"share": 0.6, "batch": 8},
    evidence=Evidence(("norm",), of="gradient"),
    causes=(
        "Outliers or wrong labels.",
        "Weights of samples, or a loss (squared error) that grows fast with the error.",
    ),
    remedies=("Look at the samples with the largest gradient.", "Use a loss that forgives outliers, such as Huber's."),
)

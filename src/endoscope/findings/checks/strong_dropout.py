"""Dropout that leaves next to nothing."""

from __future__ import annotations

from collections.abc import Iterator

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Its probability, as it was called."""
    for said in facts.remarks("dropout"):
        p = said["p"]
        if p is not None and p >= limits["p"]:
            yield Seen(
                of_the_run=True, severity=WARNING, title=f"dropout takes away {p:.0%} of the units",
                detail=f"It is called with p = {p:g}, the probability of being set to zero; 0.1 to 0.5 is usual, and "
                f"from {limits['p']:g} on is reported.",
                value=float(p), threshold=limits["p"], tensor=facts.value_at(said["node"]),
                node=said["node"] or said["module"], source=said["source"], **facts.steps_of(said["node"]),
            )  # fmt: skip


CHECK = Check(
    name="strong_dropout",
    description="A dropout that takes away nearly all units.",
    stage=Stage.START,
    run=run,
    thresholds={"p": 0.8},
    evidence=Evidence(("zeros",)),
    causes=("The probability of keeping was given, as in TensorFlow 1; torch takes that of dropping.",),
    remedies=("Use one minus that number: nn.Dropout(1 - keep).",),
)

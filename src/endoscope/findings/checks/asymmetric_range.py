"""One-sided numbers before a sigmoid or softmax: an activation that should not be there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.functions import LOSSES_OF_LOGITS, ONE_SIDED, SIGMOIDS, SOFTMAXES
from endoscope.findings.lasting import lasts, median_where
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """A function that squeezes one side, read by one that needs both, and numbers that show it."""
    rows = facts.values
    chosen = rows.rows(lambda tensor: facts.type_of(tensor) in ONE_SIDED and bool(_reader(facts, tensor)))
    if not len(chosen):
        return
    low, high = rows["q01"][chosen], rows["q99"][chosen]
    ratio = np.maximum(-low, 0) / np.maximum(high, 1e-12)
    there = rows.there[chosen] & (high > 0)
    bad = there & (ratio < limits["ratio"])
    usual = median_where(ratio, bad)
    for place in np.flatnonzero(lasts(bad, there, 0.5, 3)).tolist():
        tensor = rows.tensors[int(chosen[place])]
        yield Seen(
            severity=WARNING, title=_title(facts, tensor),
            detail=f"{_reader(facts, tensor)} reads the result of {facts.type_of(tensor)}: its negative side "
            "reaches only "
            f"{usual[place]:.2g} times as far as its positive side (q01 against q99); reported below "
            f"{limits['ratio']:g}.",
            value=float(usual[place]), threshold=limits["ratio"], tensor=tensor, **facts.steps_where(bad[place]),
        )  # fmt: skip


def _reader(facts: Facts, tensor: Tensor) -> str:
    """The function that needs both sides, if there is one."""
    readers = (facts.structure.type.get(place, "") for place in facts.structure.readers(tensor.place))
    return next((name for name in readers if name in SIGMOIDS | SOFTMAXES | LOSSES_OF_LOGITS), "")


def _title(facts: Facts, tensor: Tensor) -> str:
    return f"{facts.type_of(tensor)} cuts negative numbers short just before {_reader(facts, tensor)}"


CHECK = Check(
    name="asymmetric_range",
    description="A function that makes negative numbers small stands directly before a sigmoid or softmax.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"ratio": 0.5},
    evidence=Evidence(("q05", "q50", "q95"), page="q01"),
    causes=(
        "An activation behind the last layer, often from a helper that puts one behind every layer.",
        "ReLU, GELU or another one-sided function before a loss that expects logits.",
    ),
    remedies=("Remove the activation behind the last layer, so that logits can be as negative as positive.",),
)

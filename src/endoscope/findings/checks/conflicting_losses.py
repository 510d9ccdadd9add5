"""Losses that pull parameters in opposite directions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.curves import fall
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Cosines between the gradients of two losses, over all shared weights."""
    found: dict[tuple[str, str], dict[int, list[tuple[int, float]]]] = {}
    for place, entries in facts.extra("cosines"):
        for node, role, pass_, one, other, cosine in entries:
            row = facts.parameters.row_of.get((node, role, pass_))
            if row is not None and facts.parameters.tensors[row].is_matrix:
                found.setdefault((one, other), {}).setdefault(row, []).append((place, cosine))
    for pair, by_row in found.items():
        usual = {row: float(np.median([cosine for _, cosine in seen])) for row, seen in by_row.items()}
        over_all = float(np.median(list(usual.values())))
        steps = len({place for seen in by_row.values() for place, _ in seen})
        if over_all >= limits["cosine"] or steps < limits["steps"]:
            continue
        row = min(usual, key=lambda number: usual[number])
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[[place for place, cosine in by_row[row] if cosine < limits["cosine"]]] = True
        gain = _gain(facts, pair)
        agree = gain > limits["gain"] and over_all > limits["opposite"]  # exactly opposite: a wrong sign
        yield Seen(
            severity=INFO if agree else WARNING,
            title=f"the losses {pair[0]!r} and {pair[1]!r} pull shared weights in opposite directions",
            detail=f"The gradients of {pair[0]!r} and {pair[1]!r} point in opposite directions: the median cosine over "
            f"{len(usual)} shared weights is {over_all:.2f}; reported below {limits['cosine']:g}. Most here: "
            f"{usual[row]:.2f}."
            + (f" They balance each other: their sum has fallen by {gain:.0%}." if agree else ""),
            value=over_all, threshold=limits["cosine"], tensor=facts.parameters.tensors[row], cause=f"{pair}",
            **facts.steps_where(mask),
        )  # fmt: skip


def _gain(facts: Facts, pair: tuple[str, str]) -> float:
    """By how much the sum of both has fallen. A loss and what keeps it in bounds pull apart, and get there together."""
    values = facts.values
    found = [t for name in pair for t in values.tensors if t.node == name and t.key.kind == "loss" and not t.key.shape]
    if len(found) != 2:
        return 0.0
    total = values["mean"][found[0].row] + values["mean"][found[1].row]
    total = total[np.argsort(facts.numbers, kind="stable")]
    return fall(total[np.isfinite(total)])


CHECK = Check(
    name="conflicting_losses",
    description="The gradients of two losses point in opposite directions in most shared weights.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"cosine": -0.3, "steps": 5, "gain": 0.2, "opposite": -0.95},
    evidence=Evidence(("norm",), of="gradient"),
    causes=("Two losses ask for opposite things.", "One of them has the wrong sign."),
    remedies=(
        "Check the signs of the losses.",
        "Give each loss a part of the network of its own, or change their weights.",
    ),
)

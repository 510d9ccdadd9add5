"""Sigmoid and tanh at their ends, where nothing is learned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_no_normalisation, is_squashed
from endoscope.findings.check import LEARNING_RATE, START, Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.functions import SIGMOIDS, TANHS
from endoscope.findings.lasting import above, lasts, late, median_where
from endoscope.findings.rows import Tensor

_KINDS = ("computed", "output")


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Inside the network; at its end only at first, because a good classifier ends up saturated there."""
    rows = facts.values
    for family, centre, reach in ((SIGMOIDS - {"logsigmoid"}, 0.5, 0.5), (TANHS, 0.0, 1.0)):
        chosen = np.array(
            [t.row for t in rows.tensors if facts.type_of(t) in family and t.key.kind in _KINDS], np.int64
        )
        if not len(chosen):
            continue
        mean, std = rows["mean"][chosen].astype(np.float64), rows["std"][chosen].astype(np.float64)
        index = (std**2 + (mean - centre) ** 2) / reach**2  # 1 if every element stands at an end, 1/3 if spread evenly
        there = rows.there[chosen]
        bad = above(index, limits["index"])
        is_last = np.array([_is_last(facts, rows.tensors[row]) for row in chosen.tolist()])
        at_first = np.cumsum(there, axis=1) <= 3
        lasting = np.where(is_last, lasts(bad & at_first, there & at_first, 1.0, 3), lasts(bad, late(there), 0.8, 3))
        for place in np.flatnonzero(lasting).tolist():
            yield _seen(facts, rows.tensors[int(chosen[place])], index[place], bad[place], limits)


def _is_last(facts: Facts, tensor: Tensor) -> bool:
    """Whether no parameter is used behind it."""
    behind = facts.structure.below([tensor.place]) - {tensor.place}
    parents = {parent for place in behind for parent in facts.structure.parents.get(place, ())}
    return not any(facts.structure.type.get(place) == "parameter" for place in parents)


def _seen(facts: Facts, tensor: Tensor, index: np.ndarray, bad: np.ndarray, limits: Limits) -> Seen:
    value = float(median_where(index[None], bad[None])[0])
    name = facts.type_of(tensor).rstrip("_")
    return Seen(
        severity=WARNING, title=f"most results of {name} are at the ends of its range",
        detail=f"The results of {name} are at the ends of its range, where the gradient is almost zero: their "
        f"mean square is {value:.0%} of what it would be if all did; reported from {limits['index']:.0%} on.",
        value=value, threshold=limits["index"], tensor=tensor, **facts.steps_where(bad),
    )  # fmt: skip


CHECK = Check(
    name="saturated",
    description="Most elements of a sigmoid or tanh are at the ends of its range.",
    stage=Stage.FORWARD,
    run=run,
    needs_harm=True,
    thresholds={"index": 0.8},
    evidence=Evidence(("q05", "q50", "q95"), units="mean", page="abs_mean"),
    explained_by=(*START, *LEARNING_RATE),
    causes=(
        "Weights that are too large, from the beginning or after steps that were too large.",
        "Inputs that are not normalised.",
    ),
    remedies=("Normalise the inputs; use Glorot initialisation; lower the learning rate.",),
    remedies_where=(
        (has_no_normalisation, "Put a normalisation before it."),
        (is_squashed, "Inside the network, use an activation without ends, such as ReLU, GELU or SiLU."),
    ),
)

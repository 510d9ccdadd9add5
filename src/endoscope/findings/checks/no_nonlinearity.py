"""A model of several layers that computes a linear function."""

from __future__ import annotations

from collections.abc import Iterator

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.functions import DROPOUTS, LAYERS, PLAIN_MOVES


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """All functions that were called are layers, or move numbers to other places."""
    types = {name for said in facts.remarks("functions") for name in said["types"]}
    linear = types & LAYERS
    if not linear or types - LAYERS - PLAIN_MOVES - DROPOUTS:
        return
    weights = [
        tensor for tensor in facts.parameters.tensors
        if tensor.is_matrix and any(facts.structure.type.get(p) in LAYERS for p in _readers(facts, tensor.place))
    ]  # fmt: skip
    weights.sort(key=lambda tensor: facts.structure.depth(tensor.place))
    chained = [one for one in weights[1:] if _is_behind(facts, weights[0].place, one.place)]
    if len(chained) + 1 < limits["layers"]:
        return
    yield Seen(
        of_the_run=True, severity=WARNING,
        title=f"{len(chained) + 1} layers in a row have no activation between them",
        detail=f"The model calls {', '.join(sorted(linear))} and nothing that is not linear: together its layers can "
        "do no more than a single one.",
        value=float(len(chained) + 1), threshold=limits["layers"], tensor=chained[0],
        also=tuple(one.node for one in (weights[0], *chained[1:])), **facts.steps_of(""),
    )  # fmt: skip


def _readers(facts: Facts, place: tuple[str, str, int]) -> list[tuple[str, str, int]]:
    return facts.structure.children.get(place, [])


def _is_behind(facts: Facts, first: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    """Whether what reads the other parameter comes from what reads the first."""
    below = facts.structure.below(_readers(facts, first)) - set(_readers(facts, first))
    return any(reader in below for reader in _readers(facts, other))


CHECK = Check(
    name="no_nonlinearity",
    description="The model has several linear layers, and no non-linear function between them.",
    stage=Stage.START,
    run=run,
    thresholds={"layers": 3},
    causes=("The activations between the layers were forgotten, or are created and not called.",),
    remedies=("Put an activation such as ReLU or GELU between the layers.",),
)

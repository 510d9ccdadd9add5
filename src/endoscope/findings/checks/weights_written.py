"""Weights that somebody else than the optimizer writes: put back to an earlier value, or held where they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING

_STATISTICS = ("mean", "norm", "std", "abs_max")
_LAST_BITS = 1e-6  # of a weight: less is lost in rounding, and changes no statistic


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Statistics that are equal to the last bit, at steps between which the optimizer has moved the weights."""
    rows = facts.parameters
    order = np.argsort(facts.numbers, kind="stable")
    returned: dict[int, list[int]] = {}
    held: dict[int, list[int]] = {}
    weights = rows.rows(lambda t: t.is_matrix and facts.trainable.get(t.node, True))
    for row in weights.tolist():
        prints = np.stack([rows[name][row, order] for name in _STATISTICS], axis=1)
        there = ~np.isnan(prints).any(axis=1)
        moved = facts.parameter_updates[row, order] > _LAST_BITS * rows["norm"][row, order]
        if np.count_nonzero(there) < limits["steps"] or np.count_nonzero(moved) < limits["steps"]:
            continue
        places = np.flatnonzero(there)
        changed = np.concatenate([[True], (prints[places][1:] != prints[places][:-1]).any(axis=1)])
        since = int(np.flatnonzero(changed)[-1])  # it has not changed any more
        still = len(places) - 1 - since
        if still >= max(limits["steps"], limits["held"] * len(places)) and moved[places[since:]].mean() > 0.9:
            held[row] = order[places[since:]].tolist()
            continue
        back = _returns(prints[places], changed, moved[places])
        if len(back):
            returned[row] = order[places[back]].tolist()
    if held and len(held) == len(weights):
        tensor = rows.tensors[next(iter(held))]
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[held[tensor.row]] = True
        yield Seen(
            severity=ERROR, title="what the optimizer adds to the weights is undone before the next step",
            detail=f"The optimizer moves {len(held)} weights at each of the last {np.count_nonzero(mask)} recorded "
            "steps, and at the next one they are what they were: something outside of the optimizer writes them back.",
            value=float(len(held)), threshold=0.0, tensor=tensor, cause="held", **facts.steps_where(mask),
        )  # fmt: skip
    if len(returned) >= max(2, 0.5 * len(weights)) or (returned and len(weights) == 1):
        row = max(returned, key=lambda one: len(returned[one]))
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[returned[row]] = True
        tensor = rows.tensors[row]
        numbers = ", ".join(map(str, sorted(facts.numbers[mask].tolist())[:5]))
        yield Seen(
            severity=WARNING, title="weights are put back to what they were at an earlier step",
            detail=f"{len(returned)} weights are, to the last bit, what they were at an earlier step, although the "
            f"optimizer moved them in between: at steps {numbers}. They were overwritten outside of the optimizer, so "
            "training begins again from there.",
            value=float(np.count_nonzero(mask)), threshold=0.0, tensor=tensor, cause="returned",
            also=tuple(rows.tensors[one].node for one in returned if one != row), **facts.steps_where(mask),
        )  # fmt: skip


def _returns(prints: np.ndarray, changed: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Places at which an earlier value has come back, after others."""
    _, first, inverse = np.unique(prints, axis=0, return_index=True, return_inverse=True)
    earlier = first[np.ravel(inverse)]
    own = np.arange(len(prints))
    return np.flatnonzero(changed & (earlier < own - 1) & (np.cumsum(moved)[own] > np.cumsum(moved)[earlier]))


CHECK = Check(
    name="weights_written",
    description="Something other than the optimizer changes the weights: they are put back, or held where they are.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"steps": 4, "held": 0.25},
    evidence=Evidence(("norm",)),
    causes=(
        "load_state_dict, or an initialisation, inside of the training loop.",
        "An average of weights, or a copy of a target network, that is written into the model that is trained.",
    ),
    remedies=("Load weights once, before the loop.", "Look for copy_ and load_state_dict in the loop."),
)

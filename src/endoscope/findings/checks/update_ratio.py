"""How far one step moves the weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO, WARNING
from endoscope.findings.health import learns_well
from endoscope.findings.lasting import above, below, median_where

_TOO_LARGE = ("The learning rate is too large.", "The weights began too small.")
_SMALLER = (
    "Lower the learning rate until a step changes weights by about a thousandth of their norm.",
    "Warm the learning rate up, and clip the gradient.",
)
_TOO_SMALL = ("The learning rate is too small.", "The weights began too large.")
_LARGER = ("Raise the learning rate until a step changes weights by about a thousandth of their norm.",)


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The applied change, not learning rate times gradient: optimizers scale, clip and decay."""
    rows = facts.parameters
    weights = rows.rows(lambda tensor: tensor.is_matrix)
    if (
        not len(weights) or not facts.steps or "LBFGS" in facts.optimizer_classes()
    ):  # which looks for the length of each step
        return
    ratio = facts.parameter_updates[weights] / rows["norm"][weights]
    moving = np.isfinite(ratio) & (ratio > 0)
    counted = np.count_nonzero(moving, axis=1) >= limits["steps"]
    usual = np.where(counted, median_where(ratio, moving), np.nan)
    for place in np.flatnonzero(above(usual, limits["high"])).tolist():
        value, bad = float(usual[place]), above(ratio[place], limits["high"])
        yield Seen(
            severity=ERROR if value > limits["error_high"] else WARNING,
            title=f"each step changes the weight by {value:.2g} of its norm (too much)",
            detail=f"A step changes the weight by {value:.2g} of its norm (median); about 0.001 is usual, and "
            "more than "
            f"{limits['high']:g} is reported.",
            value=value, threshold=limits["high"], tensor=rows.tensors[int(weights[place])], cause="high",
            causes=_TOO_LARGE, remedies=_SMALLER,
            **facts.steps_where(bad),
        )  # fmt: skip
    yield from _at_first(facts, weights, ratio, limits)
    yield from _of_one(facts, weights, usual, limits)
    if counted.any() and np.nanmax(usual) < limits["low"]:
        place = int(np.nanargmax(usual))
        yield Seen(
            severity=WARNING,
            title=f"steps change weights by at most {usual[place]:.1e} of their norm (too little)",
            detail=f"A step changes no weight by more than {usual[place]:.1e} of its norm (median); about 0.001 "
            "is usual, "
            f"and less than {limits['low']:g} is reported.",
            value=float(usual[place]), threshold=limits["low"], tensor=rows.tensors[int(weights[place])], cause="low",
            causes=_TOO_SMALL, remedies=_LARGER,
            **facts.steps_where(moving[place]),
        )  # fmt: skip


def _at_first(facts: Facts, weights: np.ndarray, ratio: np.ndarray, limits: Limits) -> Iterator[Seen]:
    """One huge step is enough to throw away what the initialisation was good for."""
    order = np.argsort(facts.numbers, kind="stable")
    rows = facts.parameters
    began = rows["norm"][weights] / np.sqrt(np.maximum(rows["count"][weights], 1)) > limits["tiny"]
    usable = np.where(began & np.isfinite(ratio), ratio, np.nan)[:, order][:, : int(limits["first_steps"])]
    if not usable.size or facts.numbers.min() > 2 or np.isnan(usable).all():
        return
    over_weights = median_where(usable.T, np.isfinite(usable.T))
    at = int(np.nanargmax(over_weights))
    value = float(over_weights[at])
    limit = limits["first"] if learns_well(facts) else limits["first_unwell"]
    if value > limit:
        place = int(np.nanargmax(usable[:, at]))
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[order[at]] = True
        yield Seen(
            of_the_run=True, severity=INFO if learns_well(facts) else WARNING,
            title=f"step {facts.numbers[order[at]]} changes weights by {value:.2g} of their norm (too much)",
            detail=f"Step {facts.numbers[order[at]]} changes weights by {value:.2g} of their norm (median over "
            f"{len(weights)} weights); about 0.01 is usual at the start, and more than {limit:g} is "
            "reported.",
            value=value, threshold=limit, tensor=rows.tensors[int(weights[place])], cause="high",
            causes=_TOO_LARGE, remedies=_SMALLER,
            **facts.steps_where(mask),
        )  # fmt: skip


def _of_one(facts: Facts, weights: np.ndarray, usual: np.ndarray, limits: Limits) -> Iterator[Seen]:
    """A weight that hardly moves, although others do and its own gradient is no smaller."""
    gradient = facts.parameter_gradients[weights]
    count = np.nan_to_num(facts.parameters["count"][weights]).max(axis=1)
    own = median_where(gradient, gradient > 0) / np.sqrt(np.maximum(count, 1))
    if np.count_nonzero(np.isfinite(usual)) < 2 or not np.isfinite(own).any():
        return
    middle = float(np.nanmax(usual))
    for place in np.flatnonzero(
        below(usual, limits["others"] * middle) & (own > 0.05 * float(np.median(own[np.isfinite(own)])))
    ).tolist():
        yield Seen(
            severity=WARNING,
            title=f"steps change the weight by {usual[place]:.1e} of its norm, others by up to {middle:.1e}",
            detail=f"A step changes the weight by {usual[place]:.1e} of its norm (median), and another weight by "
            f"{middle:.1e}, although its gradient is no smaller; the learning rate of its group is too small.",
            value=float(usual[place] / middle), threshold=limits["others"], cause="others",
            tensor=facts.parameters.tensors[int(weights[place])],
            **facts.steps_where(facts.parameter_updates[int(weights[place])] > 0),
        )  # fmt: skip


CHECK = Check(
    name="update_ratio",
    description="One update changes weights by a large part of their size, or by almost nothing.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={
        "high": 0.1,
        "error_high": 1.0,
        "low": 1e-5,
        "steps": 5,
        "first": 0.9,
        "first_unwell": 0.6,
        "first_steps": 3,
        "tiny": 1e-4,
        "others": 1e-4,
    },
    quantity="update_ratio",
    evidence=Evidence(("norm",), of="update"),
    causes=("The learning rate is too large, or too small.", "The weights began too small, or too large."),
    remedies=("Change the learning rate until a step changes weights by about a thousandth of their norm.",),
)

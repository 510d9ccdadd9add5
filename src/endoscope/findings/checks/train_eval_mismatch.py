"""Activations that are different in evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from endoscope.findings.architecture import has_batch_norm
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import median_where

_EVALUATION = re.compile(r"eval|valid|\bval\b|test", re.IGNORECASE)


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Two types of step, one of which is evaluation by its name."""
    rows = facts.values
    is_evaluation = np.array([bool(_EVALUATION.search(name)) for name in facts.types.tolist()], dtype=bool)
    chosen = rows.rows(lambda t: t.key.kind in ("computed", "output") and t.key.batch_dim >= 0 and t.is_float)
    if not is_evaluation.any() or is_evaluation.all() or not len(chosen):
        return
    std, mean, there = (rows[name][chosen].astype(np.float64) for name in ("std", "mean", "count"))
    masks = [~np.isnan(there) & is_evaluation, ~np.isnan(there) & ~is_evaluation]
    enough = (masks[0].sum(axis=1) >= limits["steps"]) & (masks[1].sum(axis=1) >= limits["steps"])
    # Training changes activations: compare with the training steps of the same time only.
    masks[1] &= (facts.numbers >= facts.numbers[is_evaluation].min()) & (
        facts.numbers <= facts.numbers[is_evaluation].max()
    )
    spread, level = ([median_where(values, mask) for mask in masks] for values in (std, mean))
    ratio = np.maximum(spread[0] / spread[1], spread[1] / spread[0])
    shift = 1 + np.abs(level[0] - level[1]) / np.maximum(spread[0], spread[1])
    apart = np.fmax(ratio, shift)
    for place in np.flatnonzero(enough & np.isfinite(apart) & (apart > limits["ratio"])).tolist():
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"results in evaluation and in training are {apart[place]:.3g} times apart",
            detail=f"Mean {level[0][place]:.3g} and standard deviation {spread[0][place]:.3g} in evaluation, "
            f"{level[1][place]:.3g} and {spread[1][place]:.3g} in training: {apart[place]:.3g} times apart; reported "
            f"above {limits['ratio']:g}.",
            value=float(apart[place]), threshold=limits["ratio"], tensor=rows.tensors[int(chosen[place])],
            **facts.steps_where(masks[0][place]),
        )  # fmt: skip


CHECK = Check(
    name="train_eval_mismatch",
    description="What a layer returns has another mean or standard deviation in evaluation than in training.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"ratio": 2.5, "steps": 2},
    evidence=Evidence(("std",), page="mean"),
    causes=(
        "Data that is prepared differently for evaluation.",
        "model.eval() or model.train() at the wrong place.",
    ),
    causes_where=(
        (
            has_batch_norm,
            "Running statistics of batch normalisation that are not up to date, or batches that are too small for "
            "them.",
        ),
    ),
    remedies=("Compare the two types of step from the input on.",),
    remedies_where=((has_batch_norm, "Use layer or group normalisation instead of batch normalisation."),),
)

"""A classifier that begins worse, or better, than guessing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import START, Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Guessing among C classes costs ln C."""
    rows = facts.values
    for tensor in rows.tensors:
        if tensor.key.kind != "loss" or facts.type_of(tensor) not in ("cross_entropy", "cross_entropy_loss"):
            continue
        there = np.flatnonzero(rows.there[tensor.row])
        classes = _classes(facts, tensor)
        if not len(there) or facts.numbers[there[0]] > limits["latest_step"] or classes < 2:
            continue
        value, expected = float(rows["mean"][tensor.row, there[0]]), math.log(classes)
        ratio = value / expected
        if facts.has_no_level(tensor):
            continue  # there is no number of classes
        if limits["low"] <= ratio <= limits["high"] or not math.isfinite(ratio):
            continue
        samples = _samples(facts, tensor)
        is_sum = samples > 1 and 0.5 < ratio / samples < 2  # and no worse than guessing: some mean it so
        mask = np.zeros(len(facts.steps), dtype=bool)
        mask[there[0]] = True
        limit = limits["high"] if ratio > 1 else limits["low"]
        title = f"the first loss is {value:.3g}, and guessing among {classes} classes gives {expected:.3g}"
        yield Seen(
            of_the_run=True,
            severity=INFO if is_sum else WARNING,
            title="the loss is summed over the batch" if is_sum else title,
            detail=f"It is {value:.3g}; guessing among {classes} classes gives {expected:.3g}"
            + (f", times {samples} samples {samples * expected:.3g}" if is_sum else "")
            + f". Reported {'above' if ratio > 1 else 'below'} {limit:g} times that.",
            value=ratio, threshold=limit, tensor=tensor, **facts.steps_where(mask),
        )  # fmt: skip


def _samples(facts: Facts, loss: Tensor) -> int:
    """Of the logits that the loss reads."""
    for place in facts.structure.parents.get(loss.place, ()):
        row = facts.values.row_of.get(place)
        if row is not None and facts.values.tensors[row].key.kind in ("computed", "output"):
            shape = facts.values.tensors[row].key.shape
            return shape[0] if shape else 0
    return 0


def _classes(facts: Facts, loss: Tensor) -> int:
    """Size of dimension 1 of the logits that the loss reads."""
    for place in facts.structure.parents.get(loss.place, ()):
        row = facts.values.row_of.get(place)
        if row is not None and facts.values.tensors[row].key.kind in ("computed", "output"):
            shape = facts.values.tensors[row].key.shape
            return shape[1] if len(shape) == 2 else 0
    return 0


CHECK = Check(
    name="wrong_initial_loss",
    description="The cross entropy of the first step is far from that of guessing.",
    stage=Stage.START,
    run=run,
    needs_harm=True,
    thresholds={"low": 0.15, "high": 2.5, "latest_step": 1},
    explained_by=START,
    causes=(
        "Too high: weights of the last layer that began too large, inputs that are not normalised, a sum "
        "instead of a mean.",
        "Too low: the answer is part of the input, or the weights were trained before.",
    ),
    remedies=("Begin with small weights in the last layer; average the loss.", "Look for the target in the input."),
)

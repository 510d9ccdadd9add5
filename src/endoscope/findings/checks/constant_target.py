"""Targets that are the same for every sample of every batch, and inputs of which every element is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """One number, over all elements and steps: there is nothing to be told apart."""
    rows = facts.values
    targets = [tensor for tensor in rows.tensors if tensor.key.kind == "target" and _has_samples(tensor)]
    if len(targets) == 1:  # a GAN has a constant one for each side
        yield from _judge(facts, targets[0], limits, "every target is {}", "the targets never differ", ())
    for tensor in rows.tensors:
        if tensor.key.kind == "input" and _has_samples(tensor) and _is_read(facts, tensor):
            what = "every element of the input is {}"
            yield from _judge(facts, tensor, limits, what, "samples cannot be told apart", _INPUT)


def _judge(
    facts: Facts, tensor: Tensor, limits: Limits, title: str, detail: str, causes: tuple[str, ...]
) -> Iterator[Seen]:
    rows, row = facts.values, tensor.row
    there = rows.there[row]
    low, high = rows["min"][row, there], rows["max"][row, there]
    if len(low) < limits["steps"] or not np.isfinite(low).all() or low.min() != high.max():
        return
    yield Seen(
        severity=WARNING, title=title.format(f"{low[0]:g}"), value=0.0, threshold=0.0, tensor=tensor,
        detail=f"All elements are the same constant, {low[0]:g}, at all {len(low)} recorded steps: {detail}.",
        causes=causes or None, **facts.steps_where(there),
    )  # fmt: skip


def _has_samples(tensor: Tensor) -> bool:
    shape = tensor.key.shape
    return tensor.key.batch_dim == 0 and len(shape) > 0 and shape[0] > 1


def _is_read(facts: Facts, tensor: Tensor) -> bool:
    """A constant mask or a flag beside the data is no fault: it must be the only input, and no step of time."""
    inputs = [one for one in facts.values.tensors if one.key.kind == "input" and _has_samples(one)]
    return len({one.node for one in inputs}) == len(inputs) == 1 and bool(facts.structure.children.get(tensor.place))


_INPUT = (
    "Data that were not read: a wrong column, path or vocabulary, so that everything is unknown or zero.",
    "A division of whole numbers by whole numbers, or a cast, that has left nothing.",
)

CHECK = Check(
    name="constant_target",
    description="All targets, or all elements of the input, are one and the same number.",
    stage=Stage.DATA,
    run=run,
    thresholds={"steps": 5},
    evidence=Evidence(("min", "max"), page="mean"),
    causes=("Labels that were read wrongly: a wrong column or folder, or a default that was never overwritten.",),
    remedies=("Print a batch just before it is handed to the model: is it what you think it is?",),
)

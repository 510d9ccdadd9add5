"""A sum of which one part does not matter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import lasts, late, median_where
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Of x + f(x): how large is f(x) beside x?"""
    rows = facts.values
    for tensor in rows.tensors:
        if facts.type_of(tensor) not in ("add", "add_", "iadd", "__iadd__", "__add__"):
            continue
        parts = _parts(facts, tensor)
        if parts is None:
            continue
        branch, skip = parts
        size = rows["abs_mean"].astype(np.float64)
        ratio = size[branch.row] / size[skip.row]
        there = rows.there[tensor.row] & np.isfinite(ratio)
        tests = [("adds next to nothing to", ratio < limits["low"], limits["low"])]
        tests += [("drowns", ratio > limits["high"], limits["high"])]
        for word, bad, limit in tests:
            if lasts(bad[None], late(there[None]), 0.9, 3)[0]:
                value = float(median_where(ratio[None], (bad & there)[None])[0])
                yield Seen(
                    severity=WARNING, title=f"the residual branch {word} `{skip.node}`",
                    detail=f"What is added to {skip.node} is {value:.1e} times as large (mean size, median over "
                    "steps); "
                    f"reported {'below' if limit == limits['low'] else 'above'} {limit:g}.",
                    value=value, threshold=limit, tensor=branch, **facts.steps_where(bad & there),
                )  # fmt: skip


def _parts(facts: Facts, tensor: Tensor) -> tuple[Tensor, Tensor] | None:
    """(branch, skip) if one of the two things that are added is made from the other."""
    found = [facts.values.row_of.get(place) for place in facts.structure.parents.get(tensor.place, ())]
    tensors = [facts.values.tensors[row] for row in found if row is not None]
    if len(tensors) != 2 or len(found) != 2 or tensors[0].key.shape != tensors[1].key.shape:
        return None
    for branch, skip in (tensors, tensors[::-1]):
        if skip.place in facts.structure.above([branch.place]):
            return branch, skip
    return None


CHECK = Check(
    name="residual_ignored",
    description="A residual branch adds almost nothing to its input, or far more than the input.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"low": 1e-3, "high": 1e3},
    evidence=Evidence(("abs_mean",), page="norm"),
    causes=("A branch that began at zero and gets no gradient.", "An input that has grown from block to block."),
    remedies=("Look at the gradient of the branch.", "Normalise the input of each block, or scale the branches."),
)

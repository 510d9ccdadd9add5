"""Inputs that are far from mean 0 and spread 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.functions import LOSSES_OF_NUMBERS, NORMALISATIONS
from endoscope.findings.lasting import lasts, median_where
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Of floating inputs that are not normalised by the model itself."""
    yield from _targets(facts, limits)
    rows = facts.values
    chosen = rows.rows(lambda tensor: tensor.key.kind == "input" and _counts(facts, tensor))
    if not len(chosen):
        return
    std, there = rows["std"][chosen].astype(np.float64), rows.there[chosen]
    centre = np.abs(rows["mean"][chosen].astype(np.float64))
    tests = [
        (std, std > limits["std"], "std", "the standard deviation is {:.3g}"),
        (centre, (centre > limits["mean"]) & ~(std > limits["std"]), "mean", "the mean is {:.3g} away from zero"),
        (std, (std < limits["low"]) & (rows["abs_max"][chosen] > 0), "low", "the standard deviation is only {:.3g}"),
    ]
    for values, bad, name, text in tests:
        usual = median_where(values, bad)
        for place in np.flatnonzero(lasts(bad, there, 0.8, 2)).tolist():
            told = text.format(usual[place])
            side = "below" if name == "low" else "above"
            yield Seen(
                severity=WARNING, title=f"the numbers are not normalised: {told}",
                detail=f"Over the batch {told} (median over steps); reported {side} {limits[name]:g}.",
                value=float(usual[place]), threshold=limits[name], tensor=rows.tensors[int(chosen[place])], cause=name,
                **facts.steps_where(bad[place]),
            )  # fmt: skip


def _targets(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Of a regression: a network begins near zero, and has far to go."""
    if not any(said["type"] in LOSSES_OF_NUMBERS for said in facts.remarks("loss")):
        return
    rows = facts.values
    chosen = rows.rows(lambda t: t.key.kind == "target" and t.is_float and not facts.is_made(t))
    if not len(chosen):
        return
    size = np.hypot(rows["mean"][chosen].astype(np.float64), rows["std"][chosen])
    bad = size > limits["target"]
    usual = median_where(size, bad)
    for place in np.flatnonzero(lasts(bad, rows.there[chosen], 0.8, 2)).tolist():
        yield Seen(
            severity=WARNING,
            title=f"the targets are not normalised: they are about {usual[place]:.2g} in size",
            detail=f"The root mean square of the targets is {usual[place]:.3g} (median over steps), and what an "
            f"untrained network returns is about 1; reported above {limits['target']:g}.",
            value=float(usual[place]), threshold=limits["target"], tensor=rows.tensors[int(chosen[place])],
            cause="target", causes=("The scale of the target was left as it is: prices, years, counts.",),
            remedies=("Divide targets by their scale, or standardise them, and undo that for predictions.",),
            **facts.steps_where(bad[place]),
        )  # fmt: skip


def _counts(facts: Facts, tensor: Tensor) -> bool:
    readers = {facts.structure.type.get(place, "") for place in facts.structure.readers(tensor.place)}
    normalised = bool(readers) and readers <= NORMALISATIONS
    return (
        not facts.is_made(tensor)
        and not _is_a_condition(facts, tensor)
        and tensor.is_float
        and tensor.key.batch_dim >= 0
        and tensor.key.shape != ()
        and not normalised
    )


def _is_a_condition(facts: Facts, tensor: Tensor) -> bool:
    """One number for each sample beside other inputs: a step of time, a level of noise."""
    shape = tensor.key.shape
    others = [one for one in facts.values.tensors if one.key.kind == "input" and one.place != tensor.place]
    return int(np.prod(shape[1:])) == 1 and any(int(np.prod(one.key.shape[1:])) > 1 for one in others)


CHECK = Check(
    name="inputs_not_normalised",
    description="The inputs of the model are large, far from zero, or tiny.",
    stage=Stage.DATA,
    run=run,
    thresholds={"std": 5.0, "mean": 5.0, "low": 0.01, "target": 30.0},
    evidence=Evidence(("mean", "std"), page="std"),
    causes=("Raw data: pixels from 0 to 255, prices, years.", "The scaling was forgotten, or was done twice."),
    remedies=("Subtract the mean of the training data and divide by its standard deviation, feature by feature.",),
)

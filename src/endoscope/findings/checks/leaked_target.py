"""A target that stands in the input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings import units
from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Tensor

_STEPS = 10


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """A feature of the input whose mean and spread over the batch are those of the target, in every batch."""
    rows = facts.values
    if not facts.remarks("loss"):
        return  # without a function that compares, what counts as a target is not certain
    targets = [t for t in rows.tensors if t.key.kind == "target" and _is_flat(t)]
    inputs = {t.row for t in rows.tensors if t.key.kind == "input" and t.key.batch_dim == 0 and len(t.key.shape) == 2}
    equal: dict[tuple[int, int], np.ndarray] = {}
    steps: dict[tuple[int, int], list[int]] = {}
    for found in units.backwards(facts, inputs, _STEPS):
        mean, std = found.mean.ravel().astype(np.float64), found.std.ravel().astype(np.float64)
        for target in targets:
            own_mean, own_std = (float(rows[name][target.row, found.place]) for name in ("mean", "std"))
            if len(mean) < 2 or not own_std > 0 or len(mean) == _width(target):
                continue
            same = np.isclose(mean, own_mean, rtol=1e-4, atol=1e-6) & np.isclose(std, own_std, rtol=1e-3)
            key = (found.tensor.row, target.row)
            equal[key] = same & equal.get(key, np.ones(len(same), dtype=bool))
            steps.setdefault(key, []).append(found.place)
    for (row, target_row), same in equal.items():
        places = steps[row, target_row]
        if same.any() and len(places) >= limits["steps"]:
            mask = np.zeros(len(facts.steps), dtype=bool)
            mask[places] = True
            yield Seen(
                severity=WARNING, title=f"feature {int(np.argmax(same))} of the input is the target itself",
                detail=f"Feature {int(np.argmax(same))} of the input has the mean and the spread of the target in each "
                f"of {len(places)} batches: the answer is part of the question.",
                value=1.0, threshold=0.0, tensor=rows.tensors[row], also=(rows.tensors[target_row].node,),
                **facts.steps_where(mask),
            )  # fmt: skip


def _is_flat(tensor: Tensor) -> bool:
    shape = tensor.key.shape
    return tensor.key.batch_dim == 0 and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)) and shape[0] > 3


def _width(tensor: Tensor) -> int:
    return tensor.key.shape[1] if len(tensor.key.shape) > 1 else 0


CHECK = Check(
    name="leaked_target",
    description="A feature of the input is the target itself.",
    stage=Stage.DATA,
    run=run,
    thresholds={"steps": 4},
    evidence=Evidence(("mean", "std"), page="mean"),
    causes=("The column with the target was not taken out of the table: a leak.",),
    remedies=("Leave the column out of the inputs.",),
)

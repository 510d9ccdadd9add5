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
    """A feature of the input that is the target, or the target in other units, in every batch."""
    rows = facts.values
    if not facts.remarks("loss"):
        return  # without a function that compares, what counts as a target is not certain
    targets = [t for t in rows.tensors if t.key.kind == "target" and _is_flat(t)]
    inputs = {t.row for t in rows.tensors if t.key.kind == "input" and t.key.batch_dim == 0 and len(t.key.shape) == 2}
    features: dict[int, list[tuple[int, np.ndarray, np.ndarray]]] = {}
    for found in units.backwards(facts, inputs, _STEPS):
        mean, std = found.mean.ravel().astype(np.float64), found.std.ravel().astype(np.float64)
        features.setdefault(found.tensor.row, []).append((found.place, mean, std))
    for row, entries in features.items():
        width = len(entries[0][1])
        for target in targets:
            places = [place for place, mean, _ in entries if len(mean) == width and rows["std"][target.row, place] > 0]
            if width < 2 or width == _width(target) or len(places) < limits["steps"]:
                continue
            of_features = [np.stack([one[at] for one in entries if one[0] in places]) for at in (1, 2)]
            of_target = [rows[name][target.row, places].astype(np.float64) for name in ("mean", "std")]
            same = _is_the_target(of_features[0], of_features[1], of_target[0], of_target[1])
            if not same.any():
                continue
            mask = np.zeros(len(facts.steps), dtype=bool)
            mask[places] = True
            yield Seen(
                severity=WARNING, title=f"feature {int(np.argmax(same))} of the input is the target itself",
                detail=f"The mean and the spread of feature {int(np.argmax(same))} of the input follow those of the "
                f"target, but for a factor and a shift, in each of {len(places)} batches: the answer is part of the "
                "question.",
                value=1.0, threshold=0.0, tensor=rows.tensors[row], also=(rows.tensors[target.row].node,),
                **facts.steps_where(mask),
            )  # fmt: skip


def _is_the_target(means: np.ndarray, stds: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """bool[features]: one factor turns every spread, and every change of the mean, into those of the target."""
    factor = np.median(stds / std[:, None], axis=0)
    spreads = np.abs(stds - factor * std[:, None]).max(axis=0) < 1e-3 * stds.max(axis=0)
    away, own = means - means.mean(axis=0), mean - mean.mean()
    scaled = factor * own[:, None]
    apart = np.minimum(np.abs(away - scaled).max(axis=0), np.abs(away + scaled).max(axis=0))
    moves = np.ptp(own) > 1e-3 * std.max()
    return np.asarray(spreads & (apart < 2e-3 * np.abs(away).max(axis=0)) & moves & (factor > 0))


def _is_flat(tensor: Tensor) -> bool:
    shape = tensor.key.shape
    return tensor.key.batch_dim == 0 and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)) and shape[0] > 3


def _width(tensor: Tensor) -> int:
    return tensor.key.shape[1] if len(tensor.key.shape) > 1 else 0


CHECK = Check(
    name="leaked_target",
    description="A feature of the input is the target itself, or the target in other units.",
    stage=Stage.DATA,
    run=run,
    thresholds={"steps": 4},
    evidence=Evidence(("mean", "std"), page="mean"),
    causes=("The column with the target was not taken out of the table: a leak.",),
    remedies=("Leave the column out of the inputs.",),
)

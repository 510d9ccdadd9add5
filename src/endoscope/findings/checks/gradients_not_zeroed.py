"""Steps that follow the sum of all gradients so far."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.errors import EndoscopeError
from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR
from endoscope.findings.rows import Tensor

_MOST_STEPS, _MOST_WEIGHTS = 12, 3


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """From raw values of the first steps, which must have been recorded without a gap; told for plain SGD only.

    Recorded gradients are those of the step itself. If the optimizer saw others, its updates point elsewhere.
    """
    steps = int(np.count_nonzero(facts.numbers[:_MOST_STEPS] == np.arange(len(facts.numbers[:_MOST_STEPS]))))
    if steps < limits["steps"] or len(facts.gradients) != 1 or not len(facts.updates):
        return
    weights = [t for t in facts.updates.tensors if t.is_matrix]
    weights.sort(key=lambda tensor: int(np.prod(tensor.key.shape)))
    for tensor in weights[:_MOST_WEIGHTS]:
        read = [[_raw(facts, tensor, place, of) for place in range(steps)] for of in ("gradient", "update")]
        if any(one is None for row in read for one in row):
            continue
        gradients, updates = (np.array(row, np.float64) for row in read)
        own, summed = _cosines(gradients, -updates), _cosines(np.cumsum(gradients, axis=0), -updates)
        if summed.min() > limits["cosine"] and own.min() < limits["own_cosine"]:
            mask = np.zeros(len(facts.steps), dtype=bool)
            mask[1:steps] = True
            yield Seen(
                severity=ERROR, title="gradients are not set to zero",
                detail="The steps follow the sum of all gradients since the beginning (cosine "
                f"{summed.min():.4f}), not "
                f"the gradient of the step (down to {own.min():.2f}); reported above {limits['cosine']:g}.",
                value=float(summed.min()), threshold=limits["cosine"], tensor=tensor, **facts.steps_where(mask),
            )  # fmt: skip


def _raw(facts: Facts, tensor: Tensor, place: int, of: str) -> np.ndarray | None:
    step, key = facts.steps[place], tensor.key
    try:
        values = facts.recording.tensor(key.node, step.number, of=of, role=key.role, pass_=key.pass_, type=step.type)
    except EndoscopeError:
        return None
    return values.ravel() if np.isfinite(values).all() and values.any() else None


def _cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    dots: np.ndarray = (one * other).sum(axis=1) / (np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1))
    return dots


CHECK = Check(
    name="gradients_not_zeroed",
    description="Updates follow the sum of all gradients so far; seen for plain SGD, if raw values were kept.",
    stage=Stage.OPTIMIZER,
    run=run,
    thresholds={"cosine": 0.999, "own_cosine": 0.99, "steps": 5},
    causes=("optimizer.zero_grad() is missing.", "It is called for another optimizer or model."),
    remedies=("Call optimizer.zero_grad() before each backward().",),
)

"""What healthy trainings show, by kind of tensor and depth; `benchmarks/findings_reference.py` writes the table.

    tensor, quantity ─► "activation_std of linear, first third" ─► from where to where 98 of 100 healthy ones lie

The table says how far a measured value is beyond what is usual. It decides nothing by itself.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from endoscope.findings.facts import Facts
from endoscope.findings.functions import (
    ATTENTIONS,
    LAYERS,
    LEAKY,
    NORMALISATIONS,
    RECTIFIERS,
    SIGMOIDS,
    SOFTMAXES,
    TANHS,
)
from endoscope.findings.rows import Tensor

FILE = Path(__file__).with_name("reference.json")
DEPTHS = ("first third", "middle third", "last third")
_FEWEST = 20  # tensors: fewer say nothing about what is usual
_KINDS = {
    "rectifier": RECTIFIERS, "squashing": SIGMOIDS | TANHS, "activation": LEAKY, "normalisation": NORMALISATIONS,
    "attention": ATTENTIONS | SOFTMAXES, "recurrence": frozenset("gru lstm rnn_tanh gru_cell lstm_cell".split()),
    "embedding": frozenset(("embedding",)), "layer": LAYERS,
}  # fmt: skip


class Usual(NamedTuple):
    """The range of a quantity over healthy trainings."""

    low: float  # one in a hundred is below
    high: float  # one in a hundred is above
    tensors: int


def kind_of(facts: Facts, tensor: Tensor) -> str:
    """By the function that made it; of a parameter by the one that reads it."""
    if tensor.key.kind == "parameter":
        read_by = [facts.structure.type.get(place, "") for place in facts.structure.children.get(tensor.place, ())]
        return "weight of " + _kind(read_by[0] if read_by else "")
    return _kind(facts.type_of(tensor))


def _kind(function: str) -> str:
    return next((name for name, members in _KINDS.items() if function in members), "other")


def depth_of(facts: Facts, tensor: Tensor) -> str:
    """In which third of the forward pass it stands."""
    structure = facts.structure
    last = max(structure.position.values(), default=0) or 1
    return DEPTHS[min(int(3 * structure.depth(tensor.place) / (last + 1)), 2)]


def usual(facts: Facts, tensor: Tensor, quantity: str) -> Usual | None:
    """Of tensors of the same kind and depth, or else of the same kind at any depth."""
    kind, depth = kind_of(facts, tensor), depth_of(facts, tensor)
    for name in (f"{quantity}/{kind}/{depth}", f"{quantity}/{kind}"):
        found = _table().get(name)
        if found is not None and found.tensors >= _FEWEST:
            return found
    return None


def beyond(value: float, range_: Usual) -> float:
    """How many times beyond the nearer end; 1 inside."""
    if value > range_.high > 0:
        return value / range_.high
    return range_.low / value if 0 < value < range_.low else 1.0


@cache
def _table() -> dict[str, Usual]:
    return {name: Usual(*row) for name, row in json.loads(FILE.read_text(encoding="utf-8")).items()}


def quantities(facts: Facts) -> list[tuple[str, Tensor, float]]:
    """(quantity, tensor, its value) of a whole recording: what the table is made of."""
    found: list[tuple[str, Tensor, float]] = []
    parameters, values = facts.parameters, facts.values
    order = np.argsort(facts.numbers, kind="stable")

    def add(name: str, tensor: Tensor, numbers: np.ndarray) -> None:
        finite = numbers[np.isfinite(numbers)]
        if len(finite) >= 3:
            found.append((name, tensor, float(np.median(finite))))

    gradient = facts.parameter_gradients
    largest = np.nan_to_num(gradient).max(axis=0, initial=0)
    for tensor in parameters.tensors:
        if tensor.is_matrix:
            update = facts.parameter_updates[tensor.row]
            add("update_ratio", tensor, np.where(update > 0, update, np.nan) / parameters["norm"][tensor.row])
            add(
                "gradient_share",
                tensor,
                np.where(largest > 0, gradient[tensor.row], np.nan) / np.maximum(largest, 1e-300),
            )
    for tensor in values.tensors:
        if tensor.key.kind in ("computed", "output") and tensor.key.batch_dim >= 0 and tensor.is_float:
            std = values["std"][tensor.row, order].astype(np.float64)
            std = std[np.isfinite(std) & (std > 0)]
            add("activation_std", tensor, std)
            if len(std) >= 12:
                found.append(("growth", tensor, float(np.median(std[-3:]) / np.median(std[:3]))))
    return found

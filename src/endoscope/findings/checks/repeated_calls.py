"""One module that is called several times with the same input, and so gives the same several times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Tensor

_STATISTICS = ("mean", "norm", "std", "abs_max", "q50")


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Results of several passes that are equal to the last bit at every step, and that are all learnt from."""
    passes: dict[tuple[str, str], list[Tensor]] = {}
    learnt = {tensor.place for rows in facts.gradients.values() for tensor in rows.tensors}
    for tensor in facts.values.tensors:
        is_result = tensor.key.kind == "computed" and tensor.is_float and tensor.key.batch_dim >= 0
        if is_result and tensor.place in learnt and _reads_what_is_made(facts, tensor):
            passes.setdefault(tensor.place[:2], []).append(tensor)
    found = [(group, mask) for group in passes.values() if len(group) > 1 for mask in [_equal(facts, group)]]
    found = [(group, mask) for group, mask in found if np.count_nonzero(mask) >= limits["steps"]]
    for group, mask in found:
        yield Seen(
            of_the_run=True, severity=WARNING,
            title=f"the same module is called {len(group)} times and gives the same result each time",
            detail=f"At all {np.count_nonzero(mask)} recorded steps its {len(group)} results are equal to the last "
            "bit, and a gradient comes to each of them: what reads them shares one module and one answer.",
            value=float(len(group)), threshold=1.0, tensor=group[0], **facts.steps_where(mask),
        )  # fmt: skip


def _reads_what_is_made(facts: Facts, tensor: Tensor) -> bool:
    """Labels and positions may well be looked up twice."""
    rows = facts.values
    parents = [rows.row_of[place] for place in facts.structure.parents.get(tensor.place, ()) if place in rows.row_of]
    return any(rows.tensors[row].key.kind == "computed" for row in parents)


def _equal(facts: Facts, group: list[Tensor]) -> np.ndarray:
    """bool[steps]: where all are there; nothing if they differ at any step, or never vary."""
    rows = facts.values
    numbers = [tensor.row for tensor in group]
    there = rows.there[numbers].all(axis=0) & (rows["std"][numbers[0]] > 0)
    for name in _STATISTICS:
        values = rows[name][numbers]
        if (values[:, there] != values[:1, there]).any():
            return np.zeros(len(there), dtype=bool)
    return np.asarray(there)


CHECK = Check(
    name="repeated_calls",
    description="A module is called several times with the same input, and all of the equal results are learnt from.",
    stage=Stage.START,
    run=run,
    needs_harm=True,
    thresholds={"steps": 5},
    evidence=Evidence(("mean", "std"), page="mean"),
    causes=(
        "One module that stands in several places: `[layer] * 3`, or a default argument, is one layer three times with "
        "shared weights, and not three layers.",
        "The model is called again where its result could be used again.",
    ),
    remedies=("Make each one anew: `nn.ModuleList([make() for _ in range(3)])`, or copy.deepcopy.",),
)

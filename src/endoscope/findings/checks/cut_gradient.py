"""A gradient that is cut on its way back, where it should go on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.rows import Tensor


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Over the passes of one module that reads its own result: the gradient comes to the last pass alone."""
    passes: dict[tuple[str, str], list[Tensor]] = {}
    for tensor in facts.values.tensors:
        if tensor.key.kind == "computed" and tensor.is_float:
            passes.setdefault(tensor.place[:2], []).append(tensor)
    reached = {tensor.place for rows in facts.gradients.values() for tensor in rows.tensors}
    for found in passes.values():
        found.sort(key=lambda one: one.key.pass_)
        if len(found) < limits["passes"] or not facts.gradients:
            continue
        with_gradient = [tensor.place in reached for tensor in found]
        chained = facts.structure.below([found[0].place])
        if with_gradient[-1] and not any(with_gradient[:-1]) and found[-1].place in chained:
            cut = _line(facts, found)
            there = facts.values.there[found[-1].row]
            if np.count_nonzero(there) < limits["steps"]:
                continue
            yield Seen(
                severity=WARNING, title=f"the gradient of `{found[0].node}` is cut between its passes",
                detail=f"It is called {len(found)} times, each time with what came out before, and only the last call "
                "has a gradient: nothing is learned across time, from earlier passes.",
                value=float(len(found) - 1), threshold=0.0, tensor=found[-1], source=cut, **facts.steps_where(there),
            )  # fmt: skip


def _line(facts: Facts, found: list[Tensor]) -> str:
    """Where the recorder has seen it cut."""
    lines = [one["source"] for one in facts.remarks("cut") if one["node"] in {tensor.node for tensor in found}]
    return lines[0] if lines else ""


CHECK = Check(
    name="cut_gradient",
    description="The gradient of a recurrent module reaches only its last time step.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"passes": 3, "steps": 3},
    evidence=Evidence(("norm",), of="gradient"),
    causes=("A detach(), .data or torch.no_grad() around the state, at each step in place of each batch.",),
    remedies=("Detach the state once for each batch, before the loop over time, and not in it.",),
)

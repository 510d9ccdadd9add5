"""Of several readers of one tensor, one has all of the gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Evidence, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.lasting import median_where
from endoscope.findings.rows import Rows


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Branches that begin at one tensor, by the gradient at their first node. Passes of one node are no branches."""
    for rows in facts.gradients.values():
        norm = rows["norm"].astype(np.float64)
        for place, children in facts.structure.children.items():
            starts = [rows.row_of[child] for child in children if child in rows.row_of]
            names = {rows.tensors[row].node for row in starts}
            starts = [row for row in starts if rows.tensors[row].key.kind == "computed"]
            if not _has_gradient(facts, place):
                continue
            if len(names) == len(starts) >= 2 and facts.structure.type.get(place) not in ("parameter", "buffer"):
                yield from _judge(facts, rows, norm, starts, limits)


def _has_gradient(facts: Facts, place: tuple[str, str, int]) -> bool:
    """Through whole numbers no gradient flows, so what reads them is no branch."""
    row = facts.values.row_of.get(place)
    return row is not None and facts.values.tensors[row].is_float


def _judge(facts: Facts, rows: Rows, norm: np.ndarray, starts: list[int], limits: Limits) -> Iterator[Seen]:
    parts = norm[starts]
    there = (parts > 0).all(axis=0)
    if np.count_nonzero(there) < limits["steps"]:
        return
    usual = median_where(parts, np.broadcast_to(there, parts.shape))
    large, small = int(np.argmax(usual)), int(np.argmin(usual))
    ratio = parts[large] / parts[small]
    value = float(np.median(ratio[there]))
    if value > limits["ratio"]:
        yield Seen(
            severity=WARNING,
            title=f"the gradient is {1 / value:.2g} times that of `{rows.tensors[starts[large]].node}`, which reads "
            "the same tensor",
            detail=f"The gradient at {rows.tensors[starts[large]].node} is {value:.3g} times that at "
            f"{rows.tensors[starts[small]].node}, "
            "although both read "
            f"the same tensor (median over steps); reported above {limits['ratio']:g}.",
            value=value, threshold=limits["ratio"], tensor=rows.tensors[starts[small]],
            **facts.steps_where(there & (ratio > limits["ratio"])),
        )  # fmt: skip


CHECK = Check(
    name="branch_imbalance",
    description="Several branches read one tensor, and one of them has a gradient many times that of another.",
    stage=Stage.BACKWARD,
    run=run,
    thresholds={"ratio": 2000.0, "steps": 3},
    evidence=Evidence(("norm",), of="gradient"),
    causes=("A branch that is multiplied by a small number, or that is saturated.", "Losses of very different size."),
    remedies=("Scale the branches, or the losses at their ends, so that both can learn.",),
)

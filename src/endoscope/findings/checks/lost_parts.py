"""Steps that were recorded without their values, their graph or their gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.gaps import as_sentence
from endoscope.query.recording import Gap

_GRADIENT = "gradient"  # how `of` of a gap begins that is about one
_NOT_COMPUTED = {"parameter", "buffer", "target", "loss"}  # kinds that are there without a forward pass of the model


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """A part is missing only if the recorder says that it should be there."""
    if not facts.steps:
        return
    gaps = facts.recording.gaps
    parts = {
        "values of the model": _without_values(facts),
        "graph": _without_graph(facts, gaps),
        "gradients": _without_gradients(facts, gaps),
    }
    for part, (missing, why) in parts.items():
        share = float(missing.mean())
        if share >= limits["share"]:
            detail = f"{np.count_nonzero(missing)} of {len(missing)} recorded steps have no {part}. {as_sentence(why)}"
            yield Seen(
                of_the_run=True, severity=WARNING,
                title=f"{share:.0%} of the recorded steps have no {part}", detail=detail,
                value=share, threshold=limits["share"],
                cause=part, node="", **facts.steps_where(missing),
            )  # fmt: skip


def _without_values(facts: Facts) -> tuple[np.ndarray, str]:
    """bool[steps], and why. Whoever chose to record parameters only has gradients of them."""
    computed = {tensor.key.kind for tensor in facts.values.tensors} - _NOT_COMPUTED
    are_missing = bool(facts.recording.modules) and not computed and "parameter" not in _kinds_with_gradients(facts)
    return np.full(len(facts.steps), are_missing), "the model that is watched was not called in them"


def _without_graph(facts: Facts, gaps: list[Gap]) -> tuple[np.ndarray, str]:
    """The same for each step."""
    why = {gap.step: gap.reason for gap in gaps if not gap.node and not gap.of and "graph" in gap.reason}
    missing = np.array([not step.graph and step.number in why for step in facts.steps])
    return missing, next(iter(why.values()), "")


def _without_gradients(facts: Facts, gaps: list[Gap]) -> tuple[np.ndarray, str]:
    """All steps or none: what is missing at every step is said once."""
    said = [gap for gap in gaps if gap.of.startswith(_GRADIENT)]
    of_all = [gap for gap in said if not gap.node]  # of all that the model computes
    kinds = _kinds_with_gradients(facts)
    are_missing = bool(said and not kinds) or bool(of_all and not kinds - {"parameter"})
    return np.full(len(facts.steps), are_missing), (of_all or said)[0].reason if said else ""


def _kinds_with_gradients(facts: Facts) -> set[str]:
    every = [*facts.gradients.values(), facts.used_gradients]
    return {tensor.key.kind for rows in every for tensor in rows.tensors}


CHECK = Check(
    name="lost_parts",
    description="Most recorded steps lack their values, their graph or their gradients, and gaps say why.",
    stage=Stage.RECORDING,
    run=run,
    thresholds={"share": 0.5},
    causes=(
        "The model is called, or its gradients are computed, in a way that the recorder does not see.",
        "The model takes another path at every step, so its graph is seldom the one that is known.",
    ),
    remedies=(
        "Call the watched model itself and `loss.backward()` in the block `with run.step():`.",
        "Look at what the recorder says: `endoscope.open(path).gaps`.",
    ),
)

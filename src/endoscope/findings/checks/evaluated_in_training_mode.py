"""Evaluation with dropout, or with the statistics of the batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.completeness import passes_outside_of_steps
from endoscope.findings.facts import Facts
from endoscope.findings.finding import INFO, WARNING

_OTHER_WHEN_TRAINED = re.compile(r"Dropout|BatchNorm|SyncBatchNorm|InstanceNorm", re.IGNORECASE)


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """Forward passes without gradients in training mode, beside held-out metrics and none in evaluation mode."""
    passes = passes_outside_of_steps(facts.recording)
    count = passes.get("training_without_gradients", 0)
    modules = {name: kind for name, kind in facts.module_types.items() if _OTHER_WHEN_TRAINED.search(kind)}
    if count < limits["passes"] or passes.get("evaluation", 0) or not modules:
        return
    held_out = [curve.name for curve in facts.metrics if curve.is_held_out]
    name, kind = next(iter(modules.items()))
    yield Seen(
        of_the_run=True, severity=WARNING if held_out else INFO,
        title="the model is evaluated in training mode",
        detail=f"{count} forward passes without gradients ran in training mode, and none in evaluation mode; "
        f"{len(modules)} modules such as {name} ({kind}) compute something else in training mode.",
        value=float(count), threshold=limits["passes"], node=name, also=tuple(held_out),
        **facts.steps_of(name),
    )  # fmt: skip


CHECK = Check(
    name="evaluated_in_training_mode",
    description="Forward passes without gradients run in training mode, where dropout and batch statistics are on.",
    stage=Stage.FORWARD,
    run=run,
    thresholds={"passes": 2},
    causes=("model.eval() is missing before the evaluation.", "model.train() is called in the wrong place."),
    remedies=("Call model.eval() before evaluating and model.train() before going on.",),
)

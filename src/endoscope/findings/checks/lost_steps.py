"""Steps that were to be recorded and are not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from endoscope.findings import completeness
from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, WARNING
from endoscope.findings.gaps import as_sentence


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """If there is no step at all, `no_steps` speaks of it."""
    recording = facts.recording
    if not facts.steps:
        return
    yield from _stopped(facts)
    lost = completeness.lost_steps(recording)
    count = completeness.count_lost(recording, len(lost))
    wanted = len(facts.steps) + count
    share = count / wanted
    if share < limits["share"]:
        return
    often = Counter(lost.values()).most_common(1)
    why = often[0][0] if often else completeness.why_writing_failed(recording)
    detail = f"{count} of {wanted} steps that were to be recorded are not there"
    yield Seen(
        of_the_run=True, severity=ERROR if share >= limits["error_share"] else WARNING,
        title="most steps are missing",
        detail=f"{detail}. Most often: {as_sentence(why)}", value=share, threshold=limits["share"],
        steps=np.array(sorted(lost), np.int64),
    )  # fmt: skip


def _stopped(facts: Facts) -> Iterator[Seen]:
    """Whoever looks at the loss and stops has seen something that no recorded step shows."""
    number = completeness.stopped_unseen(facts.recording)
    if number is None:
        return
    yield Seen(
        severity=WARNING, title=f"the training stopped in the middle of step {number}, which was not recorded",
        detail=f"Step {number} ended between its forward and its backward pass. If it was stopped because the loss was "
        "NaN or too large, the reason is in that step, and not in what was checked.",
        value=1.0, threshold=0.0, steps=np.array([number], np.int64), cause="stopped",
        causes=("A guard in the training loop, such as `if not torch.isfinite(loss): raise`.",),
        remedies=(
            "Record the step in which something becomes NaN or infinite: "
            "`endoscope.Run(root, when=endoscope.policies.either(10, endoscope.policies.on_nonfinite()))`.",
            "Record every step: `endoscope.Run(root, when=1)`.",
        ),
    )  # fmt: skip


CHECK = Check(
    name="lost_steps",
    description="Steps that should have been recorded are missing: most of them, or the one in which the training "
    "stopped.",
    stage=Stage.RECORDING,
    run=run,
    thresholds={"share": 0.5, "error_share": 0.9},
    causes=(
        "The disk was full, or the folder has gone.",
        "The disk is slower than the recording: the queue to the writer was full.",
        "Recording a step failed, with the error that stands in the gaps.",
    ),
    remedies=(
        "Free some space, or limit the recording: `endoscope.Run(root, max_bytes=10**9)`.",
        "Record fewer steps and values: `endoscope.Run(root, when=10, keep=0)`.",
        "Record to a disk of this machine and move the trial afterwards.",
    ),
)

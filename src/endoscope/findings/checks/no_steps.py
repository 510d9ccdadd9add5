"""A recording in which there is nothing to check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from endoscope.findings import completeness
from endoscope.findings.check import Check, Limits, Seen, Stage
from endoscope.findings.checks import lost_steps
from endoscope.findings.facts import Facts
from endoscope.findings.finding import ERROR, INFO, NO_STEPS, WARNING
from endoscope.findings.gaps import as_sentence, summed_up
from endoscope.query.recording import Recording

_TITLE = "no step was recorded"
_WATCH = "Call `run.watch(model, optimizer)` before the training begins."


class _Why(NamedTuple):
    """What is known about the reason; of causes and remedies None means those of the check."""

    severity: str
    detail: str
    causes: tuple[str, ...] | None = None
    remedies: tuple[str, ...] | None = None


def run(facts: Facts, limits: Limits) -> Iterator[Seen]:
    """The first reason that is known explains it best."""
    recording = facts.recording
    if facts.steps:
        return
    why = _running(recording) or _damaged(recording) or _lost(recording) or _unwanted(recording) or _silent(recording)
    yield Seen(
        severity=why.severity,
        title=_TITLE + (" yet" if completeness.is_running(recording) else ""), detail=why.detail,
        value=0.0, threshold=1.0, steps=np.empty(0, np.int64), causes=why.causes, remedies=why.remedies,
    )  # fmt: skip


def _running(recording: Recording) -> _Why | None:
    if not completeness.is_running(recording):
        return None
    noted = _noted(recording)
    if noted:
        return _Why(WARNING, f"The trial is still running, and none of its steps was recorded so far. {noted}", ())
    return _Why(INFO, "The trial is still running, so this may come. Check it again later.", (), ())


def _damaged(recording: Recording) -> _Why | None:
    problems = recording.problems
    if not problems:
        return None
    detail = f"No step can be read any more: {problems[0]}."
    causes = ("The files were changed, cut off or lost after they were written.",)
    look = f"`endoscope.open({str(recording.path)!r}).verify()` lists all that is damaged. Copy the trial again."
    return _Why(ERROR, detail, causes, (look,))


def _lost(recording: Recording) -> _Why | None:
    lost = completeness.lost_steps(recording)
    count = completeness.count_lost(recording, len(lost))
    if not count:
        return None
    reasons = [*lost.values(), completeness.why_writing_failed(recording)]
    detail = f"{count} steps were to be recorded, and none of them is there. At first: {as_sentence(reasons[0])}"
    return _Why(ERROR, detail, lost_steps.CHECK.causes, lost_steps.CHECK.remedies)


def _unwanted(recording: Recording) -> _Why | None:
    seen = completeness.steps_seen(recording)
    if not seen:
        return None
    detail = f"{seen} steps were seen, and none of them was recorded. {_noted(recording)}".rstrip()
    causes = (
        "The policy `when` said yes to no step, or `step.keep` was False at every step.",
        "All recorded steps were removed to stay within max_bytes.",
    )
    return _Why(ERROR, detail, causes, ("Record every tenth step: `endoscope.Run(root, when=10)`.",))


def _silent(recording: Recording) -> _Why:
    """No step ever began."""
    noted = _noted(recording)
    if noted:
        return _Why(ERROR, noted, ())
    if recording.modules:
        ended = "" if recording.closed else " The training ended early."
        return _Why(ERROR, f"A model was watched, and it was never called in training mode.{ended}")
    if recording.metrics:
        detail = f"Only metrics were recorded ({', '.join(list(recording.metrics)[:3])}), and only they were checked."
        return _Why(INFO, f"{detail} No model was watched.", (), (_WATCH,))
    return _Why(ERROR, "No model was watched.", (), (_WATCH,))


def _noted(recording: Recording) -> str:
    """What the recorder says most often about what it could not record."""
    reasons = summed_up(recording.gaps)
    return as_sentence(reasons[0].text) if reasons else ""


CHECK = Check(
    name=NO_STEPS,
    description="Nothing can be checked, because no step was recorded.",
    stage=Stage.RECORDING,
    run=run,
    causes=(
        "The model was never called, or in evaluation mode only: a step begins with a forward pass in training mode.",
        "`model.forward(x)` was called instead of the model itself, or another object than the one that is watched.",
    ),
    remedies=(
        "Put `with run.step():` around each training step.",
        "Call `model.train()` and then the model itself, `model(x)`; watch what is trained: "
        "`run.watch(model, optimizer)`.",
    ),
)

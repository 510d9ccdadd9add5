"""How much there is of what a recording should hold. What is missing is told by the checks of the stage RECORDING.

A step is lost if it was to be recorded and is not there: a gap says so, or the recorder's own report, which is written
when the run is closed. A step that nobody wanted, and one that was removed to stay within max_bytes, is not lost.
"""

from __future__ import annotations

from typing import Any

from endoscope.findings.gaps import without_number
from endoscope.query.liveness import is_running
from endoscope.query.recording import Gap, Recording

__all__ = ["count_lost", "is_running", "lost_steps", "steps_seen", "why_writing_failed"]

#: What the recorder says of a step that is not there.
_IS_LOST = ("was left out", "was not written", "no values were held")
#: And of one in whose middle the training stopped.
_STOPPED = "was the last one, ended before its backward pass"
#: Where the recorder was when it failed and gave up the step.
_GAVE_UP_AT = ("the beginning of a step", "the end of a step", "the last step")


def steps_seen(recording: Recording) -> int:
    """How many steps there were, recorded or not; 0 if that is not known."""
    return _sum(recording, "seen")


def lost_steps(recording: Recording) -> dict[int, str]:
    """Number of each lost step that is known -> why it is not there."""
    there = {step.number for step in recording.steps}
    lost: dict[int, str] = {}
    for gap in recording.gaps:
        if gap.step >= 0 and gap.step not in there and _speaks_of_a_lost_step(gap):
            lost.setdefault(gap.step, without_number(gap.reason))
    return lost


def stopped_unseen(recording: Recording) -> int | None:
    """Number of a step that was not recorded, in whose middle the training stopped."""
    return next((gap.step for gap in recording.gaps if _STOPPED in gap.reason), None)


def count_lost(recording: Recording, known: int) -> int:
    """How many steps were lost, those included of which no gap could be written; `known` are those that have one."""
    failed = _report(recording).get("failed_writes", 0)
    failed = failed if isinstance(failed, int) else 0
    return max(known, min(failed, _sum(recording, "recorded") - len(recording.steps)))


def nonfinite_parameters(recording: Recording) -> list[str]:
    """Parameters that held NaN or infinity when the run was closed."""
    found = _report(recording).get("nonfinite_parameters", [])
    return list(map(str, found)) if isinstance(found, list) else []


def passes_outside_of_steps(recording: Recording) -> dict[str, int]:
    """How many forward passes belonged to no step, by the mode of the model."""
    found = _report(recording).get("passes", {})
    return {str(name): int(count) for name, count in found.items()} if isinstance(found, dict) else {}


def why_writing_failed(recording: Recording) -> str:
    """What the system said last; empty if nothing failed."""
    return str(_report(recording).get("failed_writes_last", ""))


def _speaks_of_a_lost_step(gap: Gap) -> bool:
    return gap.node in _GAVE_UP_AT or any(words in gap.reason for words in _IS_LOST)


def _sum(recording: Recording, what: str) -> int:
    counts = _report(recording).get("steps", {})
    if not isinstance(counts, dict):
        return 0
    return sum(int(of_type.get(what, 0)) for of_type in counts.values() if isinstance(of_type, dict))


def _report(recording: Recording) -> dict[str, Any]:
    """What the recorder wrote about itself when the run was closed."""
    found = recording.config.get("endoscope", {})
    return found if isinstance(found, dict) else {}

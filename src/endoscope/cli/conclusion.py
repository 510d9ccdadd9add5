"""The last lines of `endoscope check`: how much was looked at, and which gaps there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from endoscope.findings.finding import Finding
    from endoscope.query.recording import Recording

_MOST_REASONS = 3
_LONGEST_REASON = 70  # characters
_MOST_TRIALS = 10  # whose gaps are told


def summary(path: Path, findings: Sequence[Finding], recordings: Sequence[Recording]) -> str:
    """How many findings there are; that all looks well is said only of recordings that lack nothing."""
    from endoscope.findings.diagnose import lacks

    if findings:
        counts = {word: sum(finding.severity == word for finding in findings) for word in ("error", "warning", "info")}
        return ", ".join(_plural(count, word) for word, count in counts.items())
    steps = sum(len(recording.steps) for recording in recordings)
    over = f"over {steps} recorded step{'' if steps == 1 else 's'}"
    over += f" of {len(recordings)} trials" if len(recordings) > 1 else ""
    incomplete = [finding for recording in recordings for finding in lacks(recording)]
    if incomplete:
        named = "; ".join(f"{finding.title} ({finding.check}, {finding.trial})" for finding in incomplete)
        return f"Nothing else was found in {path}, {over}. Silenced: {named}."
    return f"Nothing looks wrong in {path}, {over}.{_unfinished(recordings)}"


def _unfinished(recordings: Sequence[Recording]) -> str:
    """A run that was not closed may have gone on after its last recorded step."""
    from endoscope.query.liveness import is_running

    ended_early = [one.name for one in recordings if not one.closed and not is_running(one)]
    running = [one.name for one in recordings if is_running(one)]
    told = f" Still running: {', '.join(running)}." if running else ""
    more = "what came after the last step that was written is not known"
    return told + (f" Ended early: {', '.join(ended_early)}; {more}." if ended_early else "")


def gap_lines(recordings: Sequence[Recording]) -> list[str]:
    """One line for each trial that has gaps."""
    lines = [line for recording in recordings if (line := _gap_line(recording, len(recordings) > 1))]
    more = len(lines) - _MOST_TRIALS
    return [*lines[:_MOST_TRIALS], *([f"… and gaps in {_plural(more, 'more trial')}."] if more > 0 else [])]


def _gap_line(recording: Recording, is_named: bool) -> str:
    from endoscope.findings.gaps import summed_up

    reasons = summed_up(recording.gaps)
    if not reasons:
        return ""
    told = [f"{reason.times} × {_cut(reason.text)}" for reason in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        told.append(_plural(len(reasons) - _MOST_REASONS, "other reason"))
    name = f" in {recording.name}" if is_named else ""
    return f"Gaps{name}: {'; '.join(told)}. See `endoscope.open({str(recording.path)!r}).gaps`."


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1].rstrip() + "…"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 and word != 'info' else ''}"

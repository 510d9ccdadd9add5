"""`endoscope check DIR --follow`: look again and again while a training runs, and tell each finding once.

look ─► new findings are printed ─► a command is run for each new error, with the finding as JSON on its stdin
     ─► nobody writes any more: one last look, and the end
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from endoscope.findings.finding import ERROR

if TYPE_CHECKING:
    from endoscope.findings.finding import Finding

EVERY_SECS = 10.0
_SHARE = 5  # between two looks passes at least so many times what a look takes: training needs the processor
_Key = tuple[str, str, str, str, str, str]


def follow(
    path: Path, look: Callable[[], list[Finding]], tell: Callable[[Finding], None], command: str | None, every: float
) -> list[Finding]:
    """Until nobody writes to any of the trials, or Ctrl+C; returns what the last look has found."""
    told: set[_Key] = set()
    findings: list[Finding] = []
    try:
        while True:
            goes_on, started = _is_any_running(path), time.monotonic()
            findings = look()
            for finding in _new(findings, told):
                tell(finding)
                if command is not None and finding.severity == ERROR:
                    _run(command, finding)
            if not goes_on:  # asked before the look, so nothing can have come since
                return findings
            time.sleep(max(every, _SHARE * (time.monotonic() - started)))
    except KeyboardInterrupt:
        return findings


def _new(findings: Sequence[Finding], told: set[_Key]) -> list[Finding]:
    """A finding that has become worse is told again, one that has grown is not."""
    found = {(f.trial, f.check, f.node, f.role, f.of, f.severity): f for f in findings}
    new = [finding for key, finding in found.items() if key not in told]
    told.update(found)
    return new


def _is_any_running(path: Path) -> bool:
    from endoscope.query.liveness import is_running
    from endoscope.query.open import look
    from endoscope.query.recording import Recording

    found = look(path)
    return any(map(is_running, [found] if isinstance(found, Recording) else list(found.values())))


def _run(command: str, finding: Finding) -> None:
    """The user's own command, by the user's own shell. If it fails this is said, and following goes on."""
    done = subprocess.run(command, shell=True, input=json.dumps(finding.to_dict()) + "\n", text=True)
    if done.returncode:
        print(f"endoscope: {command!r} ended with the exit status {done.returncode}.", file=sys.stderr, flush=True)

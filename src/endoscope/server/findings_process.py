"""What looks wrong in trials, computed in a process of its own: `python -m endoscope.server.findings_process`.

Checking a large recording keeps Python busy for seconds, and whoever clicks meanwhile would wait for it. This process
has a low priority and one thread, and gives its memory back when it ends. For each line that it reads, the path of a
trial, or of one rank's folder, as JSON, it prints one line of JSON: `Checked`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, TypedDict

from endoscope.errors import EndoscopeError, NotARecording
from endoscope.findings.diagnose import checks_of, with_silenced
from endoscope.findings.registry import choose
from endoscope.query import places
from endoscope.query.open import look
from endoscope.query.recording import Recording
from endoscope.server.answers import to_json

_KINDNESS = 5  # of 19, unless it was started with more: others go first, but a busy machine still gets its findings


class Checked(TypedDict):
    """What the process answers. Findings are those of `Finding.to_dict`, also the silenced ones."""

    findings: list[dict[str, Any]]
    checks: int
    steps: int
    lastStep: int | None
    seconds: float  # of a core
    problem: str | None  # why nothing could be checked


def checked(trial: Path) -> Checked:
    """Run all checks; what goes wrong is said."""
    began = time.process_time()
    findings: list[dict[str, Any]] = []
    checks, steps, last, problem = choose(None), 0, None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody would see them
            rank = places.rank_in(trial)
            recording = look(trial if rank is None else trial.parent)
            if not isinstance(recording, Recording):
                raise NotARecording(f"{trial} is a folder of trials. Findings are those of one of them.")
            recording = recording if rank is None else recording.rank(rank)
            checks = checks_of(recording.path)  # with own anomalies of the trial
            findings = [finding.to_dict() for finding in with_silenced(recording, checks)]
            steps, last = len(recording.steps), recording.steps[-1].number if recording.steps else None
    except (EndoscopeError, OSError) as error:
        problem = str(error)
    return Checked(
        findings=findings, checks=len(checks), steps=steps, lastStep=last, seconds=time.process_time() - began,
        problem=problem,
    )  # fmt: skip


def give_way() -> None:
    """Take only what nobody else wants of the processor, as far as the system can do that."""
    with contextlib.suppress(AttributeError, OSError):  # there is no such thing on Windows
        os.nice(max(0, _KINDNESS - os.nice(0)))
    with contextlib.suppress(AttributeError, OSError):  # only on Linux
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Linux shares the processor among sessions first, and a browser has its own: there, this one has to be modest as
    # a whole. A session that it shares with others is not its to change.
    with contextlib.suppress(AttributeError, OSError):
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text("19", encoding="ascii")


def main() -> None:
    give_way()
    out, sys.stdout = sys.stdout, sys.stderr  # what is printed by others must not stand in the answer
    for line in sys.stdin:
        print(to_json(checked(Path(json.loads(line)))), file=out, flush=True)


if __name__ == "__main__":
    main()

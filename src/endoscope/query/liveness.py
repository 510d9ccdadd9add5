"""Whether a recording is still being written.

Where folders can be locked, the lock tells: it ends with the process that writes, whatever ends that. Elsewhere a
recording that was not closed counts as running until it has been silent for two minutes.
"""

from __future__ import annotations

import time
from pathlib import Path

from endoscope.query.recording import Recording
from endoscope.store import paths
from endoscope.store.disk import locking

_QUIET_SECS = 120


def is_running(recording: Recording) -> bool:
    return is_running_at(recording.path, recording.closed, last_sign(recording))


def is_running_at(trial: Path, closed: bool, last_sign_at: float) -> bool:
    """The same of a trial that is not open."""
    if closed:
        return False
    held = locking.is_held(paths.rank_folder(trial, 0))
    return time.time() - last_sign_at < _QUIET_SECS if held is None else held


def last_sign(recording: Recording) -> float:
    """When something was written last."""
    return max(recording.updated, recording.created)

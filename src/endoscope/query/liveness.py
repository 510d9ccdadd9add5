"""Whether a recording is still being written.

Where folders can be locked, the lock tells: it ends with the process that writes, whatever ends that. Elsewhere a
recording that was not closed counts as running until it has been silent for two minutes.
"""

from __future__ import annotations

import time
from pathlib import Path

from endoscope.query.recording import Recording
from endoscope.store.disk import locking

_QUIET_SECS = 120


def is_running(recording: Recording) -> bool:
    """Whether any process still writes."""
    return any(is_written(source.folder, source.closed, last_sign(source)) for source in recording.sources)


def is_written(folder: Path, closed: bool, last_sign_at: float) -> bool:
    """Whether a process still writes into a folder; also of a trial that is not open."""
    if closed:
        return False
    held = locking.is_held(folder)
    return time.time() - last_sign_at < _QUIET_SECS if held is None else held


def last_sign(recording: Recording) -> float:
    """When something was written last."""
    return max(recording.updated, recording.created)

"""Whether a recording is still being written.

Where folders can be locked, the lock tells: it ends with the process that writes, whatever ends that. Elsewhere a
recording that was not closed counts as running until it has been silent for two minutes.
"""

from __future__ import annotations

import time

from endoscope.query.recording import Recording
from endoscope.store.disk import locking

_QUIET_SECS = 120


def is_running(recording: Recording) -> bool:
    """Whether any process still writes."""
    return any(_is_written(source) for source in recording.sources)


def _is_written(source: Recording) -> bool:
    if source.closed:
        return False
    held = locking.is_held(source.folder)
    return time.time() - last_sign(source) < _QUIET_SECS if held is None else held


def last_sign(recording: Recording) -> float:
    """When something was written last."""
    return max(recording.updated, recording.created)

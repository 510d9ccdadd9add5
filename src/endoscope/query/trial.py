"""One trial as a recording: of one process, or of all that were in its job."""

from __future__ import annotations

from pathlib import Path

from endoscope.query.ranks.recording import WholeRecording
from endoscope.query.recording import Recording
from endoscope.store import membership, paths


def of_folder(trial: Path) -> Recording:
    """The recording in a folder that is a trial."""
    return WholeRecording(trial) if _has_several(trial) else Recording(trial)


def _has_several(trial: Path) -> bool:
    """Whether several processes have written it, or should have."""
    ranks = paths.ranks_of(trial)
    if ranks not in ([], [0]) or any(len(paths.attempts_of(trial, rank)) > 1 for rank in ranks):
        return True
    member, _ = membership.read(paths.rank_folder(trial, 0))
    return member is not None and member.world_size > 1

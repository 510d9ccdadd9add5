"""What one process has written: one attempt of one rank, with what is asked of it again and again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from endoscope.query import liveness
from endoscope.query.recording import Recording
from endoscope.query.steps import StepIndex
from endoscope.store import paths


@dataclass(eq=False)
class Source:
    """A recording of one process, and whose it is."""

    rank: int
    attempt: int
    recording: Recording
    is_last: bool = True  # no later attempt of this rank

    @property
    def steps(self) -> StepIndex:
        """The steps of the last refresh."""
        found: StepIndex = self.recording.tables.steadily(lambda steps: steps)
        return found

    @property
    def went_back_to(self) -> int | None:
        """From which step on this attempt has taken the place of earlier ones; None if it does not say so."""
        return self.recording.tables.went_back_to

    @property
    def last_number(self) -> int:
        return max((step.number for step in self.steps.list), default=-1)

    @property
    def is_running(self) -> bool:
        return liveness.is_running(self.recording)


def find(trial: Path) -> list[tuple[int, int]]:
    """(rank, attempt) of all that has been written, in that order."""
    return [(rank, attempt) for rank in paths.ranks_of(trial) for attempt in paths.attempts_of(trial, rank)]

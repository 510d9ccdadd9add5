"""What is no longer part of a trial, because a later session went back to an earlier step and trained on from there.

    session 0    steps 0 1 2 3 4 5 6 7
    session 1            3 4             goes on from a checkpoint: its first step takes the place of all from 3 on

A session is one process that records; a trial that was resumed has several. What is superseded stays in its files.
"""

from __future__ import annotations

TABLES = ("metrics", "times", "notes", "gaps")  # whose rows have the number of a step, and belong to no recorded step


class Superseding:
    """From which step on each session has taken the place of those before it."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}  # session -> number of its lowest step

    def __bool__(self) -> bool:
        return bool(self._first)

    @property
    def sessions(self) -> list[int]:
        """Those that went back to an earlier step."""
        return list(self._first)

    def add(self, session: int, step: int) -> bool:
        """A session goes on from this step; returns whether that is earlier than what was known of it."""
        if step >= self._first.get(session, step + 1):
            return False
        self._first[session] = step
        return True

    def first_of(self, session: int) -> int | None:
        """The step that a session went back to; None if it went on where the trial had ended."""
        return self._first.get(session)

    @property
    def lowest(self) -> int | None:
        """The earliest step that any session went back to; None if none did."""
        return min(self._first.values(), default=None)

    def end_of(self, session: int) -> int | None:
        """Steps of a session from this number on are superseded; None if none is."""
        return min((step for later, step in self._first.items() if later > session), default=None)

    def hides(self, session: int, step: int) -> bool:
        """Whether a step of a session is superseded."""
        end = self.end_of(session)
        return end is not None and step >= end

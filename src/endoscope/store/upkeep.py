"""Tidies up behind many small commits: rows that came one by one into one batch, the journal without its history.

A training of a million steps has a million commits of a few metrics each. Kept as they came, they would take ten times
their bytes, and opening the recording would mean a million small reads. Nothing is lost by this, and readers notice it
like thinning: the journal tells them of the new segment, or a new journal stands in the place of the old one.
"""

from __future__ import annotations

import time

from endoscope.schema.recording import TABLES, THINNED
from endoscope.store.journal import JournalWriter
from endoscope.store.ledger import Ledger
from endoscope.store.segments import Rewrite, Segments

_ROWS = tuple(table for table in TABLES if table not in THINNED)  # tables that belong to no step
_MOST_CHUNKS = 512  # of such a table before they are merged
_MOST_STALE_LINES = 2048


class Upkeep:
    """Merges and rewrites when it pays."""

    def __init__(self, journal: JournalWriter, segments: Segments, ledger: Ledger) -> None:
        self._journal, self._segments, self._ledger = journal, segments, ledger

    def tidy(self, *, thoroughly: bool = False) -> None:
        """After a commit, seldom anything; `thoroughly` when bytes are needed."""
        for table in _ROWS:
            if len(self._segments.chunks[table]) > (16 if thoroughly else _MOST_CHUNKS):
                rewrite = self._segments.merged(table)
                if rewrite is not None:
                    self.take_up(rewrite, {})
        stale = self._journal.lines - len(self._ledger.steps)
        if stale > (64 + len(self._ledger.steps) // 4 if thoroughly else _MOST_STALE_LINES + len(self._ledger.steps)):
            self._journal.rewrite(self._ledger.lines(self._segments, time.time()))

    def take_up(self, rewrite: Rewrite, thinned: dict[str, list[int]]) -> None:
        """Tell the journal of a new segment, then remove the old ones."""
        copied = {rewrite.file: rewrite.copied} if rewrite.copied else {}
        try:
            self._journal.append("thin", time.time(), thinned=thinned, removed=tuple(rewrite.old), copied=copied)
        except BaseException:
            self._segments.abandon(rewrite)
            raise
        self._segments.replace(rewrite)

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
_WORTH = 0.9  # of its bytes: a journal that would keep more is not written anew


class Upkeep:
    """Merges and rewrites when it pays."""

    def __init__(self, journal: JournalWriter, segments: Segments, ledger: Ledger) -> None:
        self._journal, self._segments, self._ledger = journal, segments, ledger

    def tidy(self) -> None:
        """After a commit; seldom is there anything to do."""
        self._merge(_MOST_CHUNKS)
        stale = self._journal.lines - len(self._ledger.steps)
        if stale > _MOST_STALE_LINES + len(self._ledger.steps):
            self._journal.rewrite(self._ledger.lines(self._segments, time.time()))

    def squeeze(self, most_chunks: int) -> None:
        """When bytes are needed: whatever can be told in fewer."""
        self._merge(most_chunks)
        most_bytes = _WORTH * self._journal.file.size
        self._journal.rewrite(self._ledger.lines(self._segments, time.time()), most_bytes=most_bytes)

    def _merge(self, most_chunks: int) -> None:
        for table in _ROWS:
            if len(self._segments.chunks[table]) > most_chunks:
                for rewrite in self._segments.merged(table):
                    self.take_up(rewrite, {})

    def take_up(self, rewrite: Rewrite, thinned: dict[str, list[int]]) -> None:
        """Tell the journal of a new segment, then remove the old ones."""
        copied = {rewrite.file: rewrite.copied} if rewrite.copied else {}
        said = {"thinned": thinned, "removed": tuple(rewrite.old), "copied": copied, "session": rewrite.session}
        try:
            self._journal.append("thin", time.time(), **said)
        except BaseException:
            self._segments.abandon(rewrite)
            raise
        self._segments.replace(rewrite)

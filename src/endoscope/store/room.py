"""Keeps a rank below max_bytes: makes room before each commit by thinning old steps.

First everything is tidied up, then raw values go, every second step at a time, then whole steps. Metrics, notes, gaps
and graphs stay. Each time some more is freed than is needed, so that it does not happen at every step. What has gone is
said in the journal, step by step, and in one line of `gaps`.

The journal is told first, then files are removed: a reader may find a file gone that it has just read about, and must
then read on in the journal. A process that is killed in between leaves files that nobody reads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from endoscope.schema.recording import THINNED
from endoscope.store.files import remove
from endoscope.store.journal import JournalWriter
from endoscope.store.ledger import Ledger
from endoscope.store.segments import Segments
from endoscope.store.thinning import Choice, Recorded, choose
from endoscope.store.upkeep import Upkeep

_GOAL = 0.8  # of max_bytes, once thinning has begun


class Room:
    """Counts bytes and frees them."""

    def __init__(self, folder: Path, journal: JournalWriter, segments: Segments, max_bytes: int | None) -> None:
        self._folder, self._journal, self._segments = folder, journal, segments
        self._max_bytes = max_bytes
        self.ledger = Ledger()
        self._upkeep = Upkeep(journal, segments, self.ledger)
        self._level = {"raw": 1, "stats": 1}
        self._has_complained = False

    @property
    def bytes(self) -> int:
        return self._journal.file.size + self._segments.bytes + self.ledger.bytes

    def tidy(self) -> None:
        """After each commit."""
        self._upkeep.tidy()

    def make(self, incoming: int) -> list[str]:
        """Free bytes if so many more would be too many; returns what is to be said about it."""
        if self._max_bytes is None or self.bytes + incoming <= self._max_bytes:
            return []
        self._upkeep.tidy(thoroughly=True)
        said = []
        for what in ("raw", "stats"):
            to_free = self.bytes + incoming - int(_GOAL * self._max_bytes)
            if to_free <= 0:
                break
            choice = choose(self._candidates(what), to_free, self._level[what])
            self._level[what] = choice.level
            if choice.steps:
                said.append(self._sentence(what, choice.steps))
                self._thin_raw(choice.steps) if what == "raw" else self._thin_steps(choice)
        if self.bytes + incoming > self._max_bytes and not self._has_complained:
            self._has_complained = True
            said.append(f"max_bytes={self._max_bytes} is too little for what is never thinned, and is exceeded")
        return said

    def _candidates(self, what: str) -> list[Recorded]:
        if what == "raw":
            sizes = {ordinal: span.end for ordinal, (_, span) in self.ledger.raw.items()}
        else:
            sizes = dict.fromkeys(self.ledger.steps, 0)
            for table in THINNED:
                for chunk in self._segments.chunks[table]:
                    sizes[chunk.ordinal] += chunk.bytes
        steps = self.ledger.steps
        return [Recorded(ordinal, steps[ordinal].type, steps[ordinal].nth, size) for ordinal, size in sizes.items()]

    def _thin_raw(self, steps: Sequence[Recorded]) -> None:
        if not steps:
            return
        ordinals = [step.ordinal for step in steps]
        files = [self.ledger.raw[ordinal][0] for ordinal in ordinals]
        self._journal.append("thin", time.time(), thinned={"raw": ordinals}, removed=tuple(files))
        for ordinal in ordinals:
            remove(self._folder / self.ledger.drop_raw(ordinal))

    def _thin_steps(self, choice: Choice) -> None:
        """A step is gone for readers with the first line that says so; the tables follow one by one."""
        self._thin_raw([step for step in choice.steps if step.ordinal in self.ledger.raw])
        ordinals = [step.ordinal for step in choice.steps]
        thinned = {"stats": ordinals}  # said once
        for table in THINNED:
            for rewrite in self._segments.rewrites(table, set(ordinals)):
                self._upkeep.take_up(rewrite, thinned)
                thinned = {}
        for ordinal in ordinals:
            self.ledger.drop_step(ordinal)

    def _sentence(self, what: str, steps: Sequence[Recorded]) -> str:
        things = {"raw": "raw values", "stats": "all values"}[what]
        first, last = (self.ledger.steps[step.ordinal].number for step in (steps[0], steps[-1]))
        return (
            f"{things} of {len(steps)} recorded steps (between {first} and {last}) were removed "
            f"to stay within max_bytes={self._max_bytes}"
        )

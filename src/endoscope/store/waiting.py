"""Rows of no recorded step, until the next commit: metrics, times, notes, and gaps, which say what is lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from endoscope.schema.recording import NO_STEP, GapRecord, TimesRecord
from endoscope.store import rows
from endoscope.store.commits.contents import NUMBERED
from endoscope.store.streams import batch_message

MOST = 200_000  # rows of a table that wait for the disk

Row = tuple[Any, ...]
Rows = Mapping[str, Sequence[Row]]


class Waiting:
    """Collected in memory: the disk may be full, or there may be nothing worth a commit."""

    def __init__(self, max_bytes: int | None) -> None:
        self._rows: dict[str, list[Row]] = {table: [] for table in NUMBERED}
        self._max_bytes = max_bytes
        self._said: set[str] = set()

    def __bool__(self) -> bool:
        return any(self._rows.values())

    @property
    def has_gaps(self) -> bool:
        return bool(self._rows["gaps"])

    def counts(self) -> dict[str, int]:
        return {table: len(found) for table, found in self._rows.items()}

    def messages(self, more: Rows) -> dict[str, memoryview]:
        """Table -> what a commit adds to it, with more rows behind those that wait."""
        together = {table: [*found, *more.get(table, ())] for table, found in self._rows.items()}
        return {table: batch_message(table, rows.of_tuples(table, found)) for table, found in together.items() if found}

    def forget(self, counts: Mapping[str, int]) -> None:
        """So many rows of each table have been committed."""
        for table, count in counts.items():
            del self._rows[table][:count]

    def leave_out(self, tables: Iterable[str]) -> None:
        for table in tables:
            self._rows[table].clear()

    def add(self, more: Rows) -> None:
        for table, found in more.items():
            self._rows[table] += found
            self._thin(table)

    def metrics(self, step: int, type_: str, at: float, metrics: Mapping[str, Any]) -> list[Row]:
        """Rows of metrics; what is no number becomes a gap."""
        found: list[Row] = []
        for name, value in metrics.items():
            try:
                found.append((step, at, str(name), float(value), type_))
            except (TypeError, ValueError) as error:
                self.gap(step, at, GapRecord(str(name), "metric", f"a metric is one number: {error}"))
        return found

    def note(self, step: int, at: float, text: str) -> None:
        self.add({"notes": [(step, at, str(text))]})

    def times(self, times: TimesRecord) -> None:
        self.add({"times": [times]})

    def gap(self, step: int, at: float, gap: GapRecord) -> None:
        self.add({"gaps": [gap_row(step, at, gap)]})

    def say(self, reason: str, step: int = NO_STEP) -> None:
        self.gap(step, time.time(), GapRecord("", "", reason))

    def say_all(self, reasons: list[str]) -> None:
        """Say each of them, once."""
        waiting = reasons.copy()
        reasons.clear()
        for reason in waiting:
            self.say(reason)

    def say_once(self, what: str, step: int = NO_STEP) -> None:
        """That there was too little room for something."""
        if what not in self._said:
            self._said.add(what)
            self.say(f"too little room for {what} within max_bytes={self._max_bytes}; this gap is listed once", step)

    def _thin(self, table: str) -> None:
        """A disk that stays full must not fill the memory, too."""
        found = self._rows[table]
        if len(found) > MOST:
            del found[1:-1:2]
            self.say(f"the disk took no data for so long that every second of the waiting {table} was left out")


def gap_row(step: int, at: float, gap: GapRecord) -> Row:
    return (step, gap.node, gap.of, gap.reason, at)

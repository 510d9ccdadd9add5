"""What a writer has on disk, beside the chunks of tables: enough to thin it, and to write the journal anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from endoscope.schema.recording import FORMAT_VERSION, THINNED, StepRecord
from endoscope.store import paths
from endoscope.store.files import Span
from endoscope.store.journal import Copied
from endoscope.store.segments import Segments


class StepEntry(NamedTuple):
    """A recorded step that is still there."""

    number: int
    time: float  # of the commit
    type: str
    nth: int  # recorded step of its type, from 0


class Ledger:
    """Steps, raw values and graphs that were committed."""

    def __init__(self) -> None:
        self.steps: dict[int, StepEntry] = {}  # by ordinal
        self.raw: dict[int, tuple[str, Span]] = {}  # ordinal -> file
        self.graphs: dict[str, Span] = {}  # by file
        self.bytes = 0  # of raw values and graphs
        self.dropped = 0  # steps that were thinned away
        self._of_type: Counter[str] = Counter()

    def add_step(self, ordinal: int, record: StepRecord, at: float, files: Mapping[str, Span]) -> None:
        """A step was committed, with these files beside the tables."""
        self.steps[ordinal] = StepEntry(record.number, at, record.type, self._of_type[record.type])
        self._of_type[record.type] += 1
        for file, span in files.items():
            self.bytes += span.end
            if file.startswith(paths.GRAPHS):
                self.graphs[file] = span
            else:
                self.raw[ordinal] = (file, span)

    def drop_raw(self, ordinal: int) -> str:
        """Forget the raw values of a step; returns their file."""
        file, span = self.raw.pop(ordinal)
        self.bytes -= span.end
        return file

    def drop_step(self, ordinal: int) -> None:
        del self.steps[ordinal]
        self.dropped += 1

    def lines(self, segments: Segments, now: float) -> Iterator[dict[str, Any]]:
        """The journal of what is there now, without the history of how it came about."""
        yield {"kind": "open", "time": now, "format": FORMAT_VERSION, "dropped": self.dropped}
        others = {table: chunks for table, chunks in segments.chunks.items() if table not in THINNED}
        copied: dict[str, list[Copied]] = {}
        for chunks in others.values():
            for chunk in chunks:
                copied.setdefault(chunk.file, []).append(Copied(*chunk.span, chunk.ordinal))
        yield {"kind": "rows", "time": now, "files": self.graphs, "copied": copied}
        of_step: dict[int, dict[str, Span]] = {ordinal: {} for ordinal in self.steps}
        for table in THINNED:
            for chunk in segments.chunks[table]:
                of_step[chunk.ordinal][chunk.file] = chunk.span
        for ordinal, entry in self.steps.items():
            files = of_step[ordinal] | dict([self.raw[ordinal]] if ordinal in self.raw else [])
            yield {"kind": "step", "time": entry.time, "ordinal": ordinal, "step": entry.number, "files": files}

"""What a writer has on disk, beside the chunks of tables: enough to thin it, and to write the journal anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from endoscope.schema.recording import FORMAT_VERSION, THINNED
from endoscope.store import paths
from endoscope.store.files import Span
from endoscope.store.journal import Copied
from endoscope.store.segments import Segments
from endoscope.store.superseding import Superseding


class StepEntry(NamedTuple):
    """A recorded step that is still there."""

    number: int
    time: float  # of the commit
    type: str
    nth: int  # recorded step of its type, from 0
    session: int
    graph: str  # file


class Ledger:
    """Steps, raw values and graphs that were committed."""

    def __init__(self) -> None:
        self.steps: dict[int, StepEntry] = {}  # by ordinal
        self.raw: dict[int, tuple[str, Span]] = {}  # ordinal -> file
        self.graphs: dict[str, Span] = {}  # by file
        self.bytes = 0  # of raw values and graphs
        self.dropped = 0  # steps that were thinned away
        self.superseding = Superseding()
        self._of_type: Counter[str] = Counter()

    @property
    def superseded(self) -> set[int]:
        """Ordinals of the steps whose place a later session has taken."""
        hides = self.superseding.hides
        return {ordinal for ordinal, step in self.steps.items() if hides(step.session, step.number)}

    def nth_of(self, type_: str) -> int:
        """So many steps of a type were recorded."""
        return self._of_type[type_]

    def add_step(self, ordinal: int, number: int, type_: str, at: float, session: int, graph_hash: str) -> None:
        graph = paths.graph_name(graph_hash)
        self.steps[ordinal] = StepEntry(number, at, type_, self._of_type[type_], session, graph)
        self._of_type[type_] += 1

    def add_file(self, ordinal: int, file: str, span: Span) -> None:
        """Raw values of a step, or a graph."""
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

    def drop_graph(self, file: str) -> str:
        """Forget a graph; returns its file."""
        self.bytes -= self.graphs.pop(file).end
        return file

    def drop_step(self, ordinal: int) -> None:
        del self.steps[ordinal]
        self.dropped += 1

    def lines(self, segments: Segments, now: float) -> Iterator[dict[str, Any]]:
        """The journal of what is there now, without the history of how it came about."""
        yield {"kind": "open", "time": now, "format": FORMAT_VERSION, "dropped": self.dropped}
        yield {"kind": "rows", "time": now, "files": self.graphs}
        for session in range(segments.session + 1):
            if session:
                yield {
                    "kind": "resume",
                    "time": now,
                    "session": session,
                    "supersedes": self.superseding.first_of(session),
                }
            if copied := _rows_of(segments, session):
                yield {"kind": "rows", "time": now, "copied": copied, "session": session}
        of_step: dict[int, dict[str, Span]] = {ordinal: {} for ordinal in self.steps}
        for table in THINNED:
            for chunk in segments.chunks[table]:
                of_step[chunk.ordinal][chunk.file] = chunk.span
        for ordinal, entry in self.steps.items():
            files = of_step[ordinal] | dict([self.raw[ordinal]] if ordinal in self.raw else [])
            line = {"kind": "step", "time": entry.time, "ordinal": ordinal, "step": entry.number, "files": files}
            yield line | {"session": entry.session}


def _rows_of(segments: Segments, session: int) -> dict[str, list[Copied]]:
    """What a session has recorded that belongs to no recorded step."""
    copied: dict[str, list[Copied]] = {}
    for table, chunks in segments.chunks.items():
        for chunk in chunks:
            if table not in THINNED and chunk.session == session:
                copied.setdefault(chunk.file, []).append(Copied(*chunk.span, chunk.ordinal))
    return copied

"""What the writer knows of the recorded steps that are still there: enough to thin them and to rewrite the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from endoscope.schema.recording import FORMAT_VERSION, THINNED
from endoscope.store import paths
from endoscope.store.commits.contents import Contents
from endoscope.store.commits.journal import Copied
from endoscope.store.files import Span


class StepEntry(NamedTuple):
    """A recorded step that is still there."""

    type: str
    nth: int  # recorded step of its type, from 0
    graph: str  # file


class Ledger:
    """The steps of a rank, beside what the journal says of them."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.steps: dict[int, StepEntry] = {}  # by ordinal
        self._of_type: Counter[str] = Counter()

    @property
    def graphs(self) -> dict[str, Span]:
        return {file: span for file, span in self.contents.files.items() if paths.is_graph(file)}

    @property
    def raw(self) -> dict[int, tuple[str, Span]]:
        """Ordinal -> file with the raw values of the step."""
        found = {paths.ordinal_of(file): (file, span) for file, span in self.contents.files.items()}
        return {ordinal: both for ordinal, both in found.items() if ordinal in self.steps}

    @property
    def superseded(self) -> set[int]:
        """Ordinals of the steps whose place a later session has taken."""
        return self.contents.superseded & self.steps.keys()

    def nth_of(self, type_: str) -> int:
        """So many steps of a type were recorded."""
        return self._of_type[type_]

    def add(self, ordinal: int, type_: str, graph_hash: str) -> None:
        self.steps[ordinal] = StepEntry(type_, self._of_type[type_], paths.graph_name(graph_hash))
        self._of_type[type_] += 1

    def lines(self, now: float) -> Iterator[dict[str, Any]]:
        """The journal of what is there now, without the history of how it came about."""
        contents = self.contents
        yield {
            "kind": "open",
            "time": now,
            "format": FORMAT_VERSION,
            "dropped": contents.dropped + len(contents.thinned),
        }
        yield {"kind": "rows", "time": now, "files": self.graphs}
        rows = self._rows()
        for session in sorted({0, contents.session, *rows, *contents.went_back_to}):
            if session:
                back_to = contents.went_back_to.get(session)
                yield {"kind": "resume", "time": now, "session": session, "supersedes": back_to}
            if session in rows:
                yield {"kind": "rows", "time": now, "copied": rows[session], "session": session}
        of_step: dict[int, dict[str, Span]] = {ordinal: {} for ordinal in self.steps}
        for table in THINNED:
            for chunk in contents.chunks[table]:
                of_step[chunk.ordinal][chunk.file] = Span(chunk.start, chunk.end, chunk.crc or 0)
        raw = self.raw
        for ordinal, files in of_step.items():
            yield {
                "kind": "step",
                "time": contents.time_of.get(ordinal, now),
                "ordinal": ordinal,
                "step": contents.step_of[ordinal],
                "files": files | dict([raw[ordinal]] if ordinal in raw else []),
                "session": contents.session_of.get(ordinal, 0),
            }

    def _rows(self) -> dict[int, dict[str, list[Copied]]]:
        """Session -> segment -> what it holds that belongs to no recorded step."""
        found: dict[int, dict[str, list[Copied]]] = {}
        for table, chunks in self.contents.chunks.items():
            for chunk in chunks if table not in THINNED else ():
                copied = Copied(chunk.start, chunk.end, chunk.crc or 0, chunk.ordinal)
                found.setdefault(chunk.session, {}).setdefault(chunk.file, []).append(copied)
        return found

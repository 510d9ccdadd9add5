"""Keeps a rank below max_bytes, to the byte: whatever is written is counted before, and room is made for it first.

    what is to be written ─► Need ─► make ─► fits │ tidy up │ superseded │ raw values │ steps │ newest step, old metrics
                                       └──► False: it cannot fit; whoever asked writes less, or nothing, and says so

Steps and raw values are thinned evenly. First everything is tidied up; what is superseded goes before all that is part
of the trial; metrics are thinned when nothing else is left but the first step. Graphs go with the last step that has
them. Notes, gaps and names stay. Each time some more is freed than is needed, so that it does not happen at every step.
What has gone is said in the journal, step by step, and in `gaps` whenever the distance between steps that stay grows.

The journal is told first, then files are removed: a reader may find a file gone that it has just read about, and must
then read on in the journal. A process that is killed in between leaves files that nobody reads. While chunks are copied
from old segments into a new one, both are there for a moment; that is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from endoscope.schema.recording import THINNED
from endoscope.store.limit.thinning import Choice, Recorded, choose
from endoscope.store.limit.upkeep import Upkeep

KEPT_BACK = 4096  # bytes for the end: the last line, what recording has cost, what is said about lost things
FOR_THE_LAST_LINE = 256  # of these
_GOAL = 0.8  # of max_bytes, once thinning has begun
_FOR_METRICS = 8  # a part of max_bytes that steps leave free for what is never in their way
_MOST_FOR_METRICS = 16 * 2**10
_FEW_CHUNKS, _LONELY_CHUNKS = 16, 1  # of a table are merged when bytes are needed, and when every byte is


class Need(NamedTuple):
    """Something that is to be written."""

    cost: Callable[[], int]  # bytes, which depend on what is there: a segment begins with its schema
    kept_back: int = KEPT_BACK
    step: str | None = None  # type of the step, if it is one


class Room:
    """Counts bytes and frees them."""

    def __init__(self, upkeep: Upkeep, max_bytes: int | None) -> None:
        self._upkeep, self._ledger, self._contents = upkeep, upkeep.ledger, upkeep.contents
        self.max_bytes = max_bytes
        self.beside: dict[str, int] = {}  # bytes of files that are replaced as a whole
        self.said: list[str] = []  # what is to be told about lost things
        self._level = {"raw": 1, "stats": 1}
        self._said_level = {"raw": 0, "stats": 0}
        self._every = 1  # steps, of which metrics stay

    @property
    def bytes(self) -> int:
        tables = self._upkeep.journal.file.size + sum(self._upkeep.segments.sizes.values())
        return tables + self._contents.bytes_beside + sum(self.beside.values())

    def fits(self, need: Need) -> bool:
        """Whether there is room, as it is."""
        return self._excess(need) <= 0

    def make(self, need: Need) -> bool:
        """Free bytes if so many more would be too many; False if that is not enough."""
        if self.fits(need):
            return True
        for stage in self._stages(need):
            stage()
            if self.fits(need):
                return True
        return False

    def _stages(self, need: Need) -> Iterator[Callable[[], None]]:
        """From what nobody misses to what hurts."""
        yield partial(self._upkeep.squeeze, _FEW_CHUNKS)
        if need.step is not None and self._is_hopeless(need):
            return
        yield self._free_superseded
        yield partial(self._thin, "raw", need)
        if need.step is not None:  # the newest stays until there is a newer one, unless there is no room for both
            yield partial(self._thin, "stats", need, beside_newest=True)
        yield partial(self._thin, "stats", need)
        if need.step is None:
            yield partial(self._upkeep.squeeze, _LONELY_CHUNKS)
            yield self._free_newest
            yield partial(self._thin_metrics, need)

    def _excess(self, need: Need, share: float = 1.0) -> int:
        """So many bytes must go for it; none if this is not positive."""
        if self.max_bytes is None:
            return 0
        kept_back = need.kept_back
        if need.step is not None:
            kept_back += min(self.max_bytes // _FOR_METRICS, _MOST_FOR_METRICS)
        return self.bytes + need.cost() + kept_back - int(share * self.max_bytes)

    def _is_hopeless(self, need: Need) -> bool:
        """A step that does not even fit beside the first one must not push out the others for nothing."""
        steps = self._ledger.steps
        first = min(steps.keys() - self._ledger.superseded, default=-1)
        sizes = [size for what in ("raw", "stats") for ordinal, size in self._sizes(what).items() if ordinal != first]
        stays = steps[first].graph if first >= 0 else ""
        sizes += [span.end for file, span in self._ledger.graphs.items() if file != stays]
        return self._excess(need) > sum(sizes)

    def _free_superseded(self) -> None:
        gone = sorted(self._ledger.superseded)
        if gone:
            self._drop_steps(gone)
            self.said.append(f"{len(gone)} superseded steps were removed to stay within {self._limit}")

    def _thin(self, what: str, need: Need, *, beside_newest: bool = False) -> None:
        """Raw values or whole steps, evenly."""
        newcomer = None if beside_newest or what == "raw" else need.step
        while self._excess(need) > 0:
            wanted, needed = self._excess(need, _GOAL), self._excess(need)
            steps = self._candidates(what, newcomer)
            choice = choose(steps, wanted, self._level[what], needed, by_type=beside_newest)
            self._level[what] = choice.level
            if not choice.steps:
                return
            self._say(what, choice)
            ordinals = [step.ordinal for step in choice.steps]
            self._drop_raw(ordinals) if what == "raw" else self._drop_steps(ordinals)

    def _free_newest(self) -> None:
        """Metrics need the room: only the first step stays."""
        gone = sorted(self._ledger.steps)[1:]
        if gone:
            self._drop_steps(gone)
            self.said.append(
                f"all recorded steps but the first were removed, because metrics need the room within {self._limit}"
            )

    def _thin_metrics(self, need: Need) -> None:
        """Metrics of every second step, of every fourth, and so on."""
        newest = self._upkeep.newest_step("metrics")
        while self._excess(need) > 0 and self._every <= newest:
            self._every *= 2
            if self._upkeep.keep_rows("metrics", partial(_stays, every=self._every, newest=newest)):
                self.said.append(
                    f"metrics of older steps are kept every {self._every} steps to stay within {self._limit}"
                )

    def _candidates(self, what: str, newcomer: str | None) -> list[Recorded]:
        """All steps that have it, and of which type the next one will be, which is then the newest."""
        steps = self._ledger.steps
        found = [
            Recorded(ordinal, steps[ordinal].type, steps[ordinal].nth, size)
            for ordinal, size in self._sizes(what).items()
        ]
        if newcomer is not None:
            found.append(Recorded(max(steps, default=-1) + 1, newcomer, self._ledger.nth_of(newcomer), 0))
        return found

    def _sizes(self, what: str) -> dict[int, int]:
        """Ordinal -> bytes that can be freed of a step."""
        if what == "raw":
            return {ordinal: span.end for ordinal, (_, span) in self._ledger.raw.items()}
        sizes = dict.fromkeys(self._ledger.steps, 0)
        for table in THINNED:
            for chunk in self._contents.chunks[table]:
                sizes[chunk.ordinal] += chunk.bytes
        return sizes

    def _drop_raw(self, ordinals: Sequence[int]) -> None:
        raw = self._ledger.raw
        self._upkeep.drop_files([raw[ordinal][0] for ordinal in ordinals], {"raw": list(ordinals)})

    def _drop_steps(self, ordinals: Sequence[int]) -> None:
        """A step is gone for readers with the first line that says so; the tables follow one by one."""
        raw = self._ledger.raw
        self._drop_raw([ordinal for ordinal in ordinals if ordinal in raw])
        thinned = {"stats": list(ordinals)}  # said once
        for table in THINNED:
            if self._upkeep.drop_steps(table, set(ordinals), thinned):
                thinned = {}
        for ordinal in ordinals:
            del self._ledger.steps[ordinal]
        # A graph goes with the last step that has it. When such a step comes again, it is written again.
        used = {step.graph for step in self._ledger.steps.values()}
        self._upkeep.drop_files(sorted(self._ledger.graphs.keys() - used))

    @property
    def _limit(self) -> str:
        return f"max_bytes={self.max_bytes}"

    def _say(self, what: str, choice: Choice) -> None:
        """Once for each distance between the steps that stay."""
        if choice.level <= self._said_level[what]:
            return
        self._said_level[what] = choice.level
        things, many = {"raw": "raw values", "stats": "all values"}[what], len(choice.steps)
        first, last = (self._contents.step_of[step.ordinal] for step in (choice.steps[0], choice.steps[-1]))
        self.said.append(
            f"{things} of {many} recorded step{'s' if many > 1 else ''} (between {first} and {last}) were removed "
            f"to stay within {self._limit}; of older steps, only one in {2**choice.level} has them still"
        )


def _stays(steps: np.ndarray, every: int, newest: int) -> np.ndarray:
    return np.asarray((steps % every == 0) | (steps == newest))

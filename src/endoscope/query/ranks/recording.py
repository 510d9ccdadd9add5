"""A trial of many ranks, read as one; and one rank of it that was restarted, read as one.

Recording of each process ─► WholeTables ─► the same methods as a recording of one process has
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from endoscope.errors import ValueNotKept
from endoscope.query import export
from endoscope.query import series as over
from endoscope.query.ranks import reasons, sources, told
from endoscope.query.ranks.sources import Source
from endoscope.query.ranks.tables import WholeTables
from endoscope.query.reading import values
from endoscope.query.reading.spectra import Spectrum
from endoscope.query.reading.values import Histogram
from endoscope.query.recording import Gap, Note, Recording
from endoscope.query.series import Metrics, Series
from endoscope.query.steps import Steps
from endoscope.schema.stats import QUANTILES
from endoscope.store import description, paths
from endoscope.store.reader import Checked, Problem


class Whole(dict[str, float]):
    """Statistics of a tensor of several ranks, by name."""

    def __init__(self, found: dict[str, float], ranks: tuple[int, ...], approximate: frozenset[str]) -> None:
        super().__init__(found)
        self.ranks = ranks  # that have it, or a part of it
        self.approximate = approximate  # known to one bin of the histogram only


class WholeRecording(Recording):
    """What all ranks have recorded, put together; or all attempts of one rank, one after the other."""

    def __init__(self, path: str | Path, rank: int | None = None) -> None:
        # There is no reader of its own: everything is asked of the recordings of the processes.
        self.path = Path(os.path.abspath(path))
        self.member = None
        self._member_problem = ""
        self._only = rank
        self._sources: list[Source] = []
        self._of_rank: dict[int, Recording] = {}
        self.tables = self._tables = WholeTables(is_whole=rank is None)
        self.refresh()

    def __repr__(self) -> str:
        of = f"rank {self._only}" if self._only is not None else f"{len(self.ranks)} ranks"
        return super().__repr__().replace(f"{self.name!r}:", f"{self.name!r}: {of},", 1)

    # On how many processes

    @property
    def ranks(self) -> list[int]:
        return sorted({source.rank for source in self._sources})

    @property
    def world_size(self) -> int:
        known = [source.recording.world_size for source in self._sources if source.recording.member]
        return max([*known, *(rank + 1 for rank in self.ranks)], default=1)

    def rank(self, number: int) -> Recording:
        """What one rank has recorded, in all of its attempts."""
        if number not in self.ranks:
            return super().rank(number)
        if self._only is not None:
            return self
        mine = [source for source in self._sources if source.rank == number]
        if len(mine) == 1:
            return mine[0].recording
        if number not in self._of_rank:
            self._of_rank[number] = WholeRecording(self.path, number)
        return self._of_rank[number]

    @property
    def sources(self) -> list[Recording]:
        return [source.recording for source in self._sources]

    @property
    def folder(self) -> Path:
        return self.path

    # What it is

    @property
    def config(self) -> dict[str, Any]:
        own = self._newest().config if self._only is not None else {}
        return {**self._described("config"), **own}

    @property
    def closed(self) -> bool:
        """Whether every process of the job has ended properly, in its last attempt."""
        last = [source.recording.closed for source in self._sources if source.is_last]
        return all(last) and (self._only is not None or len(last) == self.world_size)

    @property
    def updated(self) -> float:
        return max((source.recording.updated for source in self._sources), default=0.0)

    @property
    def modules(self) -> dict[str, Any]:
        """Those of all ranks: stages of a pipeline have each some of them."""
        return told.modules([source.recording.modules for source in reversed(self._sources)])

    @property
    def problems(self) -> list[Problem]:
        mine = [Problem(paths.TRIAL, self._description_problem)] if self._description_problem else []
        found = [(source, problem) for source in self._sources for problem in source.recording.problems]
        of_ranks = [
            problem._replace(file=f"{source.recording.folder.relative_to(self.path).as_posix()}/{problem.file}")
            for source, problem in found
            if problem.file != paths.TRIAL
        ]
        return mine + of_ranks

    @property
    def notes(self) -> list[Note]:
        return told.notes(self._sources)

    @property
    def gaps(self) -> list[Gap]:
        """What ranks could not record, and what the whole lacks because of that."""
        recorded = told.gaps(self._sources, with_rank=self._only is None)
        if self._only is not None:
            return recorded
        missing = self._tables.metrics.missing
        return recorded + told.of_the_whole(self._tables.why_not, self._tables.lacking, missing, self.ranks)

    @property
    def metrics(self) -> Metrics:
        """The mean over the ranks that log a metric: `low` and `high` of a series are the range."""
        return self._tables.metrics

    # Over steps

    def _of_whole_tensor(self, keys: Collection[int], statistic: str, steps: Steps, type_: str | None) -> Series:
        """Of all ranks together; where there is none, `gaps` says why."""
        columns = self._tables.columns("stats")
        ordinals, numbers = over.of_whole(columns, keys, statistic)
        places = over.over_steps(ordinals, np.arange(len(ordinals), dtype=np.float64), steps, type_)
        order = places.values.astype(np.int64)
        why, ranks = columns.why_not(statistic, keys), columns.ranks_with(keys)
        ask = f"; ask one rank: recording.rank({ranks[0] if ranks else self.ranks[0]})"
        gaps = tuple(why[ordinal] and why[ordinal] + ask for ordinal in ordinals[order].tolist())
        return Series(
            places.steps, numbers[order], places.types, ranks=ranks, gaps=gaps,
            approximate=statistic in QUANTILES and columns.are_in_parts(keys),
        )  # fmt: skip

    # At one step

    def statistics(self, node: str, step: int | None = None, **which: Any) -> dict[str, float]:
        """All statistics of the whole tensor; `approximate` of the dict names those that are known to one bin only."""
        row = self._whole_row(node, step, "statistics", **which)
        approximate = frozenset(QUANTILES) if row["pieces"] > 1 else frozenset[str]()
        keys = self.tables.keys.select(node, which.get("of", "value"), which.get("role"), which.get("pass_"))
        columns = self._tables.steadily(lambda steps: self._tables.columns("stats"))
        return Whole(values.statistics(row), columns.ranks_with(keys), approximate)

    def histogram(self, node: str, step: int | None = None, **which: Any) -> Histogram:
        return values.histogram(self._whole_row(node, step, "histogram", **which))

    def samples(self, node: str, step: int | None = None, **which: Any) -> dict[str, np.ndarray]:
        """Statistics of every sample: those of the ranks one behind the other; `rank` says on which each was."""
        row = self._row("samples", node, step, **which)
        return {**values.samples(row), "rank": row["rank"]}

    def spectrum(
        self,
        node: str,
        step: int | None = None,
        *,
        role: str | None = None,
        pass_: int | None = None,
        type: str | None = None,
    ) -> Spectrum:
        if self._only is None:
            raise self._no_whole(node, "singular values", reasons.NO_MERGE, tuple(self.ranks))
        return super().spectrum(node, step, role=role, pass_=pass_, type=type)

    def _whole_row(self, node: str, step: int | None, what: str, **which: Any) -> dict[str, Any]:
        row = self._row("stats", node, step, **which)
        if row["gap"]:
            raise self._no_whole(node, f"{what} at step {step}", row["gap"], tuple(self.ranks))
        return row

    def _no_whole(self, node: str, what: str, why: str, ranks: tuple[int, ...]) -> ValueNotKept:
        ask = ranks[0] if ranks else self.ranks[0]
        return ValueNotKept(
            f"Of {node!r} there is no {what} of all ranks together: {why}. Ask one rank: recording.rank({ask})."
        )

    # All of it, keeping up, and checking

    def _stored(self, table: str) -> Any:
        export.check(table)
        return self._tables.table(table)

    def refresh(self) -> bool:
        self._description, self._description_problem = description.read(self.path)
        found = [one for one in sources.find(self.path) if self._only in (None, one[0])]
        known = {(source.rank, source.attempt): source for source in self._sources}
        news = [source.recording.refresh() for source in self._sources]
        self._sources = [known.get(one) or Source(*one, Recording(self.path, *one)) for one in found]
        last = {source.rank: source.attempt for source in self._sources}
        for source in self._sources:
            source.is_last = source.attempt == last[source.rank]
        members = {source.rank: source.recording.member for source in self._sources if source.recording.member}
        world = range(self.world_size) if self._only is None else [self._only]
        self._tables.take(self._sources, members, world)
        self._of_rank = {rank: one for rank, one in self._of_rank.items() if one.refresh() or True}
        return any(news) or len(found) != len(known)

    def preload(self) -> None:
        self.tables.steadily(lambda steps: None)

    def verify(self) -> Checked:
        found = [source.recording.verify() for source in self._sources]
        return Checked(self.problems, sum(one.files for one in found), sum(one.bytes for one in found))

    def _newest(self) -> Recording:
        return self._sources[-1].recording

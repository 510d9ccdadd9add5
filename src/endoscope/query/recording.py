"""One trial, read: steps, nodes, series, tensors, metrics, graph, SQL.

    what the user types ─► addressing: keys   ─┐
                           steps: ordinals    ─┴► store.reader: checked bytes ─► numpy

A recording is what it was at the last `refresh()`, also while the trial is still being written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from endoscope.errors import LookupFailed
from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup
from endoscope.query import export, sql
from endoscope.query import series as over
from endoscope.query.reading import spectra, values
from endoscope.query.reading.tables import Tables
from endoscope.query.reading.values import Histogram
from endoscope.query.series import Metrics, Series
from endoscope.query.shown import recording_block
from endoscope.query.steps import Step, Steps
from endoscope.schema.recording import GRADIENT_MEANINGS, GRADIENT_USED, Key
from endoscope.store import description, membership, paths
from endoscope.store.membership import Membership
from endoscope.store.reader import Checked, Problem, RankReader


class Note(NamedTuple):
    """Something the user wrote down during training."""

    step: int
    time: float
    text: str


class Gap(NamedTuple):
    """Something that could not be recorded, or can no longer be read, and why."""

    step: int  # -1 if it belongs to no single step
    node: str
    of: str
    reason: str
    time: float


class RowOf(TypedDict, total=False):
    """Which of the tensors of a node, as for `Recording.series`."""

    of: str
    role: str | None
    pass_: int | None
    type: str | None


class Recording(Shown):
    """A recorded trial: all of it, or what one rank has recorded."""

    def __init__(self, path: str | Path, rank: int = 0, attempt: int = 0) -> None:
        self.path = Path(os.path.abspath(path))  # the process may change its folder
        self._rank = rank
        self._reader = RankReader(self.path, rank, attempt)
        self._description: dict[str, Any] = {}
        self._description_problem = ""
        #: Which process of a job has recorded this; None in a trial of one process.
        self.member: Membership | None = None
        self._member_problem = ""
        #: The same as tables and columns: for whoever looks at many tensors or many steps at once.
        self.tables = Tables(self._reader, lambda: self._described("statistics"))
        self._metrics: tuple[tuple[int, int], Metrics] | None = None
        self.refresh()

    def __repr__(self) -> str:
        steps = self.steps
        told = f"{len(steps)} steps" + (f" ({steps[0].number} to {steps[-1].number})" if steps else "")
        return f"<Recording {self.name!r}: {told}, {len(self.nodes)} nodes>"

    def _block(self) -> Markup:
        return recording_block(self)

    # What it is

    @property
    def name(self) -> str:
        return str(self._description.get("name", self.path.name))

    @property
    def created(self) -> float:
        """When the trial began, in unix seconds; 0 if that is lost."""
        return float(self._description.get("created", 0.0))

    @property
    def versions(self) -> dict[str, str]:
        return self._described("versions")

    @property
    def config(self) -> dict[str, Any]:
        return {**self._described("config"), **(self.member.config if self.member else {})}

    @property
    def gradient_means(self) -> str:
        """What stands as the `gradient` of a parameter: recordings of earlier versions have another one."""
        return GRADIENT_MEANINGS[GRADIENT_USED if self._description.get("gradient") == GRADIENT_USED else ""]

    @property
    def closed(self) -> bool:
        """Whether the trial has ended properly; otherwise it is still running, or was killed."""
        return self._reader.contents.is_closed

    @property
    def updated(self) -> float:
        """When something was last added, in unix seconds."""
        return self._reader.contents.last_commit_at

    def _described(self, what: str) -> dict[str, Any]:
        return dict(self._description.get(what, {}))

    # On how many processes

    @property
    def ranks(self) -> list[int]:
        """The ranks that have recorded something of this."""
        return [self._rank]

    @property
    def world_size(self) -> int:
        """How many processes the job had, whether they have recorded or not."""
        return self.member.world_size if self.member else 1

    def rank(self, number: int) -> Recording:
        """What one rank has recorded."""
        if number not in self.ranks:
            known = ", ".join(map(str, self.ranks))
            raise LookupFailed(f"Rank {number!r} has recorded nothing of {self.name!r}. There are: {known}.")
        return self

    @property
    def sources(self) -> list[Recording]:
        """What each process has written, one after the other."""
        return [self]

    @property
    def folder(self) -> Path:
        """Where the process has written it."""
        return self._reader.folder

    # What is in it

    @property
    def steps(self) -> list[Step]:
        """The recorded steps, in the order in which they were recorded."""
        return self.tables.steadily(lambda steps: list(steps.list))

    @property
    def superseded(self) -> list[Step]:
        """Recorded steps that are in the files, but no part of the trial: it was resumed from an earlier step."""
        return self.tables.steadily(lambda steps: list(steps.superseded))

    @property
    def types(self) -> list[str]:
        return self.tables.steadily(lambda steps: list(steps.types))

    @property
    def nodes(self) -> list[str]:
        return self.tables.keys.nodes

    @property
    def losses(self) -> list[str]:
        return self.tables.keys.losses

    def tensors_of(self, node: str) -> list[Key]:
        """What was recorded of a node: values, gradients, roles, passes, shapes."""
        return self.tables.keys.of_node(node)

    @property
    def notes(self) -> list[Note]:
        return [Note(**row) for row in self.tables.table("notes").select(Note._fields).to_pylist()]

    @property
    def gaps(self) -> list[Gap]:
        """What could not be recorded, then what can no longer be read."""
        recorded = [Gap(**row) for row in self.tables.table("gaps").select(Gap._fields).to_pylist()]
        return recorded + [Gap(problem.step, "", "", f"damaged: {problem}", 0.0) for problem in self.problems]

    @property
    def problems(self) -> list[Problem]:
        """Damage that was met so far; `verify()` looks everywhere."""
        mine = [Problem(paths.TRIAL, self._description_problem)] if self._description_problem else []
        mine += [Problem(paths.MEMBERSHIP, self._member_problem)] if self._member_problem else []
        return mine + self._reader.problems

    @property
    def metrics(self) -> Metrics:
        """Metrics of all steps, recorded or not: `recording.metrics["loss"].values`."""
        with self._reader.lock:
            state = (self._reader.generation, len(self._reader.batches("metrics")))
            if self._metrics is None or self._metrics[0] != state:
                self._metrics = (state, Metrics(lambda: self.tables.table("metrics")))
            return self._metrics[1]

    @property
    def modules(self) -> dict[str, Any]:
        """The tree of modules of what was watched."""
        return self._reader.modules()

    def graph(self, step: int | None = None, *, type: str | None = None) -> dict[str, Any]:
        """The dependency graph of a step, as plain data."""
        found = self.tables.steadily(lambda steps: steps.at(step, type)[0])
        data = self.tables.graph(found.graph)
        if data is None:
            raise self.tables.why_not_kept("the step", found, "graph")
        return data

    # Over steps

    def series(
        self,
        node: str,
        statistic: str,
        *,
        of: str = "value",
        type: str | None = None,
        role: str | None = None,
        pass_: int | None = None,
        sample: int | None = None,
        unit: int | Sequence[int] | None = None,
    ) -> Series:
        """A statistic of a tensor over all recorded steps: of all of it, of one sample, or of one unit."""
        if sample is not None and unit is not None:
            raise LookupFailed("A series is of one sample or of one unit: statistics of both at once are not recorded.")
        keys = self.tables.keys.select(node, of, role, pass_)

        def find(steps: Steps) -> Series:
            if sample is not None:
                found = over.of_sample(self.tables.columns("samples"), keys, statistic, sample)
            elif unit is not None:
                found = over.of_unit(self.tables.columns("units"), keys, statistic, unit)
            else:
                self.tables.check_statistic(statistic)
                return self._of_whole_tensor(keys, statistic, steps, type)
            if not len(found[0]):
                what = "sample" if sample is not None else "unit"
                raise LookupFailed(f"Nothing was recorded per {what} of {node!r} ({of}). Leave out {what}=.")
            return over.over_steps(*found, steps, type)

        return self.tables.steadily(find)

    def _of_whole_tensor(self, keys: Collection[int], statistic: str, steps: Steps, type_: str | None) -> Series:
        return over.over_steps(*over.of_whole(self.tables.columns("stats"), keys, statistic), steps, type_)

    # At one step

    def tensor(
        self,
        node: str,
        step: int | None = None,
        *,
        of: str = "value",
        role: str | None = None,
        pass_: int | None = None,
        sample: int | None = None,
        type: str | None = None,
    ) -> np.ndarray:
        """Raw values: of all samples that were kept, along dimension 0, or of one of them."""
        keys = self.tables.keys.select(node, of, role, pass_)

        def find(steps: Steps) -> np.ndarray:
            candidates = steps.at(step, type)
            for candidate in candidates:
                found = values.tensor(self.tables.raw(candidate), candidate, keys, sample)
                if found is not None:
                    return found
            raise self.tables.why_not_kept(node, candidates[0], "raw values")

        return self.tables.steadily(find)

    def statistics(self, node: str, step: int | None = None, **which: Unpack[RowOf]) -> dict[str, float]:
        """All statistics of the whole tensor at one step; `of`, `role`, `pass_`, `type` as for `series`."""
        return values.statistics(self._row("stats", node, step, **which))

    def histogram(self, node: str, step: int | None = None, **which: Unpack[RowOf]) -> Histogram:
        """Edges and counts; the bins are the same for all tensors, so counts can be added."""
        return values.histogram(self._row("stats", node, step, **which))

    def samples(self, node: str, step: int | None = None, **which: Unpack[RowOf]) -> dict[str, np.ndarray]:
        """Statistics of every sample at one step: name -> array; `sample` says which sample is which."""
        return values.samples(self._row("samples", node, step, **which))

    def units(self, node: str, step: int | None = None, **which: Unpack[RowOf]) -> dict[str, np.ndarray]:
        """Statistics of every unit over the batch at one step: name -> array of the shape of the units."""
        return values.units(self._row("units", node, step, **which))

    def spectrum(
        self,
        node: str,
        step: int | None = None,
        *,
        role: str | None = None,
        pass_: int | None = None,
        type: str | None = None,
    ) -> spectra.Spectrum:
        """Largest singular values and effective rank of a matrix, at a step where they were asked for."""
        return spectra.find(self.tables.steadily(lambda steps: steps.at(step, type)[0]), node, role, pass_)

    # All of it

    def to_arrow(self, table: str = "stats") -> pa.Table:
        """A table with one row per tensor and step; others: samples, units, steps, metrics, notes, gaps, keys."""
        return self.tables.steadily(lambda steps: export.to_arrow(self._stored, steps, table))

    def to_pandas(self, table: str = "stats") -> Any:
        """The same as a pandas frame."""
        return export.to_pandas(self.to_arrow(table))

    def sql(self, query: str) -> sql.Answer:
        """Ask DuckDB; tables are stats, samples, units, metrics, steps, notes, gaps and keys."""
        return sql.ask({self.name: self}, query)

    def read(self, table: str) -> pa.Table:
        """A table as it is stored, without names of tensors in it."""
        return self.tables.steadily(lambda steps: self._stored(table))

    def _stored(self, table: str) -> pa.Table:
        return export.stored(self._reader, table)

    # Keeping up, and checking

    def refresh(self) -> bool:
        """Take up what was recorded since; returns whether there is anything new."""
        self._description, self._description_problem = description.read(self.path)
        self.member, self._member_problem = membership.read(self.folder)
        return self._reader.refresh()

    def preload(self) -> None:
        """Check the statistics and find where they are, so that the first series is as fast as later ones."""
        self.tables.steadily(lambda steps: self.tables.columns("stats"))
        _ = self.tables.keys

    def verify(self) -> Checked:
        """Compare every byte with its checksum. True if all is well, else its `problems` say what is not."""
        found = self._reader.verify()
        return found._replace(problems=self.problems)

    def _row(
        self,
        table: str,
        node: str,
        step: int | None,
        *,
        of: str = "value",
        role: str | None = None,
        pass_: int | None = None,
        type: str | None = None,
    ) -> dict[str, Any]:
        keys = self.tables.keys.select(node, of, role, pass_)

        def find(steps: Steps) -> dict[str, Any]:
            candidates = steps.at(step, type)
            for candidate in candidates:
                found = values.row(self.tables.batch(table, candidate), keys)
                if found is not None:
                    return found
            what = {"stats": "statistics", "samples": "statistics per sample", "units": "statistics per unit"}[table]
            raise self.tables.why_not_kept(node, candidates[0], what)

        return self.tables.steadily(find)

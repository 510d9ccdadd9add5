"""All ranks of a trial as tables and columns: what `recording.tables` is for one rank.

refresh ─► steps that belong together ─► groups of rows ─► numbers, when they are asked for
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from endoscope.errors import EndoscopeError, ValueNotKept
from endoscope.query.ranks import graphs, one_step, reasons, rows
from endoscope.query.ranks.columns import WholeColumns
from endoscope.query.ranks.groups import Group, Grouping, Identity, Wholes, batches_of, identity_of
from endoscope.query.ranks.metrics import WholeMetrics, of_attempts, over_ranks
from endoscope.query.ranks.placement import Arrangement
from endoscope.query.ranks.raw import WholeRaw, kept_in
from endoscope.query.ranks.samples import SampleColumns
from endoscope.query.ranks.sources import Source
from endoscope.query.ranks.steps import WholeSteps
from endoscope.query.ranks.units import UnitColumns
from endoscope.query.reading.addressing import Keys
from endoscope.query.reading.names import Names
from endoscope.query.reading.tables import Found, Outline, Tables
from endoscope.query.steps import Step
from endoscope.schema.recording import PER_STEP, Key
from endoscope.schema.stats import Statistic, as_described, registered
from endoscope.store.membership import Membership


class WholeTables(Tables):
    """What the ranks had recorded until the last `refresh()`. May be shared by threads."""

    def __init__(self, *, is_whole: bool) -> None:
        self.lock = threading.RLock()
        self._is_whole = is_whole  # else the attempts of one rank
        self._sources: list[Source] = []
        self._members: dict[int, Membership] = {}
        self._world: list[int] = []
        self._seen: list[Any] | None = None
        self._steps_of_all = WholeSteps()
        self._wholes = Wholes()
        self._metrics: tuple[list[Any], WholeMetrics] | None = None
        self._forget()

    def take(self, sources: Sequence[Source], members: Mapping[int, Membership], world: Sequence[int]) -> None:
        """The processes that have written, what they say of themselves, and the ranks that there were."""
        with self.lock:
            if (members, list(world)) != (self._members, self._world):
                self._seen = None
            self._sources, self._members, self._world = list(sources), dict(members), list(world)

    def _forget(self) -> None:
        self._wholes.begin()
        self._grouping = Grouping(self._wholes, self._members, is_whole=self._is_whole)
        self._places: dict[str, dict[int, tuple[Group, int]]] = {}
        self._holders: dict[Identity, set[int]] = {}
        self._named: tuple[Keys, Names] | None = None
        self._statistics: dict[str, Statistic] | None = None
        self._with_others: set[tuple[int, int]] | None = None
        self._of: dict[str, WholeColumns] = {
            "stats": WholeColumns(self._statistic),
            "samples": SampleColumns(self._statistic),
            "units": UnitColumns(self._statistic, self._not_finite),
        }

    # What there is

    @property
    def keys(self) -> Keys:
        """Every tensor of the whole, by the number that its tables refer to it by."""
        return self._names_of_keys()[0]

    @property
    def names(self) -> Names:
        return self._names_of_keys()[1]

    @property
    def statistics(self) -> list[Statistic]:
        """The statistics that any rank has recorded."""
        return list({one.name: one for source in self._sources for one in source.recording.tables.statistics}.values())

    @property
    def state(self) -> tuple[int, int, int]:
        with self.lock:
            states = [source.recording.tables.state for source in self._sources]
            first, second, third = (sum(column) for column in zip((0, 0, 0), *states, strict=True))
            return first, second + len(self._steps_of_all.list), third

    def outline(self) -> Outline:
        """Which steps the ranks have together; what is in them is not looked at."""
        with self.lock:
            steps = WholeSteps()
            steps.update(self._sources)
            last = steps.list[-1].number if steps.list else None
            return Outline(len(steps.list), last, sum(one.recording.tables.outline().bytes for one in self._sources))

    @property
    def went_back_to(self) -> int | None:
        return None

    @property
    def why_not(self) -> Mapping[Identity, tuple[str, tuple[int, ...]]]:
        """Tensors that have no whole at any step: why, and the ranks that have something of the name."""
        with self.lock:
            self.steadily(lambda steps: None)
            return dict(self._wholes.why_not)

    @property
    def arrangements(self) -> Mapping[Identity, Arrangement]:
        """How each tensor lies on the ranks."""
        with self.lock:
            self.steadily(lambda steps: None)
            return dict(self._wholes.arrangements)

    @property
    def lacking(self) -> dict[int, tuple[int, ...]]:
        """Number of a step -> the ranks that have not recorded it, though others have."""
        with self.lock:
            self.steadily(lambda steps: None)
            parts = self._steps_of_all.parts
            found = {step.number: set(self._world) - set(parts[step.ordinal]) for step in self._steps_of_all.list}
            return {number: tuple(sorted(ranks)) for number, ranks in found.items() if ranks}

    # What is in them

    def steadily(self, find: Callable[[Any], Found]) -> Found:
        """Look with the steps of the last refresh; again if thinning meanwhile led a reader to a newer journal."""
        with self.lock:
            while True:
                self._update()
                seen = self._seen
                try:
                    found = find(self._steps_of_all)
                except (EndoscopeError, IndexError):
                    if seen == self._states():
                        raise
                else:
                    if seen == self._states():
                        return found

    def columns(self, table: str) -> WholeColumns:
        """The numbers of `stats`, `samples` or `units` over all steps; only for use inside `steadily`."""
        self._placed(table)
        return self._of[table]

    def batch(self, table: str, step: Step) -> pa.RecordBatch | None:
        """What all ranks have of one step in `stats`, `samples` or `units`; NaN, or null, where there is no whole."""
        with self.lock:
            found = self._placed(table).get(step.ordinal)
            if found is None:
                return None
            group = self._alone(table, *found)
            if table == "samples":
                return one_step.of_samples(step, group)
            if table == "units":
                return one_step.of_units(step, group, self._not_finite())
            return one_step.of_stats(step, group, self._of["stats"], list(self._known_statistics()))

    def table(self, name: str) -> pa.Table:
        """All rows of a table; notes, gaps and times are of single ranks, and say of which."""
        with self.lock:
            self._update()
            steps = self._steps_of_all.list
            if name == "keys":
                return rows.of_keys(self.keys.by_number)
            if name == "steps":
                return rows.of_steps(steps)
            if name in PER_STEP:
                return rows.of_batches(name, [self.batch(name, step) for step in steps])
            if name == "metrics":
                return self.metrics.table
            last = [source for source in self._sources if source.is_last or name != "times"]
            return rows.of_ranks([(source.rank, source.recording.read(name)) for source in last])

    @property
    def metrics(self) -> WholeMetrics:
        """Of several ranks the mean and the range; of attempts, what the latest has."""
        with self.lock:
            states = self._states()
            if self._metrics is None or self._metrics[0] != states:
                of_rank: dict[int, list[Source]] = {}
                for source in self._sources:
                    of_rank.setdefault(source.rank, []).append(source)
                tables = {
                    rank: of_attempts([(one.recording.metrics.table, one.went_back_to) for one in attempts])
                    for rank, attempts in of_rank.items()
                }
                made = WholeMetrics(*over_ranks(tables)) if self._is_whole else WholeMetrics(*tables.values())
                self._metrics = (states, made)
            return self._metrics[1]

    def graph(self, graph_hash: str) -> dict[str, Any] | None:
        """A dependency graph, as plain data, with the shapes of wholes."""
        shapes: dict[tuple[str, str, int], tuple[int, ...]] = {}
        for number, key in self.keys.by_number.items():
            if number not in self._wholes.shapeless and key.of in ("value", "parameter"):
                shapes.setdefault((key.node, key.role, key.pass_), key.shape)
        return graphs.put_together(graph_hash, self._graph_of_any, shapes) if graph_hash else None

    def _graph_of_any(self, graph_hash: str) -> dict[str, Any] | None:
        found = (source.recording.tables.graph(graph_hash) for source in self._sources)
        return next((one for one in found if one is not None), None)

    def raw(self, step: Step) -> WholeRaw | None:
        """The raw values of a step, put together when they are asked for; None if no rank has any."""
        with self.lock:
            found = self._placed("stats").get(step.ordinal)
            if found is None:
                return None
            group, parts = found[0], self._steps_of_all.parts[step.ordinal]
            files = [parts[rank].source.recording.tables.raw(parts[rank].step) for rank in group.tensors.ranks]
            return WholeRaw(group, files) if any(file is not None for file in files) else None

    def keys_with_raw(self, step: Step) -> list[int]:
        with self.lock:
            found = self._placed("stats").get(step.ordinal)
            if found is None:
                return []
            group, parts = found[0], self._steps_of_all.parts[step.ordinal]
            kept = [parts[rank].source.recording.tables.keys_with_raw(parts[rank].step) for rank in group.tensors.ranks]
            return kept_in(group, kept)

    def why_not_kept(self, node: str, step: Step, what: str) -> ValueNotKept:
        """The error for something that the whole does not have, with what to type."""
        why = self.reason_at(step, lambda key: key.node == node)
        parts = self._steps_of_all.parts.get(step.ordinal, {})
        why = why or "not all ranks have kept it"
        ask = f" Ask one rank: recording.rank({min(parts)})." if parts else ""
        return ValueNotKept(f"Of {node!r} there are no {what} of all ranks together at step {step.number}: {why}.{ask}")

    def reason_at(self, step: Step, is_meant: Callable[[Key], bool]) -> str:
        """Why a tensor has no whole at a step; empty if it has one, or was not recorded."""
        found = self._placed("stats").get(step.ordinal)
        if found is None:
            return reasons.not_there(sorted(set(self._world) - set(self._steps_of_all.parts.get(step.ordinal, ()))))
        tensors = found[0].tensors
        for column, number in enumerate(tensors.keys.tolist()):
            if is_meant(self._wholes.by_number[number]):
                why = reasons.of(tensors.arrangements[column], tensors.missing[column])
                if why:
                    return why
        return ""

    # For servers, which have time before somebody asks

    def read_ahead(self, table: str, most: int) -> bool:
        """Read what some steps added on each rank before somebody asks for it; returns whether there is more."""
        more = [source.recording.tables.read_ahead(table, most) for source in self._sources]
        return any(more)

    def release(self) -> None:
        for source in self._sources:
            source.recording.tables.release()

    def silence(self) -> None:
        for source in self._sources:
            source.recording.tables.silence()

    # How it is kept up to date

    def _states(self) -> list[Any]:
        return [source.recording.tables.state for source in self._sources]

    def _update(self) -> None:
        states = self._states()
        if states == self._seen and not self._steps_of_all.waits:
            return
        self._steps_of_all.update(self._sources)
        self._forget()
        silent = set(self._world) - {rank for parts in self._steps_of_all.parts.values() for rank in parts}
        for source in self._sources:
            for key in source.recording.tables.keys.by_number.values():
                self._holders.setdefault(identity_of(key), set(silent)).add(source.rank)
        self._seen = self._states()
        self._placed("stats")

    def _placed(self, table: str) -> dict[int, tuple[Group, int]]:
        """Ordinal -> its group, and its place in it."""
        if table not in self._places:
            layouts = {source: source.recording.tables.columns(table).layouts for source in self._sources}
            groups = self._grouping.groups(self._steps_of_all.parts, layouts, self._holders)
            self._of[table].take(groups)
            self._places[table] = {
                ordinal: (group, place) for group in groups for place, ordinal in enumerate(group.ordinals)
            }
            if table == "stats":
                for ordinal, batches in batches_of(groups):
                    self._steps_of_all.join_samples(ordinal, batches)
        return self._places[table]

    def _alone(self, table: str, group: Group, place: int) -> Group:
        """A group of one step: whoever looks at one need not look at all."""
        ordinal = group.ordinals[place]
        parts = self._steps_of_all.parts[ordinal]
        found = [parts[rank].source.recording.tables.batch(table, parts[rank].step) for rank in group.tensors.ranks]
        return group.alone(place, [batch for batch in found if batch is not None])

    def _names_of_keys(self) -> tuple[Keys, Names]:
        with self.lock:
            self.steadily(lambda steps: None)
            if self._named is None:
                for table in PER_STEP[1:]:
                    self._placed(table)  # what has samples at some steps only
                known = self._wholes.by_number
                self._named = (Keys(rows.columns_of_keys(known)), Names(known))
            return self._named

    def _known_statistics(self) -> dict[str, Statistic]:
        if self._statistics is None:
            self._statistics = {one.name: one for one in self.statistics}
        return self._statistics

    def _statistic(self, name: str) -> Statistic:
        known = self._known_statistics().get(name) or next((one for one in registered() if one.name == name), None)
        return known or as_described(name, None)

    def _not_finite(self) -> set[tuple[int, int]]:
        if self._with_others is None:
            columns, everything = self.columns("stats"), list(self._wholes.by_number)
            self._with_others = {
                (ordinal, key)
                for name in ("nans", "infs")
                for block in columns.blocks(name, everything)
                for ordinal, row in zip(block.ordinals.tolist(), block.values > 0, strict=True)
                for key in block.keys[row].tolist()
            }
        return self._with_others

"""`recording.tables`: a recording as tables and columns, for whoever looks at many tensors or many steps at once.

    numbers = [number for number, key in recording.tables.keys.by_number.items() if key.of == "value"]

    def largest(steps):                               # asked again if the files change while it looks
        found = recording.tables.columns("stats").numbers("abs_max", numbers)
        return steps.numbers_of(found.ordinals), found.values

    steps, values = recording.tables.steadily(largest)

Tables are those of `schema.recording.TABLES`; what is in their columns is in store/FORMAT.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from endoscope.errors import EndoscopeError, ValueNotKept
from endoscope.query.reading import values
from endoscope.query.reading.addressing import Keys
from endoscope.query.reading.columns import Columns
from endoscope.query.reading.names import Names
from endoscope.query.reading.values import RawFiles, RawOfStep
from endoscope.query.series import check_statistic
from endoscope.query.steps import Step, Steps
from endoscope.schema.recording import PER_STEP
from endoscope.schema.stats import WHOLE, Statistic, as_described, registered
from endoscope.store import paths
from endoscope.store.reader import RankReader
from endoscope.store.streams import to_list
from endoscope.store.tensors import keys_in

Found = TypeVar("Found")


class Outline(NamedTuple):
    """What the journal alone says."""

    steps: int  # recorded, without those that have gone
    last_step: int | None  # number of the newest of them
    bytes: int  # in all files


class Tables:
    """What was recorded until the last `refresh()` of the recording. May be shared by threads."""

    def __init__(self, reader: RankReader, described: Callable[[], Mapping[str, Any]]) -> None:
        self._reader = reader
        self._described = described  # statistics that are not built in, as trial.json describes them
        self._steps = Steps(reader)
        self._keys: tuple[tuple[int, int], Keys] | None = None
        self._names: tuple[Keys, Names] | None = None
        self._raw = RawFiles(reader)
        self._columns = {table: Columns(reader, table) for table in PER_STEP}

    # What there is

    @property
    def keys(self) -> Keys:
        """Every tensor that was ever recorded, by the number that tables refer to it by."""
        with self._reader.lock:
            state = (self._reader.generation, len(self._reader.batches("keys")))
            if self._keys is None or self._keys[0] != state:
                table = self._reader.table("keys").combine_chunks()
                self._keys = (state, Keys({name: to_list(table[name]) for name in table.column_names}))
            return self._keys[1]

    @property
    def names(self) -> Names:
        """The same as columns."""
        with self._reader.lock:
            keys = self.keys
            if self._names is None or self._names[0] is not keys:
                self._names = (keys, Names(keys.by_number))
            return self._names[1]

    @property
    def statistics(self) -> list[Statistic]:
        """The statistics of whole tensors that were recorded; this process need not know all of them."""
        known, described = {one.name: one for one in registered()}, self._described()
        numbers = [name for name, kind in self._reader.written("stats").items() if kind in (pa.int64(), pa.float64())]
        recorded = [name for name in numbers if name not in values.NO_STATISTICS]
        return [known.get(name) or as_described(name, described.get(name)) for name in recorded]

    @property
    def state(self) -> tuple[int, int, int]:
        """Changes whenever steps or metrics were added or have gone."""
        with self._reader.lock:
            chunks = self._reader.contents.chunks
            return self._reader.generation, len(chunks["steps"]), len(chunks["metrics"])

    def outline(self) -> Outline:
        """How much there is, without reading any of it."""
        with self._reader.lock:
            contents = self._reader.contents
            there = contents.step_of.keys() - contents.hidden
            ends = {chunk.file: chunk.end for chunks in contents.chunks.values() for chunk in chunks}
            last = contents.step_of[max(there)] if there else None
            return Outline(len(there), last, contents.bytes_beside + sum(ends.values()))

    @property
    def went_back_to(self) -> int | None:
        """The earliest step that the recording says it has gone back to; None if it has not."""
        return min(self._reader.contents.went_back_to.values(), default=None)

    # What is in them

    def steadily(self, find: Callable[[Steps], Found]) -> Found:
        """Look with the steps of the last refresh; again if thinning meanwhile led the reader to a newer journal."""
        with self._reader.lock:
            while True:
                self._steps.update()
                generation = self._reader.generation
                try:
                    found = find(self._steps)
                except (EndoscopeError, IndexError):
                    if generation == self._reader.generation:
                        raise
                else:
                    if generation == self._reader.generation:
                        return found

    def check_statistic(self, name: str) -> None:
        """Refuse what is no statistic of whole tensors; one that was not recorded here has gaps instead of numbers."""
        if name not in WHOLE:
            known = dict.fromkeys([*WHOLE, *(one.name for one in self.statistics)])
            check_statistic(name, list(known), "of a whole tensor")

    def columns(self, table: str) -> Columns:
        """The numbers of `stats`, `samples` or `units` over all steps; only for use inside `steadily`."""
        return self._columns[table].update()

    def batch(self, table: str, step: Step) -> pa.RecordBatch | None:
        """What one step added to `stats`, `samples` or `units`, as it is stored; None if it has gone."""
        return self._reader.batch(table, step.ordinal)

    def table(self, name: str) -> pa.Table:
        """All rows of a table, as they are stored."""
        return self._reader.table(name)

    def graph(self, graph_hash: str) -> dict[str, Any] | None:
        """A dependency graph, as plain data; None if there is none that can be read."""
        data = self._reader.whole(paths.graph_name(graph_hash)) if graph_hash else None
        return None if data is None else values.graph(self._reader, graph_hash, data)

    def raw(self, step: Step) -> RawOfStep | None:
        """The raw values of a step; None if it has none that can be read."""
        return self._raw.get(step.raw_file) if step.raw_file else None

    def keys_with_raw(self, step: Step) -> list[int]:
        """Read from the head of the file alone; its values are checked when somebody asks for them."""
        if not step.raw_file or step.raw_file not in self._reader.contents.files:
            return []
        try:
            return keys_in(self._reader.folder / step.raw_file)
        except (OSError, ValueError):
            return []

    def why_not_kept(self, node: str, step: Step, what: str) -> ValueNotKept:
        """The error for something of a recorded step that is not there."""
        return values.why_not_kept(self._reader, node, step, what)

    # For servers, which have time before somebody asks

    def read_ahead(self, table: str, most: int) -> bool:
        """Read what some steps added before somebody asks for it; returns whether there is more."""
        return self._reader.read_ahead(table, most)

    def release(self) -> None:
        """Give mapped memory back to the system; what is needed again is found in its cache."""
        self._reader.release()

    def silence(self) -> None:
        """Do not warn of damage: it is listed in `problems`, and shown by whoever calls this."""
        self._reader.is_quiet = True

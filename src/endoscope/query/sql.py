"""SQL over one or several recordings, answered by DuckDB on the mapped files, in memory.

    stats, samples, units   one row per tensor (and sample), with the tensor's names and the step's type
    steps, metrics, times, notes, gaps, keys

Every table has the columns `trial` and `rank`; rows are those that each rank has recorded. Queries see these tables and
nothing else: no files, no network, no variables of the caller, because a query may come from a web page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from endoscope.errors import BadArgument, MissingDependencyError
from endoscope.query import export
from endoscope.schema.recording import PER_STEP, TABLES
from endoscope.schema.stats import SAMPLE

_NAMES = 'k.node, k.role, k."pass", k."of", k.kind'
_DETAILS = "k.shape, k.dtype, k.batch_dim, k.module, k.source"


class Readable(Protocol):
    """What is asked of a recording."""

    @property
    def ranks(self) -> list[int]: ...

    def rank(self, number: int) -> Readable: ...

    def read(self, table: str) -> pa.Table: ...


class Answer:
    """The rows that a query returned."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return list(self)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The same as `rows`, by the name it has in DuckDB and in Python's database interface."""
        return list(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self]

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_pandas(self) -> Any:
        return export.to_pandas(self._table)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.to_pylist() for column in self._table.columns), strict=True)

    def __repr__(self) -> str:
        return f"<Answer: {len(self)} rows of {', '.join(self.columns)}>"


def ask(recordings: Mapping[str, Readable], query: str) -> Answer:
    """Run one query over all recordings at once."""
    duckdb = _duckdb()
    if not isinstance(query, str) or not query.strip():
        raise BadArgument(
            f"A query is a text such as 'select node, max(abs_max) from stats group by node', not {query!r}."
        )
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        _make_tables(connection, recordings, _tables_in(query))
        connection.execute("set enable_external_access = false; set lock_configuration = true")
        try:
            result = connection.sql(query)
            return Answer(pa.table({}) if result is None else result.to_arrow_table())
        except duckdb.Error as error:
            raise BadArgument(
                f"The query cannot be answered: {error}\nTables: {', '.join(TABLES)}. "
                "Columns of one of them:  describe stats"
            ) from error


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(
            'SQL needs DuckDB, which is not installed. Install it with:  pip install "endoscope[sql]"'
        ) from error
    return duckdb


def _tables_in(query: str) -> list[str]:
    """The tables that a query may mean; only these are opened. A query that names none may ask which there are."""
    words = set(re.findall(r"\w+", query.lower()))
    return [table for table in TABLES if table in words] or list(TABLES)


def _make_tables(connection: Any, recordings: Mapping[str, Readable], tables: list[str]) -> None:
    of_ranks = [
        (name, rank, recording.rank(rank)) for name, recording in recordings.items() for rank in recording.ranks
    ]
    for table in tables:
        parts = []
        for number, (name, rank, recording) in enumerate(of_ranks):
            for needed in {table, "keys", "steps"} if table in PER_STEP else {table}:
                found = recording.read(needed)
                found = found.drop_columns(["rank"]) if "rank" in found.column_names else found
                connection.register(f"_{needed}_{number}", found)
            parts.append(_select(table, number, name, rank))
        together = " union all by name ".join(parts)
        connection.execute(f"create view {table} as {together}")


def _select(table: str, number: int, trial: str, rank: int) -> str:
    """What one rank of a recording adds to a table."""
    label = "'" + trial.replace("'", "''") + f"' as trial, {rank} as rank"
    rows = f"_{table}_{number}"
    if table == "steps":
        return f"select {label}, * exclude (raw) from {rows}"
    if table not in PER_STEP:
        return f"select {label}, * from {rows}"
    if table == "samples":
        lists = ", ".join(f'unnest("{name}") as "{name}"' for name in ("sample", *SAMPLE))
        rows = f"(select ordinal, step, key, {lists} from {rows})"
    return (
        f"select {label}, r.step, s.type, {_NAMES}, r.* exclude (ordinal, step, key), {_DETAILS}, r.ordinal, r.key "
        f"from {rows} r left join _keys_{number} k on r.key = k.key "
        f"left join _steps_{number} s on r.ordinal = s.ordinal"
    )

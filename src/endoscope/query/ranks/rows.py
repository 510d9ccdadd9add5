"""What is known of all ranks together, as rows of the tables of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.query import arrays
from endoscope.query.steps import Step
from endoscope.schema.recording import TABLES, Key
from endoscope.store.streams import schema_of, to_arrow

_RENAMED = {"step": "number", "raw": "raw_file", "config": "config_json", "extra": "extra_json", "pass": "pass_"}


def of_steps(steps: Sequence[Step]) -> pa.Table:
    return _made("steps", {name: [getattr(step, _field(name)) for step in steps] for name, _ in TABLES["steps"]})


def of_keys(keys: Mapping[int, Key]) -> pa.Table:
    return _made("keys", columns_of_keys(keys))


def columns_of_keys(keys: Mapping[int, Key]) -> dict[str, list[Any]]:
    """The same as plain lists."""
    columns: dict[str, list[Any]] = {"key": list(keys)}
    return columns | {name: [getattr(key, _field(name)) for key in keys.values()] for name, _ in TABLES["keys"][1:]}


def of_ranks(tables: Sequence[tuple[int, pa.Table]]) -> pa.Table:
    """The rows of all ranks, one rank after the other; the column `rank` says whose they are."""
    parts = [
        table.append_column("rank", arrays.numbers(np.full(table.num_rows, rank, np.int32))) for rank, table in tables
    ]
    return pa.concat_tables(parts, promote_options="default")


def of_batches(table: str, batches: Sequence[pa.RecordBatch | None]) -> pa.Table:
    """The rows of several steps."""
    parts = [pa.Table.from_batches([batch]) for batch in batches if batch is not None]
    return pa.concat_tables(parts, promote_options="default") if parts else schema_of(table).empty_table()


def of_lists(step: Step, keys: np.ndarray, columns: Mapping[str, Sequence[np.ndarray]]) -> pa.RecordBatch | None:
    """Rows of one step, with lists; None if there are none."""
    if not len(keys):
        return None
    made = head(step, keys)
    for name, lists in columns.items():
        kind = np.int32 if name in ("sample", "rank", "unit_shape") else np.float32
        flat = np.concatenate([np.empty(0, kind), *lists]).astype(kind, copy=False)
        made[name] = arrays.lists(np.array([len(one) for one in lists], np.int64), flat)
    return pa.RecordBatch.from_pydict(made)


def head(step: Step, keys: np.ndarray) -> dict[str, pa.Array]:
    """How every row of a step begins."""
    return {
        "ordinal": arrays.numbers(np.full(len(keys), step.ordinal, np.int32)),
        "step": arrays.numbers(np.full(len(keys), step.number, np.int64)),
        "key": arrays.numbers(keys.astype(np.int32, copy=False)),
    }


def _field(name: str) -> str:
    return _RENAMED.get(name, name)


def _made(table: str, columns: Mapping[str, Any]) -> pa.Table:
    return pa.table({name: to_arrow(columns[name], word) for name, word in TABLES[table]})

"""Whole tables, with the names of tensors and the types of steps in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.errors import LookupFailed, MissingDependencyError
from endoscope.query.steps import StepIndex
from endoscope.schema.recording import PER_STEP, TABLES
from endoscope.store.reader import RankReader
from endoscope.store.streams import to_numpy

_NAMES = ("node", "role", "pass", "of", "kind")  # of a tensor; they come first
_DETAILS = ("shape", "dtype", "batch_dim", "module", "source")  # these last


def check(table: str) -> None:
    if table not in TABLES:
        raise LookupFailed(f"There is no table {table!r}. There are: {', '.join(TABLES)}.")


def stored(reader: RankReader, table: str) -> pa.Table:
    """A table as it is stored, without steps that were thinned."""
    check(table)
    found = reader.table(table)
    gone = reader.contents.hidden
    if gone and "ordinal" in found.column_names:
        found = found.filter(pa.array(~np.isin(to_numpy(found["ordinal"]), list(gone))))
    return found


def to_arrow(read: Callable[[str], pa.Table], steps: StepIndex, table: str) -> pa.Table:
    """A table to work with: the tensor's names beside its numbers, lists of samples as rows."""
    found = read(table)
    if table == "steps":
        return found.drop_columns(["raw"])
    if table not in PER_STEP:
        return found
    if table == "samples":
        found = _one_row_per_sample(found)
    keys = read("keys")
    place = np.full(int(max(_int(keys, "key").max(initial=-1), _int(found, "key").max(initial=-1))) + 2, -1)
    place[_int(keys, "key")] = np.arange(keys.num_rows)
    rows = place[_int(found, "key")]
    known = pa.array(np.maximum(rows, 0), mask=rows < 0)  # a key whose name is lost to damage has nulls
    columns: dict[str, Any] = {"step": found["step"], "type": _types(found, steps)}
    columns |= {name: _take(keys, name, known) for name in _NAMES}
    columns |= {name: found[name] for name in found.column_names if name not in ("ordinal", "step", "key")}
    columns |= {name: _take(keys, name, known) for name in _DETAILS}
    return pa.table(columns | {"ordinal": found["ordinal"], "key": found["key"]})


def to_pandas(table: pa.Table) -> Any:
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            'to_pandas() needs pandas, which is not installed. Install it with:  pip install "endoscope[pandas]"\n'
            "to_arrow() needs nothing more."
        ) from error
    return table.to_pandas()


def _types(found: pa.Table, steps: StepIndex) -> pa.Array:
    return pa.array(steps.types_of(_int(found, "ordinal")), pa.string()).dictionary_encode()


def _take(keys: pa.Table, name: str, rows: pa.Array) -> pa.Array:
    """Names are repeated in every step, so they are stored once and referred to."""
    column = keys[name].combine_chunks()
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    return column.take(rows) if keys.num_rows else pa.nulls(len(rows), column.type)


def _one_row_per_sample(found: pa.Table) -> pa.Table:
    combined = found.combine_chunks()
    lists = [name for name in found.column_names if pa.types.is_list(found.schema.field(name).type)]
    flat = {name: combined[name].combine_chunks().flatten() for name in lists}
    lengths = combined["sample"].combine_chunks().value_lengths()
    rows = pa.array(np.repeat(np.arange(found.num_rows), to_numpy(lengths)))
    columns = {name: combined[name].take(rows) for name in ("ordinal", "step", "key")}
    # What only a newer version knows may be something else than one number for each sample.
    return pa.table(columns | {name: values for name, values in flat.items() if len(values) == len(rows)})


def _int(table: pa.Table, column: str) -> np.ndarray:
    return to_numpy(table[column])

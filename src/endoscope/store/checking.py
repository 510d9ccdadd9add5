"""Whether a record batch says what a table can say. Checksums and Arrow vouch for the bytes, not for their meaning.

A recording that was made to lead astray has matching checksums. So whatever readers rely on is looked at once, when a
chunk is read for the first time: columns and their types, lists that belong together, numbers that are places.

Columns may be added at any time. A statistic that an older version did not know is NaN, or null if it is a count;
columns that only a newer version knows stay behind those that are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.schema.recording import PER_STEP, TABLES, THINNED
from endoscope.schema.stats import HISTOGRAM_BINS, SAMPLE, UNIT, WHOLE
from endoscope.store.sealed import load
from endoscope.store.streams import ListColumn, schema_of, to_arrow, to_list, to_numpy

MOST_KEYS = 2**24
MOST_STEPS = 2**62
_STATISTICS = {"stats": WHOLE, "samples": SAMPLE, "units": UNIT}
#: Columns that came later, and what they say of recordings that are older than them.
_LATER: dict[str, dict[str, Any]] = {"steps": {"iteration": -1, "skipped": 0}, "keys": {"placement": ""}}


def complete(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with all columns that this version knows, first and in its order; ValueError if it cannot be made."""
    known = schema_of(table)
    if batch.schema.equals(known) and not any(_has_nulls(column) for column in batch.columns):
        return batch
    if len(set(batch.schema.names)) != len(batch.schema.names):
        raise ValueError("two columns have the same name")
    there = dict(zip(batch.schema.names, batch.columns, strict=True))
    for field in known:
        column = there.get(field.name)
        if column is None:
            there[field.name] = _filled(table, field, there, len(batch))
        elif column.type != field.type:
            raise ValueError(f"the column {field.name!r} is {column.type}, not {field.type}")
        elif _has_nulls(column):
            raise ValueError(f"the column {field.name!r} has nulls")
    if batch.schema.names == known.names:
        return batch
    return pa.RecordBatch.from_pydict(
        {name: there[name] for name in known.names} | {n: c for n, c in there.items() if n not in known.names}
    )


def check(table: str, batch: pa.RecordBatch, ordinal: int) -> None:
    """Raise ValueError if a complete batch, of the step with this ordinal, says what cannot be."""
    if table in THINNED:
        ordinals = to_numpy(batch.column("ordinal"))
        if not len(ordinals) or (ordinals != (ordinal if ordinal >= 0 else ordinals[0])).any() or ordinals[0] < 0:
            raise ValueError(f"rows that are not of recorded step {ordinal}")
    if "step" in batch.schema.names:
        steps = to_numpy(batch.column("step"))
        if len(steps) and not -MOST_STEPS < int(steps.min()) <= int(steps.max()) < MOST_STEPS:
            raise ValueError("the number of a step out of range")
    if table in PER_STEP or table == "keys":
        keys = to_numpy(batch.column("key"))
        if len(keys) and not 0 <= int(keys.min()) <= int(keys.max()) < MOST_KEYS:
            raise ValueError("the number of a tensor out of range")
    if table in _OF:
        _OF[table](batch)


def _stats(batch: pa.RecordBatch) -> None:
    first, lengths = to_numpy(batch.column("hist_first")), _lengths(batch.column("hist"))
    if (first < 0).any() or (first + lengths > HISTOGRAM_BINS).any():
        raise ValueError("a histogram with bins that do not exist")


def _samples(batch: pa.RecordBatch) -> None:
    if not all(_fit(batch.column(name), batch.column("sample")) for name in SAMPLE):
        raise ValueError("lists that have not one number for each sample")


def _units(batch: pa.RecordBatch) -> None:
    first, *others = (batch.column(name) for name in UNIT)
    units = _products(batch.column("unit_shape"))
    if (_lengths(first) != units).any() or not all(_fit(one, first) for one in others):
        raise ValueError("units that do not fit their shape")


def _steps(batch: pa.RecordBatch) -> None:
    for name in ("config", "extra"):
        if any(load(text) is None for text in to_list(batch.column(name))):
            raise ValueError(f"the column {name!r} is not JSON")


_OF = {"stats": _stats, "samples": _samples, "units": _units, "steps": _steps}


def _has_nulls(column: pa.Array) -> bool:
    return bool(column.null_count or (isinstance(column, pa.ListArray) and column.values.null_count))


def _filled(table: str, field: pa.Field, there: dict[str, pa.Array], rows: int) -> pa.Array:
    """A column that the writer did not know yet."""
    word = dict(TABLES[table])[field.name]
    if field.name in _LATER.get(table, {}):
        return to_arrow([_LATER[table][field.name]] * rows, word)
    if field.name not in _STATISTICS.get(table, ()):
        raise ValueError(f"the column {field.name!r} is missing")
    if word == "float64":
        return _nan(rows)
    if not word.startswith("list<"):
        return pa.nulls(rows, field.type)
    names = ("sample",) if table == "samples" else UNIT
    like = next((there[name] for name in names if name in there and pa.types.is_list(there[name].type)), None)
    if like is None:
        raise ValueError(f"the column {field.name!r} is missing, with all columns of its kind")
    offsets = to_numpy(like.offsets)
    return to_arrow(ListColumn(to_numpy(_nan(int(offsets.max(initial=0)))), offsets), word)


def _nan(count: int) -> pa.Array:
    return to_arrow(np.full(count, np.nan), "float64")


def _lengths(column: pa.Array) -> np.ndarray:
    return np.diff(to_numpy(column.offsets))


def _fit(some: pa.Array, others: pa.Array) -> bool:
    """Whether the lists of two columns have the same lengths."""
    return bool(some.offsets.equals(others.offsets)) or np.array_equal(_lengths(some), _lengths(others))


def _products(column: pa.Array) -> np.ndarray:
    """Of the numbers in each list; -1 where one is negative."""
    offsets = to_numpy(column.offsets)
    sizes, some = to_numpy(column.values)[: offsets[-1]].astype(np.float64), np.flatnonzero(np.diff(offsets))
    found = np.ones(len(column))
    if len(some):
        starts = offsets[some]
        found[some] = np.where(np.minimum.reduceat(sizes, starts) < 0, -1, np.multiply.reduceat(sizes, starts))
    return found

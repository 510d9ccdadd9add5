"""One recorded step as rows of the tables: from arrays side by side, as they were measured, to columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from endoscope.schema.recording import TABLES, Key, StepRecord
from endoscope.schema.stats import SAMPLE, UNIT, WHOLE
from endoscope.store.messages import ListColumn
from endoscope.store.sealed import dump

Columns = dict[str, Any]


def of_keys(first: int, keys: Sequence[Key]) -> Columns:
    columns: Columns = {"key": np.arange(first, first + len(keys))}
    for name, kind in TABLES["keys"][1:]:
        attribute = "pass_" if name == "pass" else name
        values = [getattr(key, attribute) for key in keys]
        columns[name] = [list(value) for value in values] if kind.startswith("list") else values
    return columns


def of_step(record: StepRecord, ordinal: int, raw_file: str) -> Columns:
    """The one row of `steps`."""
    row = {
        "ordinal": ordinal,
        "step": record.number,
        "type": record.type,
        "time": record.time,
        "why": record.why,
        "recording_seconds": record.recording_seconds,
        "graph": record.graph_hash,
        "raw": raw_file,
        "raw_samples": [int(sample) for sample in record.raw_samples],
        "categories": [str(category) for category in record.categories],
        "passes": record.passes,
        "tensors": len(record.keys),
        "config": dump(dict(record.config)),
        "extra": dump(dict(record.extra)),
    }
    return {name: [value] for name, value in row.items()}


def of_measured(record: StepRecord, ordinal: int) -> dict[str, Columns]:
    """The rows of `stats`, `samples` and `units`; a table without rows is left out."""
    measured = record.measured
    if measured is None or not len(record.keys):
        return {}
    keys = np.asarray(record.keys, dtype=np.int32)
    tables = {"stats": _stats(measured), "samples": _samples(measured, keys), "units": _units(measured, keys)}
    tables["stats"]["key"] = keys
    for columns in tables.values():
        rows = len(columns["key"])
        columns["ordinal"] = np.full(rows, ordinal, dtype=np.int32)
        columns["step"] = np.full(rows, record.number, dtype=np.int64)
    return {table: columns for table, columns in tables.items() if len(columns["key"])}


def of_tuples(table: str, rows: Iterable[Sequence[Any]]) -> Columns:
    """Rows that were collected one by one."""
    names = [name for name, _ in TABLES[table]]
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def _stats(measured: Any) -> Columns:
    whole: Mapping[str, Any] = measured.whole
    columns: Columns = {name: whole[name] for name in WHOLE}
    columns["hist_first"] = measured.hist_first
    columns["hist"] = ListColumn(measured.hist_values, measured.hist_offsets)
    return columns


def _samples(measured: Any, keys: np.ndarray) -> Columns:
    """One row per tensor that has samples: the numbers of its samples as lists."""
    owner = np.asarray(measured.sample_request)
    sample, numbers = np.asarray(measured.sample_index), measured.samples
    if np.any(owner[1:] < owner[:-1]):  # not grouped by tensor
        order = np.argsort(owner, kind="stable")
        owner, sample = owner[order], sample[order]
        numbers = {name: values[order] for name, values in numbers.items()}
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    offsets = np.append(starts, len(owner)).astype(np.int32)
    columns: Columns = {"key": keys[owner[starts]], "sample": ListColumn(sample, offsets)}
    return columns | {name: ListColumn(numbers[name], offsets) for name in SAMPLE}


def _units(measured: Any, keys: np.ndarray) -> Columns:
    """One row per tensor that has units."""
    ends = np.asarray(measured.unit_offsets)
    rows = np.flatnonzero(np.diff(ends))
    offsets = np.append(ends[rows], ends[-1])  # those in between are empty, so each list ends where the next begins
    shapes = [measured.unit_shape[row] for row in rows]
    columns: Columns = {"key": keys[rows], "unit_shape": shapes}
    return columns | {name: ListColumn(measured.units[name], offsets) for name in UNIT}

"""One recorded step as rows of the tables: from arrays side by side, as they were measured, to columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from endoscope.schema.recording import TABLES, Key, StepRecord
from endoscope.schema.stats import SAMPLE, UNIT, WHOLE
from endoscope.store.sealed import dump
from endoscope.store.streams import ListColumn, batch_message, list_column

Columns = dict[str, Any]


def messages(record: StepRecord, ordinal: int, raw_file: str) -> dict[str, memoryview]:
    """Table -> what a recorded step adds to it; a table without rows is left out."""
    found = {"steps": batch_message("steps", of_step(record, ordinal, raw_file))}
    if record.measured is not None and len(record.keys):
        for table in _MEASURED:
            columns = of_measured(table, record, ordinal)
            if len(columns["key"]):
                found[table] = batch_message(table, columns)
    return found


def of_keys(first: int, keys: Sequence[Key]) -> Columns:
    columns: Columns = {"key": np.arange(first, first + len(keys))}
    for name, kind in TABLES["keys"][1:]:
        attribute = "pass_" if name == "pass" else name
        values = [getattr(key, attribute) for key in keys]
        columns[name] = [list(value) for value in values] if kind.startswith("list") else values
    return columns


def of_step(record: StepRecord, ordinal: int, raw_file: str) -> Columns:
    """The one row of `steps`."""
    return {
        "ordinal": [ordinal],
        "step": [record.number],
        "time": [record.time],
        "recording_seconds": [record.recording_seconds],
        "raw": [raw_file],
        "type": [record.type],
        "why": [record.why],
        "graph": [record.graph_hash],
        "raw_samples": [[int(sample) for sample in record.raw_samples]],
        "categories": [[str(category) for category in record.categories]],
        "passes": [record.passes],
        "tensors": [len(record.keys)],
        "config": [dump(dict(record.config)) if record.config else "{}"],
        "extra": [dump(dict(record.extra)) if record.extra else "{}"],
        "iteration": [record.iteration],
        "skipped": [int(record.skipped)],
    }


def of_tuples(table: str, rows: Iterable[Sequence[Any]]) -> Columns:
    """Rows that were collected one by one."""
    names = [name for name, _ in TABLES[table]]
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def of_measured(table: str, record: StepRecord, ordinal: int) -> Columns:
    """The rows of `stats`, `samples` or `units`."""
    columns = _MEASURED[table](record.measured, np.asarray(record.keys, dtype=np.int32))
    rows = len(columns["key"])
    columns["ordinal"] = np.full(rows, ordinal, dtype=np.int32)
    columns["step"] = np.full(rows, record.number, dtype=np.int64)
    return columns


def _stats(measured: Any, keys: np.ndarray) -> Columns:
    whole: Mapping[str, Any] = measured.whole
    columns: Columns = {"key": keys} | {name: whole[name] for name in WHOLE}
    columns["hist_first"] = measured.hist_first
    columns["hist"] = ListColumn(measured.hist_values, measured.hist_offsets)
    return columns


def _samples(measured: Any, keys: np.ndarray) -> Columns:
    """One row per tensor that has samples: the numbers of its samples as lists."""
    order, rows, offsets = _grouped(np.asarray(measured.sample_request))
    sample, numbers = np.asarray(measured.sample_index), measured.samples
    if order is not None:
        sample = sample[order]
        numbers = {name: values[order] for name, values in numbers.items()}
    columns: Columns = {"key": keys[rows], "sample": ListColumn(sample, offsets)}
    return columns | {name: ListColumn(numbers[name], offsets) for name in SAMPLE}


def _units(measured: Any, keys: np.ndarray) -> Columns:
    """One row per tensor that has units."""
    ends = np.asarray(measured.unit_offsets)
    rows = np.flatnonzero(np.diff(ends))
    # Lists in between are empty, so each one ends where the next begins.
    offsets = np.append(ends[rows], ends[-1]).astype(np.int32)
    columns: Columns = {"key": keys[rows], "unit_shape": list_column([measured.unit_shape[row] for row in rows])}
    return columns | {name: ListColumn(measured.units[name], offsets) for name in UNIT}


def _grouped(owner: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """An order in which samples of one tensor stand together (None: they do), whose they are, and where each begins."""
    order = None
    if np.any(owner[1:] < owner[:-1]):
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return order, owner[starts], np.append(starts, len(owner)).astype(np.int32)


_MEASURED = {"stats": _stats, "samples": _samples, "units": _units}

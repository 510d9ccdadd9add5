"""One recorded step as rows of the tables: from arrays side by side, as they were measured, to columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from endoscope.schema.recording import TABLES, Key, StepRecord
from endoscope.schema.stats import SAMPLE, UNIT, WHOLE
from endoscope.store.messages import ListColumn, list_column
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


def of_tuples(table: str, rows: Iterable[Sequence[Any]]) -> Columns:
    """Rows that were collected one by one."""
    names = [name for name, _ in TABLES[table]]
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


class MeasuredRows:
    """The rows of what was measured. Which tensors have samples and units is remembered from one step to the next."""

    def __init__(self) -> None:
        self._sampled: tuple[Any, ...] = (None, None)  # keys, numbers of the requests, and what follows from these
        self._divided: tuple[Any, ...] = (None, None)  # keys, offsets of the units, and what follows from these

    def of(self, record: StepRecord, ordinal: int) -> dict[str, Columns]:
        """The rows of `stats`, `samples` and `units`; a table without rows is left out."""
        measured = record.measured
        if measured is None or not len(record.keys):
            return {}
        keys = np.asarray(record.keys, dtype=np.int32)
        tables = {"stats": {"key": keys, **_stats(measured)}}
        tables |= {"samples": self._samples(measured, keys), "units": self._units(measured, keys)}
        for columns in tables.values():
            rows = len(columns["key"])
            columns["ordinal"] = np.full(rows, ordinal, dtype=np.int32)
            columns["step"] = np.full(rows, record.number, dtype=np.int64)
        return {table: columns for table, columns in tables.items() if len(columns["key"])}

    def _samples(self, measured: Any, keys: np.ndarray) -> Columns:
        """One row per tensor that has samples: the numbers of its samples as lists."""
        owner, numbers = measured.sample_request, measured.samples
        if self._sampled[0] is not keys or self._sampled[1] is not owner:
            self._sampled = (keys, owner, *_grouped(np.asarray(owner)))
        _, _, order, rows, offsets = self._sampled
        sample = np.asarray(measured.sample_index)
        if order is not None:
            sample = sample[order]
            numbers = {name: values[order] for name, values in numbers.items()}
        columns: Columns = {"key": keys[rows], "sample": ListColumn(sample, offsets)}
        return columns | {name: ListColumn(numbers[name], offsets) for name in SAMPLE}

    def _units(self, measured: Any, keys: np.ndarray) -> Columns:
        """One row per tensor that has units."""
        if self._divided[0] is not keys or self._divided[1] is not measured.unit_offsets:
            ends = np.asarray(measured.unit_offsets)
            rows = np.flatnonzero(np.diff(ends))
            # Lists in between are empty, so each one ends where the next begins.
            offsets = np.append(ends[rows], ends[-1]).astype(np.int32)
            shapes = list_column([measured.unit_shape[row] for row in rows])
            self._divided = (keys, measured.unit_offsets, keys[rows], shapes, offsets)
        _, _, of_rows, shapes, offsets = self._divided
        columns: Columns = {"key": of_rows, "unit_shape": shapes}
        return columns | {name: ListColumn(measured.units[name], offsets) for name in UNIT}


def _grouped(owner: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """An order in which samples of one tensor stand together (None: they do), whose they are, and where each begins."""
    order = None
    if np.any(owner[1:] < owner[:-1]):
        order = np.argsort(owner, kind="stable")
        owner = owner[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return order, owner[starts], np.append(starts, len(owner)).astype(np.int32)


def _stats(measured: Any) -> Columns:
    whole: Mapping[str, Any] = measured.whole
    columns: Columns = {name: whole[name] for name in WHOLE}
    columns["hist_first"] = measured.hist_first
    columns["hist"] = ListColumn(measured.hist_values, measured.hist_offsets)
    return columns

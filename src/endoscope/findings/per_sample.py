"""Statistics of every sample of many tensors over all steps: float32[tensors, steps, samples], NaN where there is none.

Read step by step, as they lie on disk; a part of the tensors at a time, because all of them may not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from endoscope.findings.facts import Facts
from endoscope.findings.rows import Rows
from endoscope.store.streams import to_numpy

MOST_NUMBERS = 2**23  # of one statistic, that are held at once: 32 MB
ALWAYS_THERE = "zeros"  # a statistic that every sample has, also one without a finite element
_STEPS_AT_ONCE = 64  # are read before their memory is given back


def batch_sizes(facts: Facts, rows: Rows) -> np.ndarray:
    """int64[tensors]: the most samples that each tensor ever had; 0 if it has none."""
    sizes = np.zeros(len(rows), np.int64)
    for number, key in facts.recording.tables.keys.by_number.items():
        row = rows.row_of_key.get(number)
        if row is not None and 0 <= key.batch_dim < len(key.shape):
            sizes[row] = max(sizes[row], key.shape[key.batch_dim])
    return sizes


def read(facts: Facts, rows: Rows, wanted: np.ndarray, statistics: Sequence[str]) -> dict[str, np.ndarray]:
    """Statistics of some rows, by name; the samples of all of them side by side."""
    largest = int(batch_sizes(facts, rows)[wanted].max(initial=0))
    shape = (len(wanted), len(facts.steps), largest)
    found = {name: np.full(shape, np.nan, np.float32) for name in statistics}
    if not len(wanted) or not largest:
        return found
    place_of = _places(rows, wanted)
    for step, one in enumerate(facts.steps):
        batch = facts.recording.tables.batch("samples", one)
        if batch is None:
            continue
        keys = to_numpy(batch.column("key"))
        chosen = np.flatnonzero(place_of[np.minimum(keys, len(place_of) - 1)] >= 0)
        if len(chosen):
            _take(batch, chosen, place_of[keys[chosen]], step, found)
        if step % _STEPS_AT_ONCE == _STEPS_AT_ONCE - 1:
            facts.recording.tables.release()
    return found


def in_parts(facts: Facts, rows: Rows, wanted: np.ndarray) -> Iterator[np.ndarray]:
    """The wanted rows that have samples, so many at a time that their numbers fit into memory."""
    sizes = batch_sizes(facts, rows)
    wanted = wanted[sizes[wanted] > 0]
    each = max(int(sizes[wanted].max(initial=1)) * max(len(facts.steps), 1), 1)
    count = max(MOST_NUMBERS // each, 1)
    for start in range(0, len(wanted), count):
        yield wanted[start : start + count]


def _places(rows: Rows, wanted: np.ndarray) -> np.ndarray:
    """Number of a key -> place among the wanted rows, or -1; the last entry stands for all other numbers."""
    place_of_row = np.full(len(rows), -1, np.int64)
    place_of_row[wanted] = np.arange(len(wanted))
    result = np.full(max(rows.row_of_key, default=0) + 2, -1, np.int64)
    for key, row in rows.row_of_key.items():
        result[key] = place_of_row[row]
    return result


def _take(
    batch: pa.RecordBatch, chosen: np.ndarray, places: np.ndarray, step: int, found: dict[str, np.ndarray]
) -> None:
    """Put what one step has of the chosen tensors into its place."""
    offsets = to_numpy(batch.column("sample").offsets).astype(np.int64)
    which = to_numpy(batch.column("sample").values)
    starts, lengths = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    for length in np.unique(lengths).tolist():
        same = np.flatnonzero(lengths == length)
        at = starts[same][:, None] + np.arange(length)
        columns, lines = which[at], places[same][:, None]
        for name, target in found.items():
            target[lines, step, columns] = to_numpy(batch.column(name).values)[at]

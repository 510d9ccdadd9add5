"""All tensors of one step, of all ranks together, as a record batch like that of one rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from endoscope.query import arrays
from endoscope.query.ranks import histograms, reasons, rows, samples, units
from endoscope.query.ranks.columns import Piece, WholeColumns
from endoscope.query.ranks.groups import Group
from endoscope.query.steps import Step
from endoscope.schema.stats import COUNTS


def of_stats(step: Step, group: Group, columns: WholeColumns, statistics: Sequence[str]) -> pa.RecordBatch | None:
    """Beside the columns of `stats`: `pieces`, of how many ranks a tensor is put together, and `gap`, why it is not."""
    tensors = group.tensors
    if not len(tensors.keys):
        return None
    piece = Piece(group, np.arange(len(tensors.keys)), range(1))
    found = {name: columns.of(piece, name)[0] for name in statistics}
    made = rows.head(step, tensors.keys)
    for name, values in found.items():
        if name in COUNTS:
            there = ~np.isnan(values)
            made[name] = arrays.numbers(np.where(there, values, 0).astype(np.int64), there)
        else:
            made[name] = arrays.numbers(values)
    trimmed = [histograms.trimmed(one) for one in columns.histograms_of(piece)[0]]
    kind = np.result_type(np.uint32, *(counts.dtype for _, counts in trimmed))
    made["hist_first"] = arrays.numbers(np.array([first for first, _ in trimmed], np.int16))
    lengths = np.array([len(counts) for _, counts in trimmed], np.int64)
    made["hist"] = arrays.lists(lengths, np.concatenate([counts for _, counts in trimmed]).astype(kind))
    made["pieces"] = arrays.numbers(np.count_nonzero(tensors.leads, axis=0).astype(np.int32))
    made["gap"] = arrays.dictionary(_gaps(group, columns.agree(piece)[0]))
    return pa.RecordBatch.from_pydict(made)


def of_samples(step: Step, group: Group) -> pa.RecordBatch | None:
    """Beside the columns of `samples`: `rank`, on which each sample was."""
    return rows.of_lists(step, *samples.rows_of(group, 0))


def of_units(step: Step, group: Group, not_finite: units.NotFinite) -> pa.RecordBatch | None:
    return rows.of_lists(step, *units.rows_of(group, 0, not_finite))


def _gaps(group: Group, agree: np.ndarray) -> list[str]:
    why = [reasons.of(*one) for one in zip(group.tensors.arrangements, group.tensors.missing, strict=True)]
    return [one or ("" if same else reasons.DISAGREE) for one, same in zip(why, agree.tolist(), strict=True)]

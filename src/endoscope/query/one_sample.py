"""One sample of a batch, in all tensors of a step at once: what the graph is coloured by when a sample is chosen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from endoscope.query import arrays, bulk
from endoscope.query.recording import Recording
from endoscope.query.steps import Step, Steps
from endoscope.schema.stats import SAMPLE
from endoscope.store.streams import to_numpy


def sample_table(recording: Recording, step: Step, sample: int, known: str | None = None) -> pa.Table:
    """One row per tensor that has this sample: its names, unless they are the `known` ones, and its statistics."""

    def find(steps: Steps) -> pa.Table:
        batch = recording.tables.batch("samples", step)
        if batch is None:
            raise recording.tables.why_not_kept("the step", step, "statistics per sample")
        column = {name: batch.column(place) for place, name in enumerate(batch.schema.names)}
        # All lists of a row are about the same samples, so the place of the sample in one is its place in all.
        places = np.flatnonzero(to_numpy(column["sample"].values) == sample)
        rows = np.searchsorted(to_numpy(column["sample"].offsets), places, side="right") - 1
        inside = (rows >= 0) & (rows < len(batch))  # a batch may be a piece of something longer
        places, rows = places[inside], rows[inside]
        keys = to_numpy(column["key"])[rows]
        stamp = bulk.names_stamp(recording, keys)
        named = None if stamp == known else bulk.names_of(recording, keys)
        columns = {} if named is None else {name: named[name] for name in named.column_names}
        there = [name for name in SAMPLE if name in column]
        columns |= {name: arrays.numbers(to_numpy(column[name].values)[places]) for name in there}
        return pa.table(columns, metadata={"names": stamp})

    return recording.tables.steadily(find)

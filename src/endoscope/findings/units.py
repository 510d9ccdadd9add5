"""Every unit over the batch, at some of the steps: read from the newest step backwards, a step at a time.

All units of all steps would not fit into memory. What is asked is mostly whether a unit has been silent since some
step; for that the largest value from there to the end is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from endoscope.findings.facts import Facts
from endoscope.findings.rows import Tensor
from endoscope.store.streams import to_numpy

MOST_STEPS = 24  # that are looked at


class Units(NamedTuple):
    """Statistics of the units of one tensor at one step, by feature: [positions, features]."""

    place: int  # of the step
    tensor: Tensor
    mean: np.ndarray
    std: np.ndarray
    abs_max: np.ndarray


def backwards(facts: Facts, wanted: set[int], most: int = MOST_STEPS) -> Iterator[Units]:
    """Units of the wanted rows of `facts.values`: the newest step first, at most so many steps, spread evenly."""
    rows = facts.values
    for place in chosen_steps(steps_until(facts, "units"), most)[::-1].tolist():
        batch = facts.recording.tables.batch("units", facts.steps[place])
        if batch is None:
            continue
        keys = to_numpy(batch.column("key")).tolist()
        columns = {name: batch.column(name) for name in ("mean", "std", "abs_max", "unit_shape")}
        flat = {name: to_numpy(column.values) for name, column in columns.items()}
        offsets = {name: to_numpy(column.offsets) for name, column in columns.items()}
        for number, key in enumerate(keys):
            row = rows.row_of_key.get(key, -1)
            if row in wanted:
                parts = {name: flat[name][offsets[name][number] : offsets[name][number + 1]] for name in columns}
                tensor = rows.tensors[row]
                shape = tuple(parts.pop("unit_shape").tolist())
                yield Units(place, tensor, *(by_feature(parts[n], shape, tensor) for n in ("mean", "std", "abs_max")))


def steps_until(facts: Facts, table: str) -> int:
    """How many steps there are up to the last one with such rows: a run that must save time leaves them out."""
    count = len(facts.steps)
    while count and facts.recording.tables.batch(table, facts.steps[count - 1]) is None:
        count -= 1
    return count


def chosen_steps(count: int, most: int) -> np.ndarray:
    """Places of at most so many steps: the last ten, and others spread evenly over what is before them."""
    if count <= most:
        return np.arange(count)
    late = np.arange(count - 10, count)
    early = np.linspace(0, count - 11, most - 10).round().astype(np.int64)
    return np.unique(np.concatenate([early, late]))


def by_feature(values: np.ndarray, shape: tuple[int, ...], tensor: Tensor) -> np.ndarray:
    """[positions, features]: channels of images, else the last dimension."""
    if len(shape) <= 1 or int(np.prod(shape)) != len(values):
        return values.reshape(1, -1)
    if len(shape) >= 3 and len(tensor.key.shape) >= 4 and tensor.key.batch_dim == 0:
        return values.reshape(shape[0], -1).T
    return values.reshape(-1, shape[-1])

"""Recordings of given arrays: what would have been recorded if a network had computed them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from endoscope.schema.recording import Key, RawValues, StepRecord
from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE, registered
from endoscope.store.writer import TrialWriter
from tests.stats import twin
from tests.store.made_up import Measured

_STATISTICS = {one.name: one for one in registered()}
Arrays = Mapping[str, np.ndarray]  # node -> [samples, units]; a node named "x" is the input, "w.…" a parameter


class Moment(NamedTuple):
    """One recorded step."""

    number: int
    arrays: Arrays
    type: str = ""
    categories: Sequence[str] = ()
    raw: Sequence[int] = ()  # samples that are kept raw


def record(root: Path, name: str, moments: Iterable[Moment]) -> Path:
    """Write a trial."""
    writer = TrialWriter.create(root, name)
    for moment in moments:
        keys = [key_of(node, array) for node, array in moment.arrays.items()]
        numbers = [writer.key_id(key) for key in keys]
        raw = [
            RawValues(number, array[list(moment.raw)].astype(np.float32), list(moment.raw))
            for number, array in zip(numbers, moment.arrays.values(), strict=True)
            if moment.raw
        ]
        writer.write_step(
            StepRecord(
                number=moment.number, type=moment.type, time=float(moment.number), keys=np.array(numbers), raw=raw,
                graph_hash="graph", graph={"nodes": [], "edges": []}, measured=measured(list(moment.arrays.values())),
                raw_samples=list(moment.raw), categories=list(moment.categories),
            )
        )  # fmt: skip
    writer.close()
    return writer.path


def key_of(node: str, array: np.ndarray) -> Key:
    kind = "input" if node == "x" else "computed"
    return Key(node, kind=kind, shape=array.shape, batch_dim=0, module=node, source="model.py:3")


def measured(arrays: Sequence[np.ndarray]) -> Measured:
    """All statistics by plain numpy."""
    whole = {name: np.array([_whole(name, array) for array in arrays]) for name in WHOLE}
    whole |= {name: whole[name].astype(np.int64) for name in COUNTS}
    many = len(arrays)
    sizes = [array.shape[1] for array in arrays]
    return Measured(
        whole=whole,
        hist_first=np.zeros(many, np.int16),
        hist_values=np.ones(many, np.uint32),
        hist_offsets=np.arange(many + 1, dtype=np.int32),
        sample_request=np.concatenate([np.full(len(a), n) for n, a in enumerate(arrays)]).astype(np.int32),
        sample_index=np.concatenate([np.arange(len(array)) for array in arrays]).astype(np.int32),
        samples={
            name: np.array([_whole(name, row) for array in arrays for row in array], np.float32) for name in SAMPLE
        },
        unit_shape=[(size,) for size in sizes],
        unit_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        units={name: np.concatenate([_unit(name, array) for array in arrays]).astype(np.float32) for name in UNIT},
    )


def _whole(name: str, array: np.ndarray) -> float:
    return twin.of_one(_STATISTICS[name], [x for x in array.ravel().tolist() if name in COUNTS or math.isfinite(x)])


def _unit(name: str, array: np.ndarray) -> np.ndarray:
    if name == "abs_max":
        return np.asarray(np.abs(array).max(axis=0))
    return np.asarray(array.mean(axis=0) if name == "mean" else array.std(axis=0))

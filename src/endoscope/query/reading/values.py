"""What was recorded of one tensor at one step: raw values, statistics, histogram, samples, units."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from endoscope.errors import LookupFailed, ValueNotKept
from endoscope.query.steps import Step
from endoscope.schema.stats import HISTOGRAM_BINS, SAMPLE, UNIT, histogram_edges
from endoscope.store import paths
from endoscope.store.reader import RankReader
from endoscope.store.sealed import load
from endoscope.store.streams import to_numpy
from endoscope.store.tensors import TensorFile

NO_STATISTICS = ("ordinal", "step", "key", "hist_first", "hist", "pieces", "gap")  # other columns of `stats`
_FILES_KEPT_OPEN = 8
_MOST_SHOWN = 5


class Histogram(NamedTuple):
    """Counts of the values of a tensor in bins that are the same for all tensors."""

    edges: np.ndarray  # float64, one more than counts
    counts: np.ndarray  # int64


class RawOfStep(Protocol):
    """The raw values of one step, by the numbers of keys."""

    @property
    def entries(self) -> Container[int]: ...

    @property
    def samples(self) -> Mapping[int, list[int]]:
        """Which samples lie along dimension 0 of a tensor; one that is not listed is whole."""

    def array(self, key: int, position: int | None = None) -> np.ndarray:
        """A tensor, or one of the samples in it."""


class RawFiles:
    """The files with raw values that were used last."""

    def __init__(self, reader: RankReader) -> None:
        self._reader = reader
        self._files: OrderedDict[str, TensorFile] = OrderedDict()

    def get(self, file: str) -> TensorFile | None:
        """None if it cannot be read; the reader has named the reason then."""
        found = self._files.get(file)
        if found is None:
            data = self._reader.whole(file)
            if data is None:
                return None
            try:
                found = self._files[file] = TensorFile(self._reader.folder / file, data)
            except FileNotFoundError:  # removed by thinning a moment ago
                self._reader.refresh()
                return None
            except (OSError, ValueError) as error:
                self._reader.report(file, str(error))
                return None
            while len(self._files) > _FILES_KEPT_OPEN:
                self._reader.forget(self._files.popitem(last=False)[0])
        self._files.move_to_end(file)
        return found


def tensor(file: RawOfStep | None, step: Step, keys: Collection[int], sample: int | None) -> np.ndarray | None:
    """Raw values at a step; None if the step has none of this tensor."""
    key = next((key for key in keys if file is not None and key in file.entries), None)
    if file is None or key is None:
        return None
    if sample is None:
        return file.array(key)
    kept = file.samples.get(key)
    if kept is None:
        raise LookupFailed("This tensor has no samples: it is kept as one tensor. Leave out sample=.")
    if sample not in kept:
        raise ValueNotKept(f"Of step {step.number}, the samples {_list(kept)} were kept raw, not {sample!r}.")
    return file.array(key, kept.index(sample))


def graph(reader: RankReader, graph_hash: str, data: memoryview) -> dict[str, Any]:
    """A dependency graph, as plain data."""
    found = load(bytes(data))
    if found is None or not all(isinstance(found.get(part, []), list) for part in ("nodes", "edges")):
        raise ValueNotKept(f"{reader.folder / paths.graph_name(graph_hash)} is damaged: it holds no graph.")
    return found


def row(batch: pa.RecordBatch | None, keys: Collection[int]) -> dict[str, Any] | None:
    """The row of a tensor in what a step added to a table; arrays where the table has lists."""
    if batch is None:
        return None
    rows = np.flatnonzero(np.isin(to_numpy(batch.column(batch.schema.names.index("key"))), list(keys)))
    if not len(rows):
        return None
    found = int(rows[0])
    return {name: _plain(batch.column(n)[found]) for n, name in enumerate(batch.schema.names)}


def statistics(found: Mapping[str, Any]) -> dict[str, float]:
    return {name: x for name, x in found.items() if name not in NO_STATISTICS and isinstance(x, (int, float))}


def histogram(found: Mapping[str, Any]) -> Histogram:
    counts = np.zeros(HISTOGRAM_BINS, np.int64)
    counts[found["hist_first"] : found["hist_first"] + len(found["hist"])] = found["hist"]
    return Histogram(np.array(histogram_edges()), counts)


def samples(found: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: found[name] for name in ("sample", *SAMPLE) if name in found}


def units(found: Mapping[str, Any]) -> dict[str, np.ndarray]:
    shape = tuple(found["unit_shape"].tolist())
    return {name: found[name].reshape(shape) for name in UNIT if name in found}


def why_not_kept(reader: RankReader, node: str, step: Step, what: str) -> ValueNotKept:
    """An error for something of a recorded step that is not there."""
    seen = f"Of {node!r} there are no {what} at step {step.number}"
    damage = [str(problem) for problem in reader.problems if problem.step in (step.number, -1)]
    if what == "raw values" and step.raw_file and step.raw_file not in reader.contents.files and not damage:
        return ValueNotKept(f"{seen}: they were removed to stay within max_bytes.")
    if damage:
        return ValueNotKept(f"{seen}. Something is damaged: {'; '.join(damage[:3])}.")
    if what == "raw values":
        kept = f"samples {_list(step.raw_samples)}" if step.raw_samples else "nothing"
        return ValueNotKept(f"{seen}. Kept raw at this step: {kept}.")
    return ValueNotKept(f"{seen}.")


def _list(values: Sequence[int]) -> str:
    shown = ", ".join(map(str, values[:_MOST_SHOWN]))
    return shown + (f", … ({len(values)} in all)" if len(values) > _MOST_SHOWN else "")


def _plain(value: pa.Scalar) -> Any:
    if pa.types.is_list(value.type):
        return np.array(to_numpy(value.values))
    return value.as_py()

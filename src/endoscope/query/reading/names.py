"""Names of tensors as columns, for tables that refer to tensors by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from endoscope.query import arrays
from endoscope.schema.recording import Key

_TEXTS = ("node", "role", "of", "kind", "dtype", "module", "source")


class Names:
    """One row per tensor that was ever recorded."""

    def __init__(self, keys: dict[int, Key]) -> None:
        self._place = np.full(max(keys, default=-1) + 1, -1, np.int64)
        self._place[list(keys)] = np.arange(len(keys))
        self._columns = {name: arrays.dictionary([getattr(key, name) for key in keys.values()]) for name in _TEXTS}
        self._columns["pass"] = arrays.numbers(np.array([key.pass_ for key in keys.values()], np.int32))
        self._columns["batch_dim"] = arrays.numbers(np.array([key.batch_dim for key in keys.values()], np.int32))
        self._shapes = [key.shape for key in keys.values()]

    def columns(self, numbers: np.ndarray, names: Sequence[str]) -> dict[str, pa.Array]:
        """Some columns for tensors that are given by their numbers; null where a name is lost to damage."""
        rows = np.full(len(numbers), -1, np.int64)
        known = numbers < len(self._place)
        rows[known] = self._place[numbers[known]]
        valid, rows = rows >= 0, np.maximum(rows, 0)
        return {
            name: self._shape(rows, valid) if name == "shape" else arrays.take(self._columns[name], rows, valid)
            for name in names
        }

    def _shape(self, rows: np.ndarray, valid: np.ndarray) -> pa.Array:
        shapes = [self._shapes[row] if there else () for row, there in zip(rows.tolist(), valid.tolist(), strict=True)]
        sizes = np.array([size for shape in shapes for size in shape], np.int32)
        return arrays.lists(np.array([len(shape) for shape in shapes], np.int64), sizes, valid)

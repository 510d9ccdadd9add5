"""Statistics of many tensors over all steps: one matrix for each statistic, read when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from endoscope.query.bulk import Matrix
from endoscope.schema.recording import Key


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor over all steps; its shape may change with the batch."""

    row: int
    key: Key  # with the shape that it had first

    @property
    def node(self) -> str:
        return self.key.node

    @property
    def place(self) -> tuple[str, str, int]:
        """How the graph knows it."""
        return self.key.node, self.key.role, self.key.pass_

    @property
    def is_matrix(self) -> bool:
        """Weights have two dimensions or more; biases and scales of normalisations have one."""
        return len(self.key.shape) >= 2

    @property
    def is_float(self) -> bool:
        return "float" in self.key.dtype


class Rows:
    """All tensors of one sort (values, parameters, updates, gradients of a loss)."""

    def __init__(self, keys: dict[int, Key], steps: int, read: Callable[[str], Matrix], asked: set[str]) -> None:
        """Names of statistics that somebody asks for are added to `asked`."""
        self._read = read
        self._asked = asked
        self._steps = steps
        self._cache: dict[str, np.ndarray] = {}
        self.tensors: list[Tensor] = []
        self.row_of_key: dict[int, int] = {}
        self.row_of: dict[tuple[str, str, int], int] = {}
        for number, key in keys.items():
            place = (key.node, key.role, key.pass_)
            if place not in self.row_of:
                self.row_of[place] = len(self.tensors)
                self.tensors.append(Tensor(len(self.tensors), key))
            self.row_of_key[number] = self.row_of[place]

    def __len__(self) -> int:
        return len(self.tensors)

    def __getitem__(self, statistic: str) -> np.ndarray:
        """float32[tensors, steps]; NaN where a step has no such tensor."""
        self._asked.add(statistic)
        if statistic not in self._cache:
            self._cache[statistic] = self._matrix(statistic)
        return self._cache[statistic]

    @property
    def there(self) -> np.ndarray:
        """bool[tensors, steps]: which step has which tensor."""
        return np.asarray(~np.isnan(self["count"]))

    def zero_share(self) -> np.ndarray:
        """Share of elements that are zero."""
        return np.asarray(self["zeros"] / np.maximum(self["count"], 1))

    def rows(self, keep: Callable[[Tensor], bool]) -> np.ndarray:
        """Numbers of the rows of some tensors."""
        return np.array([tensor.row for tensor in self.tensors if keep(tensor)], np.int64)

    def _matrix(self, statistic: str) -> np.ndarray:
        result = np.full((len(self.tensors), self._steps), np.nan, np.float32)
        if not self.tensors:
            return result
        found = self._read(statistic)
        mine = [place for place, key in enumerate(found.keys.tolist()) if key in self.row_of_key]
        rows = np.array([self.row_of_key[int(found.keys[place])] for place in mine])
        _, first = np.unique(rows, return_index=True)
        places = np.array(mine)
        result[rows[first]] = found.values[places[first]]
        for other in np.setdiff1d(np.arange(len(rows)), first).tolist():  # the same tensor with another shape
            values = found.values[places[other]]
            result[rows[other]] = np.where(np.isnan(values), result[rows[other]], values)
        return result

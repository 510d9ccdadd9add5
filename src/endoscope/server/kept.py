"""What was worked out last, up to a number of bytes: one statistic of all tensors at all steps, and layers × steps."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from endoscope.query import bulk, layers
from endoscope.query.recording import Recording

_MOST_BYTES = 48 << 20  # a thousand tensors and a thousand steps are four megabytes


class Kept:
    """May be shared by threads. A trial that has grown needs new ones."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # layers are made of matrices
        #: The last one that was asked for stands at the end.
        self._kept: OrderedDict[tuple[object, ...], tuple[Any, ...]] = OrderedDict()
        self._bytes = 0

    def matrix(self, recording: Recording, of: str, statistic: str) -> bulk.Matrix:
        key = (recording, recording.tables.state, of, statistic)
        found = self._get(key, lambda: bulk.matrix(recording, of, statistic))
        return bulk.Matrix(*found)

    def layers(self, recording: Recording, of: str, statistic: str, rows: str) -> layers.Layers:
        key = (recording, recording.tables.state, of, statistic, rows)
        found = self._get(key, lambda: layers.layers(recording, of, statistic, rows, self.matrix))
        return layers.Layers(*found)

    def _get(self, key: tuple[object, ...], make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = make()
                self._bytes += _bytes_of(found)
                while self._bytes > _MOST_BYTES and len(self._kept) > 1:
                    self._bytes -= _bytes_of(self._kept.popitem(last=False)[1])
            else:
                self._kept.move_to_end(key)
            return found


def _bytes_of(arrays: tuple[Any, ...]) -> int:
    return sum(array.nbytes for array in arrays)

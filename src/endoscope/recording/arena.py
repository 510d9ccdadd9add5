"""Memory for raw values that is used again at every step: the pages of fresh memory cost more than the copying.

RawCollector copies into an arena ─► the writer thread writes it ─► give_back ─► the next step
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

_ALIGNMENT = 64
_SMALLEST_BLOCK = 2**20
_MOST_KEPT = 2  # one that is being filled, one that is being written


class Arena:
    """Blocks of memory that are handed out piece by piece and taken back all at once."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray[Any, Any]] = []
        self._used = 0  # bytes of the last block
        self._before = 0  # bytes that were used of the others

    def piece(self, size: int) -> np.ndarray[Any, Any]:
        """So many bytes, still to be written."""
        if not self._blocks or self._used + size > len(self._blocks[-1]):
            self._before += self._used
            self._blocks.append(np.empty(max(size, self._before // 2, _SMALLEST_BLOCK), np.uint8))
            self._used = 0
        start = self._used
        self._used = -(-(start + size) // _ALIGNMENT) * _ALIGNMENT
        return self._blocks[-1][start : start + size]

    def clear(self) -> None:
        """Nobody reads what was written: all of it is free, in one block the next time."""
        if len(self._blocks) > 1:
            needed = self._before + self._used
            self._blocks.clear()  # before more is asked for
            self._blocks.append(np.empty(needed, np.uint8))
        self._used = self._before = 0


class Arenas:
    """Those that are free. The training thread takes, the writer thread gives back."""

    def __init__(self) -> None:
        self._free: deque[Arena] = deque(maxlen=_MOST_KEPT)

    def take(self) -> Arena:
        try:
            return self._free.pop()
        except IndexError:
            return Arena()

    def give_back(self, arena: Arena) -> None:
        arena.clear()
        self._free.append(arena)

    def drop(self) -> None:
        self._free.clear()

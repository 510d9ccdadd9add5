"""Memory for raw values that is used again at every step: the pages of fresh memory cost more than the copying.

RawCollector copies into an arena ─► the writer thread writes it ─► give_back ─► its blocks serve the next steps

Arenas share their blocks. While one is being written the next one is filled with blocks that were free, and takes those
of the first when they come back: together they need little more memory than one.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_ALIGNMENT = 64
_BLOCK = 4 * 2**20
_KEPT = 1.25  # times what an arena used: so much is kept for the next ones

_Block = np.ndarray[Any, Any]
_NOTHING: _Block = np.empty(0, np.uint8)


class Arena:
    """Blocks of memory that are handed out piece by piece and taken back all at once."""

    def __init__(self, pool: Arenas) -> None:
        self._pool = pool
        self.blocks: list[_Block] = []
        self._rest = _NOTHING  # what is free of the last block

    def piece(self, size: int) -> _Block:
        """So many bytes, still to be written."""
        if size > len(self._rest):
            self._rest = self._pool.block(size)
            self.blocks.append(self._rest)
        piece = self._rest[:size]
        self._rest = self._rest[-(-size // _ALIGNMENT) * _ALIGNMENT :]
        return piece

    def clear(self) -> list[_Block]:
        """Nobody reads what was written: its blocks are free."""
        blocks, self.blocks, self._rest = self.blocks, [], _NOTHING
        return blocks


class Arenas:
    """The blocks that are free. The training thread takes, the writer thread gives back."""

    def __init__(self) -> None:
        self._free: list[_Block] = []
        self._lock = threading.Lock()
        self._dropped = False

    def take(self) -> Arena:
        return Arena(self)

    def block(self, size: int) -> _Block:
        """The smallest free one that is large enough, or a new one."""
        with self._lock:
            fitting = [number for number, block in enumerate(self._free) if len(block) >= size]
            if fitting:
                return self._free.pop(min(fitting, key=lambda number: len(self._free[number])))
        memory = np.empty(max(size, _BLOCK) + _ALIGNMENT, np.uint8)
        start = -memory.__array_interface__["data"][0] % _ALIGNMENT
        return memory[start : start + max(size, _BLOCK)]

    def give_back(self, arena: Arena) -> None:
        blocks = arena.clear()
        if not blocks:
            return
        enough = _KEPT * sum(map(len, blocks))
        with self._lock:
            self._free += blocks
            while self._free and (self._dropped or sum(map(len, self._free)) > enough):
                self._free.pop(0)

    def drop(self) -> None:
        """Nothing more will be asked for."""
        with self._lock:
            self._dropped = True
            self._free.clear()

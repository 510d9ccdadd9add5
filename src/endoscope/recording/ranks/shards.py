"""Which elements of a whole tensor a shard has: for each dimension the intervals that are here.

sizes (18, 6), mesh (2, 2), at (1, 0), placements (strided shard of dimension 0, shard of dimension 0)
      ─► [[[5, 4]], [[0, 6]]]     rows 5 to 8, all columns
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Intervals = list[list[int]]  # [start, length]


def intervals_of(
    sizes: Sequence[int], mesh: Sequence[int], at: Sequence[int], placements: Sequence[Any]
) -> list[Intervals]:
    """For each dimension of the whole, what the process at this place of the mesh has."""
    return [_intervals(_along(dim, size, mesh, at, placements)) for dim, size in enumerate(sizes)]


def _along(dim: int, size: int, mesh: Sequence[int], at: Sequence[int], placements: Sequence[Any]) -> np.ndarray:
    """The places along one dimension, in the order in which they lie in the shard."""
    here = np.arange(size)
    sharding = [n for n, one in enumerate(placements) if _dim(one) == dim]
    strided = [n for n in sharding if _is_strided(placements[n])]
    plain = [n for n in sharding if n not in strided]
    if strided and all(_split(placements[n]) == math.prod(mesh[o] for o in plain if o > n) for n in strided):
        # `fully_shard` divides what tensor parallelism has divided before.
        for n in [*plain, *reversed(strided)]:
            here = _chunk(here, mesh[n], at[n])
        return here
    for n in sharding:
        if n in strided:
            pieces = [_chunk(here, _split(placements[n]), piece) for piece in range(_split(placements[n]))]
            here = np.concatenate([_chunk(piece, mesh[n], at[n]) for piece in pieces])
        else:
            here = _chunk(here, mesh[n], at[n])
    return here


def _dim(placement: Any) -> int:
    return getattr(placement, "dim", -1)


def _is_strided(placement: Any) -> bool:
    return hasattr(placement, "split_factor")


def _split(placement: Any) -> int:
    return int(placement.split_factor)


def _chunk(here: np.ndarray, count: int, number: int) -> np.ndarray:
    """As torch divides: all chunks are as large as the first one, but for the last ones."""
    size = -(-len(here) // count)
    return here[number * size : (number + 1) * size]


def _intervals(here: np.ndarray) -> Intervals:
    if not len(here):
        return []
    starts = np.flatnonzero(np.diff(here, prepend=here[0] - 2) != 1)
    ends = np.append(starts[1:], len(here))
    return [[int(here[start]), int(end - start)] for start, end in zip(starts, ends, strict=True)]

"""Which elements a shard has, against what torch gives each process."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from endoscope.recording.ranks.shards import intervals_of


def places(intervals: list[list[int]]) -> list[int]:
    return [place for start, length in intervals for place in range(start, start + length)]


@pytest.mark.parametrize("size", [0, 1, 3, 7, 8, 64])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_chunks_are_those_of_torch(size: int, count: int) -> None:
    whole = torch.arange(size)
    chunks = [*whole.chunk(count), *[whole[:0]] * count][:count] if size else [whole] * count
    for number, chunk in enumerate(chunks):
        found = intervals_of((2, size), (count,), (number,), (Shard(1),))
        assert places(found[0]) == [0, 1] and places(found[1]) == chunk.tolist()


@pytest.mark.parametrize(
    "placements",
    [
        (Shard(0), Shard(1)), (Shard(0), Shard(0)), (Shard(1), Shard(1)), (Replicate(), Shard(0)),
        (Partial(), Shard(1)),
        (_StridedShard(0, split_factor=3), Shard(0)), (_StridedShard(1, split_factor=2), Replicate()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(12, 12), (6, 24)])
def test_shards_in_two_dimensions_are_disjoint_and_whole(placements: Any, shape: tuple[int, int]) -> None:
    whole, mesh = np.arange(np.prod(shape)).reshape(shape), (2, 3)
    parts = {}
    for at in itertools.product(range(2), range(3)):
        one = whole
        for size, number, placement in zip(mesh, at, placements, strict=True):
            if hasattr(placement, "dim"):
                pieces, _ = placement._split_tensor(torch.from_numpy(one.copy()), size, with_padding=False)
                one = pieces[number].numpy()
        intervals = intervals_of(shape, mesh, at, placements)
        found = whole[np.ix_(*(places(one) for one in intervals))]
        assert np.array_equal(found, one)
        parts[at] = found
    copies = np.prod([size for size, one in zip(mesh, placements, strict=True) if not hasattr(one, "dim")])
    assert sum(part.size for part in parts.values()) == copies * whole.size


def test_what_fully_shard_divides_was_divided_by_tensor_parallelism_before() -> None:
    """Also where it does not divide evenly: then torch's own description of the strided shard differs."""
    rows = [
        places(intervals_of((18,), (2, 2), at, (_StridedShard(0, split_factor=2), Shard(0)))[0])
        for at in itertools.product(range(2), range(2))
    ]
    assert rows == [list(range(5)), list(range(9, 14)), list(range(5, 9)), list(range(14, 18))]

"""What the tensors of several ranks are to each other, and how they make up a whole.

    placement of each rank (store/FORMAT.md) ─► pieces: what lies on which ranks ─► the whole, or why there is none

Ranks that differ only along dimensions of the mesh that replicate have the same piece. Along `batch` the pieces are of
other samples, along `shard` they are other parts of one tensor, along `partial` they are summands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from endoscope.schema.recording import OF_THIS_RANK, USED, Key
from endoscope.store.membership import Membership, Mesh
from endoscope.store.sealed import load

REPLICATE, SHARD, BATCH, LOCAL, PARTIAL = "replicate", "shard", "batch", "local", "partial"

UNTIED = "nothing says how the tensors of this name on several ranks belong together"
IS_LOCAL = "each rank has one of its own"
IS_PARTIAL = (
    "each rank has a summand of it, and the statistics of summands do not tell those of the sum; recording.tensor(…) "
    "adds up what was kept raw"
)
BAD_SHARDS = "the parts that the ranks have do not make up a whole"

Intervals = tuple[tuple[tuple[int, int], ...], ...]  # for each dimension (start, length), as they lie in the part


class Piece(NamedTuple):
    """A part of the whole, and the ranks that have it: the first is asked, the others must agree."""

    ranks: tuple[int, ...]
    shape: tuple[int, ...]  # of all pieces of the same samples, put together
    batch: int = 0  # which samples: pieces with the same number are of the same ones
    summand: int = 0
    intervals: Intervals | None = None  # where it lies among these; None: it is all of them


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the tensors of several ranks make up one."""

    key: Key  # of the whole
    ranks: tuple[int, ...]  # that have to be there
    pieces: tuple[Piece, ...] = ()
    reason: str = ""  # why there is no whole; empty if there is one
    sum_of: str = ""  # "sum", "avg", …: pieces with other `summand` are put together so, element by element


class _Placed(NamedTuple):
    """A placement, with the mesh that it speaks of."""

    mesh: Mesh
    over: tuple[str, ...]
    shape: tuple[int, ...]
    parts: Intervals | None


def places_in(intervals: tuple[tuple[int, int], ...]) -> np.ndarray:
    """The places along one dimension that intervals list."""
    return np.concatenate([np.empty(0, np.int64), *(np.arange(start, start + n) for start, n in intervals)])


def arrange(keys: Mapping[int, Key], members: Mapping[int, Membership], holders: tuple[int, ...]) -> Arrangement:
    """How the tensors of some ranks, all of one name, make up a whole.

    `holders` are the ranks that have ever had a tensor of this name; a rank without a placement may have others.
    """
    first = next(iter(keys.values()))
    if not any(key.placement for key in keys.values()):
        if len(holders) == 1:
            return Arrangement(first, holders, (Piece(holders, first.shape),))
        return Arrangement(first, holders, reason=UNTIED)
    found = {rank: _placed(key, members.get(rank)) for rank, key in keys.items()}
    placed = {rank: one for rank, one in found.items() if one is not None}
    leader = next(iter(placed.values()), None)
    tied = len(placed) == len(keys) and leader is not None
    if leader is None or not tied or any(_differ(one, leader) for one in placed.values()):
        return Arrangement(first, holders, reason=UNTIED)
    if not set(keys) <= set(leader.mesh.ranks):
        return Arrangement(first, tuple(sorted({*leader.mesh.ranks, *keys})), reason=UNTIED)
    return _on_mesh(keys, placed, leader)


def _on_mesh(keys: Mapping[int, Key], placed: Mapping[int, _Placed], leader: _Placed) -> Arrangement:
    mesh, first = leader.mesh, next(iter(keys.values()))
    ranks = tuple(sorted(mesh.ranks))
    words = [word if size > 1 else REPLICATE for word, size in zip(leader.over, mesh.shape, strict=True)]
    kinds = [word.partition(":")[0] for word in words]
    if any(kind not in (REPLICATE, SHARD, BATCH, PARTIAL) for kind in kinds):
        return Arrangement(first, ranks, reason=IS_LOCAL)
    pieces = _pieces(placed, mesh, kinds)
    arrangement = Arrangement(first, ranks, pieces)
    if SHARD in leader.over and set(placed) == set(ranks) and not _tile(pieces):
        return replace(arrangement, reason=BAD_SHARDS)
    if PARTIAL in kinds:
        ways = {word.partition(":")[2] for word, kind in zip(words, kinds, strict=True) if kind == PARTIAL}
        arrangement = replace(arrangement, reason=IS_PARTIAL, sum_of=ways.pop() if len(ways) == 1 else "")
    return replace(arrangement, key=_whole_key(first, arrangement, BATCH in kinds))


def _pieces(placed: Mapping[int, _Placed], mesh: Mesh, kinds: list[str]) -> tuple[Piece, ...]:
    found = _together(mesh, tuple(kinds), tuple(sorted(placed)))
    leaders = [placed[ranks[0]] for ranks, _, _ in found]
    return tuple(
        Piece(ranks, leader.shape, batch, summand, leader.parts)
        for leader, (ranks, batch, summand) in zip(leaders, found, strict=True)
    )


@lru_cache(1024)
def _together(
    mesh: Mesh, kinds: tuple[str, ...], there: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], int, int], ...]:
    """Ranks with the same piece, by where they stand along the dimensions that do not replicate; batch, summand."""
    places = np.array(np.unravel_index(np.arange(len(mesh.ranks)), mesh.shape)).T.tolist()
    number = dict(zip(mesh.ranks, places, strict=True))
    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for rank in there:
        at = [tuple(place for place, kind in zip(number[rank], kinds, strict=True) if kind == what) for what in
              (BATCH, SHARD, PARTIAL)]  # fmt: skip
        groups.setdefault(tuple(at), []).append(rank)
    batches = sorted({at[0] for at in groups})
    summands = sorted({at[2] for at in groups})
    return tuple((tuple(ranks), batches.index(at[0]), summands.index(at[2])) for at, ranks in sorted(groups.items()))


def _tile(pieces: tuple[Piece, ...]) -> bool:
    """Whether the shards of the same samples have as many elements as all of these, and lie inside of it."""
    missing: dict[tuple[int, int], int] = {}
    for piece in pieces:
        intervals = piece.intervals or ()
        ends = [max((start + length for start, length in dim), default=0) for dim in intervals]
        if len(ends) != len(piece.shape) or any(end > size for end, size in zip(ends, piece.shape, strict=True)):
            return False
        size = math.prod(sum(length for _, length in dim) for dim in intervals)
        which = (piece.batch, piece.summand)
        missing[which] = missing.get(which, math.prod(piece.shape)) - size
    return not any(missing.values())


def _whole_key(first: Key, arrangement: Arrangement, is_joined: bool) -> Key:
    """Of batches side by side; of a number that each batch has, as many as there are batches.

    Summands of the gradient that ranks have computed are, added up, what the optimizer uses.
    """
    shapes = list({piece.batch: piece.shape for piece in arrangement.pieces}.values())
    shape = shapes[0]
    if is_joined and first.batch_dim in range(len(shape)):
        dim = first.batch_dim
        shape = (*shape[:dim], sum(one[dim] for one in shapes), *shape[dim + 1 :])
    elif is_joined:
        shape = (len(shapes), *shape)
    of = USED if first.of == OF_THIS_RANK and arrangement.reason == IS_PARTIAL else first.of
    return replace(first, of=of, shape=shape, placement="")


def _differ(one: _Placed, other: _Placed) -> bool:
    return (one.mesh.ranks, one.mesh.shape, one.over) != (other.mesh.ranks, other.mesh.shape, other.over)


def _placed(key: Key, member: Membership | None) -> _Placed | None:
    """None if the placement says nothing that can be used."""
    found = _parsed(key.placement)
    if found is None or member is None or not found.mesh < len(member.meshes):
        return None
    mesh = member.meshes[found.mesh]
    if len(found.over) != len(mesh.shape):
        return None
    shape = key.shape if found.shape is None else found.shape
    return _Placed(mesh, found.over, shape, found.parts)


class _Parsed(NamedTuple):
    """What the text of a placement says."""

    mesh: int
    over: tuple[str, ...]
    shape: tuple[int, ...] | None
    parts: Intervals | None


@lru_cache(65536)  # most tensors have one of a few
def _parsed(text: str) -> _Parsed | None:
    found = load(text) if text else None
    if found is None:
        return None
    try:
        mesh, over = _whole(found["mesh"]), tuple(str(word) for word in found["over"])
        if SHARD not in over:
            return _Parsed(mesh, over, None, None)
        parts = tuple(tuple((_whole(start), _whole(length)) for start, length in dim) for dim in found["parts"])
        return _Parsed(mesh, over, tuple(map(_whole, found["shape"])), parts)
    except (KeyError, TypeError, ValueError):
        return None


def _whole(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no place")
    return number

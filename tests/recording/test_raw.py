"""Memory for raw values: pieces never overlap, blocks are used again, and little more is held than was needed."""

import itertools

import numpy as np

from endoscope.recording.raw import Arenas


def _addresses(pieces: list[np.ndarray]) -> list[tuple[int, int]]:
    return sorted((piece.ctypes.data, piece.ctypes.data + len(piece)) for piece in pieces)


def test_pieces_are_aligned_and_apart() -> None:
    arena = Arenas().take()
    pieces = [arena.piece(size) for size in (1, 63, 64, 65, 5_000_000, 3_000_000, 0, 12)]
    assert [len(piece) for piece in pieces] == [1, 63, 64, 65, 5_000_000, 3_000_000, 0, 12]
    places = [place for place in _addresses(pieces) if place[0] != place[1]]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(places))
    assert all(start % 64 == 0 for start, _ in places)


def test_blocks_that_came_back_are_used_again() -> None:
    pool = Arenas()
    first = pool.take()
    before = {first.piece(3_000_000).ctypes.data for _ in range(10)}
    pool.give_back(first)
    second = pool.take()
    assert {second.piece(3_000_000).ctypes.data for _ in range(10)} == before


def test_two_arenas_share_what_is_free() -> None:
    pool = Arenas()
    first, second = pool.take(), pool.take()
    before = {first.piece(3_000_000).ctypes.data for _ in range(10)}
    begun = second.piece(3_000_000).ctypes.data
    assert begun not in before
    pool.give_back(first)
    assert {second.piece(3_000_000).ctypes.data for _ in range(10)} <= before


def test_after_a_large_step_little_is_kept() -> None:
    pool = Arenas()
    for count in (40, 2):
        arena = pool.take()
        for _ in range(count):
            arena.piece(3_000_000)
        pool.give_back(arena)
    assert sum(map(len, pool._free)) <= 1.25 * 2 * 4 * 2**20


def test_nothing_is_kept_at_the_end() -> None:
    pool = Arenas()
    arena = pool.take()
    arena.piece(10)
    pool.drop()
    pool.give_back(arena)
    assert not pool._free

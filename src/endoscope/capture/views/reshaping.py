"""How a reshape cuts a tensor, told without the sizes that depend on the batch.

`view(8, 10, 12, 64)` of an (8, 10, 768) tensor is: one dimension falls into pieces of 64. Neither the batch of 8 nor
the length of 10 matters, the 12 follows from the 64, and `view(8, 10, -1, 64)` is the same.
"""

from __future__ import annotations

from collections.abc import Sequence


def cuts(before: Sequence[int], after: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """For each dimension, or neighbours merged into one, that is cut: the sizes of the pieces, but for the first.

    The dimensions around the very first hold the batch and are left out: `(T * B, C)` may become `(T, B, C)`. So are
    sizes of 1, which could belong to any neighbour.
    """
    if 0 in before or 0 in after:
        return ()
    rest = [size for size in reversed(after) if size != 1]
    found: list[tuple[int, ...]] = []
    start, elements, made = 0, 1, 1
    pieces: list[int] = []
    for dimension, size in enumerate(before):
        if size == 1:
            continue
        start = dimension if not pieces and elements == 1 else start
        elements *= size
        while rest and made < elements:
            pieces.append(rest.pop())
            made *= pieces[-1]
        if made == elements:
            if start > 0 and len(pieces) > 1:
                found.append(tuple(pieces[1:]))
            elements, made, pieces = 1, 1, []
    return tuple(found)

"""How reshapes cut, for every batch size alike."""

from __future__ import annotations

import pytest

from endoscope.capture.views.reshaping import cuts


@pytest.mark.parametrize("batch", [1, 2, 3, 12, 64])
@pytest.mark.parametrize("length", [1, 5, 12])
def test_the_batch_and_the_length_do_not_matter(batch: int, length: int) -> None:
    assert cuts((batch, length, 768), (batch, length, 12, 64)) == ((64,),)
    assert cuts((batch, length, 12, 64), (batch, length, 768)) == ()
    assert cuts((length, batch, 16), (length, batch * 4, 4)) == ((4,),)
    assert cuts((batch * length, 16), (length, batch, 16)) == ()
    assert cuts((batch, 48), (batch, 3, 4, 4)) == ((4, 4),)
    assert cuts((batch, 48), (batch * 48,)) == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((2, 768), (2, 6, 128), ((128,),)),
        ((2, 6, 8), (2, 4, 12), ((12,),)),
        ((2, 6, 8), (2, 2, 3, 8), ((3,),)),
        ((2, 6, 8), (2, 2, 3, 4, 2), ((3,), (2,))),
        ((2, 3), (2, 3), ()),
        ((), (1, 1), ()),
        ((0, 6), (0, 2, 3), ()),
        ((4,), (2, 2), ()),
        ((7, 1, 6), (7, 1, 2, 1, 3), ((3,),)),
    ],
)
def test_pieces(before: tuple[int, ...], after: tuple[int, ...], expected: tuple[tuple[int, ...], ...]) -> None:
    assert cuts(before, after) == expected

"""Which tensors of a step are the same in all processes of a tensor-parallel group."""

from __future__ import annotations

import pytest

from endoscope.recording.ranks.copies import copies_among

#: input 0 ─► norm 1 ─► up 2 ─► act 3 ─► down 4 ─► sum 5 ◄─ 0;  5 ─► loss 6
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (5, 6)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({2: True, 4: False}, {0, 1, 5, 6}),  # the layer that adds up says that all have the same again
        ({2: True}, {0, 1}),  # somebody adds up by hand: nothing below is known
        ({}, {0, 1, 2, 3, 4, 5, 6}),
        ({0: True, 6: False}, set()),
    ],
)
def test_nothing_divided_leads_to_a_copy(said: dict[int, bool], expected: set[int]) -> None:
    assert copies_among(range(7), said, EDGES) == expected


def test_a_loop_ends() -> None:
    assert copies_among(range(3), {0: True}, [(0, 1), (1, 2), (2, 1)]) == set()


def test_only_the_wanted_places() -> None:
    assert copies_among(range(5, 7), {2: True, 4: False}, EDGES) == {5, 6}

"""Which type the next step is guessed to have, where several optimizers take turns."""

from __future__ import annotations

import pytest

from endoscope.recording.steps.optimizers import UNCERTAIN_STEPS, Turns


def guessed(came: list[str]) -> list[str]:
    turns, found = Turns(), []
    for type_ in came:
        found.append(turns.next())
        turns.came(type_)
    return found


@pytest.mark.parametrize("cycle", [["c", "g"], ["c"] * 5 + ["g"], ["a", "a", "b", "c"]])
def test_after_one_cycle_all_are_guessed(cycle: list[str]) -> None:
    assert guessed(cycle * 3)[len(cycle) + 1 :] == (cycle * 3)[len(cycle) + 1 :]


def test_a_single_optimizer_has_no_type() -> None:
    assert guessed([""] * 20) == [""] * 20


def test_the_first_of_each_type_is_not_guessed_to_be_one_more_of_the_type_before() -> None:
    assert guessed(["c"] * 5 + ["g"]) == [""] * 6


def test_what_has_come_very_often_is_guessed_to_come_again() -> None:
    assert set(guessed(["c"] * 100)[UNCERTAIN_STEPS + 1 :]) == {"c"}


def test_after_a_row_of_another_length_the_new_one_counts() -> None:
    turns = Turns()
    for type_ in "ccgcccg":
        turns.came(type_)
    found = []
    for type_ in "cccg":
        found.append(turns.next())
        turns.came(type_)
    assert found == ["c", "c", "c", "g"]

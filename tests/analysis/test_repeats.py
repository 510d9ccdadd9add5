"""Back-to-back repeats, against a search that tries every period at every place."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from endoscope.analysis.recurrence.repeats import find_runs, fold

WORDS = st.text(alphabet="abc", max_size=12)


def linked(starts: list[int]) -> list[bool]:
    return [True] * (len(starts) - 2)


def folded(word: str) -> list[tuple[str, int]]:
    return [
        ("".join(word[n] for n in one.body), one.passes)
        for one in fold(range(len(word)), list(map(ord, word)), len(word), linked)
    ]


def has_square(word: str) -> bool:
    return any(
        word[start : start + period] == word[start + period : start + 2 * period]
        for period in range(1, len(word) // 2 + 1)
        for start in range(len(word) - 2 * period + 1)
    )


@settings(max_examples=500)
@given(WORDS)
def test_something_is_folded_if_something_repeats(word: str) -> None:
    assert bool(folded(word)) == has_square(word)


@settings(max_examples=500)
@given(WORDS)
def test_what_is_folded_together_is_equal_and_each_part_is_folded_once(word: str) -> None:
    gone: set[int] = set()
    for one in fold(range(len(word)), list(map(ord, word)), len(word), linked):
        assert all(word[n] == word[like] for n, like in one.twins.items())
        assert gone.isdisjoint(one.twins) and gone.isdisjoint(one.body)
        gone |= one.twins.keys()


@settings(max_examples=500)
@given(WORDS)
def test_runs_repeat_and_are_as_long_as_they_can_be(word: str) -> None:
    for start, period, stop in find_runs(word):
        assert stop - start >= 2 * period
        assert all(word[n] == word[n - period] for n in range(start + period, stop))
        assert stop == len(word) or word[stop] != word[stop - period]


def test_inner_loops_are_folded_before_outer_ones() -> None:
    assert folded("scctscctscctu") == [("c", 2), ("c", 2), ("c", 2), ("sct", 3)]
    assert folded("ababcdcdababcdcd") == [("ab", 2), ("cd", 2), ("ab", 2), ("cd", 2), ("abcd", 2)]


def test_a_body_in_which_every_part_runs_twice() -> None:
    assert folded("abacbcabacbc") == [("abacbc", 2)]


def test_the_first_and_the_last_pass_may_skip_something() -> None:
    (one,) = fold(range(10), list(map(ord, "xzxyzxyzxz")), 10, linked)
    assert one.passes == 4
    assert {*one.body, *one.twins} == set(range(10))


def test_a_run_is_cut_where_passes_do_not_depend_on_each_other() -> None:
    def links(starts: list[int]) -> list[bool]:
        return [start != 6 for start in starts[1:-1]]

    folds = fold(range(12), [0, 1] * 6, 12, links)
    assert [(one.body, one.passes) for one in folds] == [([0, 1], 3), ([6, 7], 3)]


def test_nothing() -> None:
    assert folded("") == [] and find_runs([]) == []

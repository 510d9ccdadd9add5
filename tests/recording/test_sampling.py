"""Which samples are kept raw: valid, few enough, the worst first, balanced, and the same every time."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.errors import BadArgument
from endoscope.recording.output.raw import choose


def test_without_categories_the_first_ones() -> None:
    assert choose(10, 3) == (0, 1, 2)
    assert choose(2, 5) == (0, 1)
    assert choose(10, 0) == choose(0, 3) == choose(10, -1) == ()


def test_the_worst_come_first() -> None:
    assert choose(10, 3, worst=[7, 4]) == (0, 4, 7)
    assert choose(10, 2, worst=[7, 4, 5]) == (4, 7)
    assert choose(10, 2, worst=[7, 7, 99, -1]) == (7, 9)
    assert choose(10, 2, worst=np.array([7, 4])) == (4, 7)


def test_a_category_of_one_sample_among_many() -> None:
    categories = ["common"] * 99 + ["rare"]
    assert choose(100, 2, categories=categories) == (0, 99)
    assert choose(100, 5, categories=categories) == (0, 1, 2, 3, 99)


def test_the_worst_count_for_their_category() -> None:
    assert choose(6, 3, categories=list("aaabbb"), worst=[2, 1]) == (1, 2, 3)


def test_categories_that_came_short_so_far_come_first() -> None:
    assert choose(4, 2, categories=list("abcd"), so_far={"a": 5, "b": 1, "c": 5, "d": 0}) == (1, 3)


def test_over_many_steps_every_category_has_its_turn() -> None:
    """Recorded steps are often multiples of some number: the choice must not follow that rhythm."""
    categories = list("abcdefghij")
    times: Counter[str] = Counter()
    for step in range(0, 10_000, 10):
        times.update(categories[sample] for sample in choose(10, 2, categories=categories, seed=step))
    assert set(times) == set(categories)
    assert max(times.values()) < 1.5 * min(times.values())
    so_far: Counter[str] = Counter()
    for step in range(0, 1000, 10):
        so_far.update(categories[sample] for sample in choose(10, 2, categories=categories, so_far=so_far, seed=step))
    assert set(so_far.values()) == {20}


def test_the_order_of_the_batch_does_not_choose_the_category() -> None:
    for seed in range(20):
        forward = choose(4, 1, categories=list("abcd"), seed=seed)[0]
        backward = choose(4, 1, categories=list("dcba"), seed=seed)[0]
        assert "abcd"[forward] == "dcba"[backward]


def test_any_labels_will_do() -> None:
    assert choose(4, 2, categories=np.array([1, 1, 1, 2])) == (0, 3)
    assert choose(3, 2, categories=[["a"], ["a"], None]) == (0, 2)


def test_one_category_for_each_sample() -> None:
    with pytest.raises(BadArgument, match="categories has 3 entries, and the batch has 4 samples"):
        choose(4, 2, categories=list("abc"))


@given(
    labels=st.lists(st.sampled_from("abcde"), max_size=40),
    count=st.integers(0, 45),
    worst=st.lists(st.integers(-50, 50), max_size=5),
    seed=st.integers(0, 2**40),
)
def test_balanced_valid_and_the_same_every_time(labels: list[str], count: int, worst: list[int], seed: int) -> None:
    state = random.getstate(), np.random.get_state()[1].tolist()
    chosen = choose(len(labels), count, categories=labels, worst=worst, seed=seed)
    assert chosen == choose(len(labels), count, categories=labels, worst=worst, seed=seed)
    assert state == (random.getstate(), np.random.get_state()[1].tolist())

    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) == min(count, len(labels))
    assert all(0 <= sample < len(labels) for sample in chosen)
    wanted = dict.fromkeys(w % len(labels) for w in worst if -len(labels) <= w < len(labels)) if labels else {}
    assert set(list(wanted)[:count]) <= set(chosen)

    # A category with more than another has them from the worst, or the other has no more to give.
    times, there = Counter(labels[sample] for sample in chosen), Counter(labels)
    forced = Counter(labels[sample] for sample in list(wanted)[:count])
    for more in times:
        for less in there:
            if times[more] > max(times[less] + 1, forced[more]):
                assert times[less] == there[less]

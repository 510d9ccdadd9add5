"""The numbers behind correlations: each against a few slow lines, and against chance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.findings import association, order, outliers


def hypergeometric_tail(both: int, a: int, b: int, n: int) -> float:
    """P(at least so many in common), counted exactly."""
    total = math.comb(n, b)
    ways = sum(math.comb(a, k) * math.comb(n - a, b - k) for k in range(both, min(a, b) + 1))
    return float(Fraction(ways, total))


@given(st.integers(2, 60), st.data())
def test_surprise_never_promises_more_than_the_exact_probability(n: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(1, n - 1)), data.draw(st.integers(1, n - 1))
    both = data.draw(st.integers(max(0, a + b - n), min(a, b)))
    numbers = (np.array([float(x)]) for x in (both, a * b / n, a, b))
    found = float(association.surprise(*numbers)[0])
    assert found >= 0
    assert math.exp(-found) >= hypergeometric_tail(both, a, b, n) * (1 - 1e-9)


def test_surprise_over_strata_is_a_bound_too() -> None:
    """Three steps with their own shares: every arrangement of b within its step, counted."""
    a = [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]
    counts_b = [2, 1, 2]
    totals: dict[int, float] = {0: 1.0}
    for row, count in zip(a, counts_b, strict=True):
        bits = [1] * count + [0] * (4 - count)
        arrangements = list(permutations(bits))
        step: dict[int, float] = {}
        for one in arrangements:
            common = sum(x * y for x, y in zip(row, one, strict=True))
            step[common] = step.get(common, 0) + 1 / len(arrangements)
        totals = {k: sum(p * step.get(k - before, 0) for before, p in totals.items()) for k in range(max(totals) + 5)}
    expected = sum(sum(row) * count / 4 for row, count in zip(a, counts_b, strict=True))
    for both in range(1, 6):
        tail = sum(p for k, p in totals.items() if k >= both)
        found = association.surprise(*(np.array([float(x)]) for x in (both, expected, 6, 5)))
        assert math.exp(-float(found[0])) >= tail * (1 - 1e-9)


def test_lift_and_phi_against_plain_counting() -> None:
    chance = np.random.default_rng(0)
    one, other = chance.random((2, 500)) < 0.2
    both, a, b, n = (np.array([float(x)]) for x in ((one & other).sum(), one.sum(), other.sum(), 500))
    assert association.lift_of(both, a, b, n)[0] == pytest.approx((one & other).mean() / (one.mean() * other.mean()))
    assert association.phi_of(both, a, b, n)[0] == pytest.approx(np.corrcoef(one, other)[0, 1])


def test_intervals_hold_as_often_as_they_say() -> None:
    chance = np.random.default_rng(1)
    rate, with_a, without, n, runs = 0.1, 0.5, 0.1, 2000, 1500
    a = chance.random((runs, n)) < rate
    b = chance.random((runs, n)) < np.where(a, with_a, without)
    counts = [x.sum(axis=1).astype(float) for x in (a & b, a, b)]
    found = association.intervals(*counts, np.full(runs, float(n)), np.ones(runs), association.z_for(0.95, 1))
    base = rate * with_a + (1 - rate) * without
    lift = with_a / base
    phi = rate * (with_a - base) / math.sqrt(rate * (1 - rate) * base * (1 - base))
    for ends, truth in ((found.lift, lift), (found.phi, phi)):
        assert 0.93 <= ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() <= 0.97


def test_intervals_for_many_pairs_are_wider() -> None:
    assert association.z_for(0.95, 1) == pytest.approx(1.96, abs=0.01)
    assert association.z_for(0.95, 1000) > 4


def test_holm_against_the_definition() -> None:
    p = np.array([0.001, 0.013, 0.2, 0.012, 0.04])
    kept = association.holm(-np.log(p), 5, 0.95)
    slow = np.zeros(5, dtype=bool)
    for rank, place in enumerate(np.argsort(p)):
        if p[place] > 0.05 / (5 - rank):
            break
        slow[place] = True
    assert kept.tolist() == slow.tolist() == [True, True, False, True, False]
    assert not association.holm(-np.log(p), 1000, 0.95).any()
    assert association.holm(np.array([50.0, 60.0]), 2, 0.95).all()
    assert association.holm(np.empty(0), 0, 0.95).tolist() == []


def test_the_variance_over_all_shifts() -> None:
    chance = np.random.default_rng(2)
    for steps in (30, 31):
        x, y = chance.random((2, 1, steps)) < 0.3
        powers = [(found := association.powers(series.astype(float))[0], found) for series in (x, y)]
        shifted = [float((x[0] * np.roll(y[0], shift)).sum()) for shift in range(steps)]
        assert association.shift_variance(*powers, steps)[0] == pytest.approx(np.var(shifted))


def test_independent_steps_are_worth_all_that_they_are() -> None:
    chance = np.random.default_rng(3)
    x, y = chance.random((2, 200, 400)) < 0.2
    found = association.shift_variance(association.powers(x * 1.0), association.powers(y * 1.0), 400)
    alone = 400 * 0.2 * 0.8 * 0.2 * 0.8
    assert 0.9 < np.median(found) / alone < 1.15


def test_stretches_are_worth_less_than_their_steps() -> None:
    blocks = np.zeros((1, 400))
    blocks[0, 100:120] = 1
    found = association.shift_variance(association.powers(blocks), association.powers(np.roll(blocks, 50, axis=1)), 400)
    alone = 400 * (0.05 * 0.95) ** 2
    assert found[0] > 8 * alone


def test_a_type_that_comes_in_turns_is_no_stretch() -> None:
    chance = np.random.default_rng(4)
    turns = np.tile([0.0, 1.0], 200)[None]
    follows = (chance.random((1, 400)) < 0.4 * turns) * 1.0
    found = association.shift_variance(association.powers(turns), association.powers(follows), 400)
    share = follows.mean()
    assert found[0] < 1.5 * 400 * 0.25 * share * (1 - share)


def test_places_that_keep_their_samples() -> None:
    chance = np.random.default_rng(5)
    free = chance.random((2, 300, 16)) < 0.1
    kept = chance.random((2, 300, 16)) < np.where(chance.random((2, 1, 16)) < 0.25, 0.5, 0.01)
    for bits, is_kept in ((free, False), (kept, True)):
        away = bits - bits.mean(axis=2, keepdims=True)
        ratio, most = association.slots(away[0], away[1])
        assert (ratio > 3) is is_kept and math.isfinite(most) is is_kept


def test_a_real_coincidence_does_not_look_like_places_that_keep_their_samples() -> None:
    bits = np.random.default_rng(6).random((300, 16)) < 0.1
    away = bits - bits.mean(axis=1, keepdims=True)
    ratio, most = association.slots(away, away)
    assert ratio < 1.4 and most == np.inf


def test_samples_that_come_again() -> None:
    chance = np.random.default_rng(7)
    which = np.stack([chance.choice(60, 16, replace=False) for _ in range(300)])
    habit = (chance.random((2, 60)) < 0.2)[:, which]
    free = chance.random((2, 300, 16)) < 0.2
    for bits, low, high in ((habit, 10, 1000), (free, 0.6, 1.5)):
        away = bits - bits.mean(axis=2, keepdims=True)
        assert low < association.cluster_ratio(away[0], away[1], which) < high
    assert association.cluster_ratio(away[0], away[1], np.full((300, 16), -1)) == 1.0


# ---- outliers and order ---------------------------------------------------------------------------------------------


def test_outliers_are_found_while_everything_drifts() -> None:
    chance = np.random.default_rng(8)
    drift = np.linspace(0, 5, 200)[:, None]
    values = np.exp(drift + 0.2 * chance.standard_normal((200, 16)))
    values[50, 3] *= 8
    values[70, 4] = 0.0
    above, below = outliers.over_samples(values[None].astype(np.float32))
    assert above[0, 50, 3] and below[0, 70, 4]
    assert above.sum() < 6 and below.sum() < 6


def test_constant_and_empty_tensors_have_none() -> None:
    for values in (np.ones((1, 50, 8)), np.zeros((1, 50, 8)), np.full((1, 50, 8), np.nan)):
        with np.errstate(all="ignore"):
            above, below = outliers.over_samples(values.astype(np.float32))
        assert not above.any() and not below.any()


def test_steps_are_compared_with_steps_around_them() -> None:
    values = np.exp(np.linspace(0, 3, 300) + 0.05 * np.random.default_rng(9).standard_normal(300))
    values[[100, 101, 200]] *= 3
    above, below = outliers.over_steps(values[None])
    assert np.flatnonzero(above[0]).tolist() == [100, 101, 200] and not below.any()


def test_high_is_one_in_twenty() -> None:
    values = np.linspace(3, 1, 400) + 0.1 * np.random.default_rng(10).standard_normal(400)
    found = outliers.high(values)
    assert 15 <= found.sum() <= 25 and found[:200].sum() < 20  # not just where the loss is high because it is early
    assert not outliers.high(np.ones(50)).any()
    assert outliers.high(np.array([1.0] * 49 + [np.nan]))[-1]


def test_medians_leave_out_what_is_not_there() -> None:
    values = np.random.default_rng(11).random((7, 9, 5))
    values[np.random.default_rng(12).random(values.shape) < 0.4] = np.nan
    values[0, 0] = np.nan
    with pytest.warns(RuntimeWarning):
        slow = np.nanmedian(values, axis=-1)
    assert np.array_equal(outliers.middle(values), slow, equal_nan=True)


def test_who_comes_first_in_time() -> None:
    chance = np.random.default_rng(13)
    a = chance.random(600) < 0.05
    after = np.roll(a, 2) & (np.arange(600) > 2)
    assert order.leader(a, after) == "a" and order.leader(after, a) == "b"
    assert order.leader(a, a) is None
    assert order.leader(a, chance.random(600) < 0.3) is None
    begins = np.arange(600)
    assert order.leader(begins > 300, begins > 320) == "a"
    assert order.leader(begins > 300, begins > 300) is None
    assert order.leader(begins > 1000, begins > 3) is None

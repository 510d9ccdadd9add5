"""Changes of level are found, at their place; noise, drift, bends and spikes are none."""

import math

import numpy as np
import pytest

from endoscope.findings.change_point_search import FEWEST, change_points

LEAST = math.log(1.25)
STEPS = np.arange(400)


def noise(rows: int = 200, size: float = 0.1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, (rows, len(STEPS)))


def correlated(rows: int = 200) -> np.ndarray:
    series, kicks = np.zeros((rows, len(STEPS))), noise(rows)
    for step in range(1, len(STEPS)):
        series[:, step] = 0.95 * series[:, step - 1] + kicks[:, step]
    return series


QUIET = {
    "white noise": noise(),
    "loud noise": noise(size=1.0),
    "correlated noise": correlated(),
    "random walk": np.cumsum(noise(size=0.02), axis=1),
    "nothing at all": np.zeros((5, len(STEPS))),
    "steady growth": STEPS / 100 + noise(),
    "a training that decays": -2 * (1 - np.exp(-STEPS / np.linspace(5, 150, 200)[:, None])) + noise(size=0.02),
    "without any noise": -2 * (1 - np.exp(-STEPS / np.linspace(5, 150, 200)[:, None])),
    "a decaying learning rate": np.log(0.01 + 0.5 * (1 + np.cos(np.pi * STEPS / 400))) + noise(size=0.05),
    "spikes of one or two steps": noise() + 3.0 * np.isin(STEPS, [50, 120, 121, 300]),
}


@pytest.mark.parametrize("name", QUIET)
def test_quiet(name: str) -> None:
    assert change_points(QUIET[name], LEAST) == []


@pytest.mark.parametrize("jump", [1.0, -1.0, 3.0])
@pytest.mark.parametrize("drift", [0.0, 1.5])
def test_a_jump_is_found_where_it_is(jump: float, drift: float) -> None:
    at = np.random.default_rng(1).integers(60, 340, 100)
    series = noise(100) - drift * (1 - np.exp(-STEPS / 80)) + jump * (at[:, None] <= STEPS)
    found = change_points(series, LEAST)
    near = {point.row for point in found if abs(point.place - at[point.row]) <= 2}
    assert len(near) >= 98
    assert len(found) == len(near)
    assert all(math.isclose(point.move, jump, rel_tol=0.35) for point in found)


def test_two_jumps_are_two() -> None:
    series = noise(20) + 1.0 * (STEPS >= 120) - 2.0 * (STEPS >= 260)
    found = change_points(series, LEAST)
    assert sorted({round(point.place, -1) for point in found}) == [120, 260]
    assert len(found) == 40


def test_a_move_below_the_least_is_none() -> None:
    series = noise(20, 0.001) + 0.1 * (STEPS >= 200)
    assert change_points(series, LEAST) == []
    assert len(change_points(series, 0.05)) == 20


def test_few_numbers_say_nothing() -> None:
    assert change_points(np.zeros((3, FEWEST - 1)), LEAST) == []

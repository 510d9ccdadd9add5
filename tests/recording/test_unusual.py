"""Running medians against the slow twin, and what counts as unusual."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.errors import BadArgument
from endoscope.recording.deciding.unusual import STEPS_OF_A_STRETCH, Limits, Stretch, Window

VALUES = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 1.0])


@given(values=st.lists(VALUES, min_size=1, max_size=60), size=st.integers(1, 20))
def test_median_and_deviation_of_the_last_values(values: list[float], size: int) -> None:
    window = Window(size)
    for number, value in enumerate(values, 1):
        window.add(value)
        last = values[max(0, number - size) : number]
        median = statistics.median([x / 4 for x in last]) * 4  # a quarter: the twin's sum could be too large
        assert len(window) == len(last)
        assert math.isclose(window.median(), median, rel_tol=1e-12)
        distances = [abs(x / 4 - window.median() / 4) for x in last]
        assert math.isclose(window.deviation(), statistics.median(distances) * 4, rel_tol=1e-12)


def window_of(*values: float) -> Window:
    window = Window(100)
    for value in values:
        window.add(value)
    return window


def test_each_limit_must_be_exceeded() -> None:
    noisy = window_of(*[1.0, 1.2] * 20)  # median 1.1, deviation 0.1, so six standard deviations are 0.89
    assert not Limits().exceeded(1.95, noisy)
    assert Limits().exceeded(2.05, noisy)
    quiet = window_of(*[1.0] * 40)  # no deviation at all: the floors decide
    assert not Limits().exceeded(1.19, quiet)
    assert Limits().exceeded(1.21, quiet)
    assert not Limits(absolute_floor=0.5).exceeded(1.4, quiet)
    zero = window_of(*[0.0] * 40)
    assert not Limits().exceeded(1e-7, zero)
    assert Limits().exceeded(1e-5, zero)


def test_negative_values_are_compared_by_their_size() -> None:
    past = window_of(*[-10.0] * 40)
    assert not Limits().exceeded(-8.5, past)
    assert Limits().exceeded(-7.5, past)


def test_a_fall_is_not_unusual() -> None:
    assert not Limits().exceeded(-1e9, window_of(*[1.0] * 40))


def test_nothing_but_the_nonfinite_is_unusual_during_warm_up() -> None:
    past = window_of(*[1.0] * 19)
    assert not Limits().exceeded(1e9, past)
    assert Limits().exceeded(math.nan, past)
    assert Limits().exceeded(-math.inf, Window(5))
    past.add(1.0)
    assert Limits().exceeded(1e9, past)


@given(
    values=st.lists(st.floats(0, 100), min_size=20, max_size=60), value=st.floats(0, 1000), power=st.integers(-20, 20)
)
def test_units_do_not_matter(values: list[float], value: float, power: int) -> None:
    limits, factor = Limits(absolute_floor=0.0), 2.0**power
    scaled = window_of(*[x * factor for x in values])
    assert limits.exceeded(value, window_of(*values)) == limits.exceeded(value * factor, scaled)


def test_a_stretch_is_kept_at_its_beginning() -> None:
    stretch = Stretch()
    unusual = [False, True, True, True, True, True, False, True, False]
    assert STEPS_OF_A_STRETCH == 3
    assert [stretch.keeps(step) for step in unusual] == [0, 1, 1, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_steps", 2),
        ("warmup_steps", 0),
        ("deviations", -1.0),
        ("relative_floor", math.nan),
        ("deviations", True),
    ],
)
def test_limits_that_mean_nothing(name: str, value: float) -> None:
    with pytest.raises(BadArgument, match=f"{name}={value}"):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_the_warm_up_must_fit_into_the_window() -> None:
    with pytest.raises(BadArgument, match=r"warmup_steps=50 is more than window_steps=10.*Use window_steps=50 or more"):
        Limits(window_steps=10, warmup_steps=50)

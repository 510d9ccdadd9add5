"""Equality of tensors, bit for bit or within the stated tolerance, and the first place where it ends."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from endoscope.replay.compare import COARSE_UNITS, UNITS_OF_LAST_PLACE, difference, same

NAN, INF = float("nan"), float("inf")
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-23, -1.0, 3.5, INF, -INF, NAN, 1e-40, 3e38])


def slow_same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True))


@given(st.lists(NUMBERS, max_size=12), st.lists(NUMBERS, max_size=12))
def test_same_means_every_number(a: list[float], b: list[float]) -> None:
    one, two = torch.tensor(a, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)
    assert same(one, two) is slow_same(one.tolist(), two.tolist())
    assert same(one, one.clone())


DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int64, torch.bool,
    torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 5), (0, 4), (40,)])
def test_any_dtype_and_shape(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    value = torch.ones(shape).to(dtype)
    assert same(value, value.clone())
    assert difference(value, value.clone()) == (None, 0.0)
    if value.numel():
        other = value.clone()
        other.view(-1)[-1] = 0
        index = tuple(size - 1 for size in shape)
        problem, _ = difference(value, other)
        assert problem is not None
        assert (problem.index, problem.expected, problem.found) == (index, 1, 0)
        assert not same(value, other)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2, 3), torch.ones(3, 2)),
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2, 2), torch.ones(2, 2).to_sparse()),
        (torch.zeros(0), torch.zeros(0, 1)),
    ],
)
def test_another_shape_dtype_or_layout_is_another_tensor(a: Tensor, b: Tensor) -> None:
    assert not same(a, b)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (torch.ones(2), torch.ones(3), "kept shape (2,), replayed shape (3,)"),
        (torch.ones(2), torch.ones(2).long(), "kept dtype torch.float32, replayed dtype torch.int64"),
    ],
)
def test_reasons(a: Tensor, b: Tensor, reason: str) -> None:
    problem, deviation = difference(a, b)
    assert problem is not None
    assert problem.reason == reason
    assert deviation == INF


@pytest.mark.parametrize("units", [1, UNITS_OF_LAST_PLACE - 1, UNITS_OF_LAST_PLACE + 2, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_tolerance_is_relative_to_the_largest_value(units: int, dtype: torch.dtype) -> None:
    large = 8.0
    a = torch.tensor([large, 1.0, 0.0], dtype=dtype)
    b = a.clone()
    b[2] = units * torch.finfo(dtype).eps * large
    problem, deviation = difference(a, b)
    assert deviation == pytest.approx(float((a.double() - b.double()).abs().max()) / large)
    assert (problem is None) is (units <= COARSE_UNITS.get(dtype.itemsize, UNITS_OF_LAST_PLACE))


def test_integers_have_no_tolerance() -> None:
    problem, _ = difference(torch.tensor([10**9, 5]), torch.tensor([10**9, 6]))
    assert problem is not None
    assert (problem.index, problem.expected, problem.found) == ((1,), 5, 6)


def test_the_place_named_is_one_that_is_beyond_the_tolerance() -> None:
    """The first element is off by a rounding error, the third is wrong."""
    a = torch.tensor([1.0, 1.0, 1.0])
    b = torch.tensor([1.0 + 2**-23, 1.0, 2.0])
    problem, _ = difference(a, b)
    assert problem is not None
    assert problem.index == (2,)


@given(st.integers(0, 23), st.floats(0.5, 9))
def test_one_wrong_element_is_named(position: int, wrong: float) -> None:
    a = torch.zeros(2, 3, 4)
    b = a.clone()
    b.view(-1)[position] = wrong
    problem, deviation = difference(a + 1, b + 1)
    assert problem is not None
    assert problem.index == (position // 12, position // 4 % 3, position % 4)
    assert problem.expected == 1
    assert problem.found == pytest.approx(wrong + 1)
    assert deviation == pytest.approx(wrong, rel=1e-5)


@pytest.mark.parametrize(("a", "b"), [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (INF, -INF), (1.0, INF)])
def test_nan_and_infinity_differ_from_numbers(a: float, b: float) -> None:
    problem, deviation = difference(torch.tensor([a, 2.0]), torch.tensor([b, 2.0]))
    assert problem is not None
    assert problem.index == (0,)
    assert deviation == INF


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_nan_equals_nan_and_infinity_itself(value: float) -> None:
    a, b = torch.tensor([value, 1.0]), torch.tensor([value, 1.0])
    assert same(a, b)
    assert difference(a, b) == (None, 0.0)
    problem, _ = difference(torch.tensor([value, 1.0]), torch.tensor([value, 2.0]))
    assert problem is not None
    assert problem.index == (1,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.quantize_per_tensor(torch.rand(3), 0.1, 0, torch.qint8),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.complex(torch.ones(2), torch.ones(2)).conj(),
        lambda: torch.complex(torch.ones(2), torch.ones(2)).conj().imag,
        lambda: torch.ones(3, requires_grad=True) * 2,
        lambda: torch.ones(2, 3).t(),
    ],
)
def test_unusual_tensors_equal_their_twins(make: Any) -> None:
    torch.manual_seed(0)
    one = make()
    torch.manual_seed(0)
    assert same(one, make())


def test_parts_of_nested_tensors_are_compared() -> None:
    one = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    two = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
    assert not same(one, two)
    three = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)])
    assert not same(one, three)
    assert difference(one, three)[0] is not None


def test_deviations_far_beyond_float_range_are_numbers() -> None:
    problem, deviation = difference(torch.tensor([3e38]), torch.tensor([-3e38]))
    assert problem is not None
    assert math.isfinite(deviation)

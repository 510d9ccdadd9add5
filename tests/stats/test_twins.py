"""Every statistic equals its slow twin, on random tensors of any shape, stride and type."""

import math

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endoscope.stats import Request, measure
from endoscope.stats.geometry import batch_axis
from tests.stats import compare, twin
from tests.stats.tensors import is_wide, tensors

batch_dims = st.sampled_from([None, 0, 0, 1, 2, 4, -1, -2])
relaxed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def precision_for(tensor: torch.Tensor) -> float:
    return compare.DOUBLE if is_wide(tensor.dtype) else compare.SINGLE


@given(tensors(), batch_dims)
@relaxed
def test_the_whole_tensor(tensor: torch.Tensor, batch_dim: int | None) -> None:
    measured = measure([Request(tensor, batch_dim)])
    numbers = twin.numbers_of(tensor)
    compare.assert_same(compare.row(measured, 0), twin.whole(numbers), precision=precision_for(tensor))
    assert compare.histogram_of(measured, 0) == twin.histogram(numbers)
    assert measured.gaps == [] and measured.notes == []


@given(tensors(), batch_dims)
@relaxed
def test_each_sample(tensor: torch.Tensor, batch_dim: int | None) -> None:
    measured = measure([Request(tensor, batch_dim)])
    batch = batch_axis(tensor.shape, batch_dim)
    expected = [] if batch is None else twin.samples(tensor, batch)
    largest = twin.whole(twin.numbers_of(tensor))["abs_max"]
    rows = compare.sample_rows(measured, 0)
    assert len(rows) == len(expected)
    for got, numbers in zip(rows, expected, strict=True):
        compare.assert_same(got, twin.whole(numbers), precision=compare.SINGLE, stored_in=largest)


@given(tensors(), batch_dims)
@relaxed
def test_each_unit(tensor: torch.Tensor, batch_dim: int | None) -> None:
    measured = measure([Request(tensor, batch_dim)])
    batch = batch_axis(tensor.shape, batch_dim)
    shape, expected = ((), []) if batch is None else twin.units(tensor, batch)
    assert measured.unit_shape == [shape]
    largest = twin.whole(twin.numbers_of(tensor))["abs_max"]
    rows = compare.unit_rows(measured, 0)
    assert len(rows) == len(expected) == (math.prod(shape) if shape else 0)
    for got, numbers in zip(rows, expected, strict=True):
        compare.assert_same(got, twin.whole(numbers), precision=compare.SINGLE, stored_in=largest)


@given(st.lists(st.tuples(tensors(most=60), batch_dims, st.booleans(), st.booleans()), max_size=6))
@relaxed
def test_many_at_once_are_as_each_alone(wishes: list[tuple[torch.Tensor, int | None, bool, bool]]) -> None:
    requests = [Request(*wish) for wish in wishes]
    together = measure(requests)
    assert len(together.unit_shape) == len(together.hist_first) == len(requests)
    for number, request in enumerate(requests):
        alone = measure([request])
        assert repr(compare.row(together, number)) == repr(compare.row(alone, 0))
        assert compare.histogram_of(together, number) == compare.histogram_of(alone, 0)
        assert repr(compare.sample_rows(together, number)) == repr(compare.sample_rows(alone, 0))
        assert repr(compare.unit_rows(together, number)) == repr(compare.unit_rows(alone, 0))
        assert together.unit_shape[number] == alone.unit_shape[0]

"""Numbers of a trace's tensors: the same as a recording would have of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from endoscope.errors import ValueNotKept
from endoscope.schema import stats
from endoscope.server.traces import values
from tests.server.traces import nets
from tests.stats import compare, twin
from tests.stats.tensors import tensors

relaxed = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(tensors())
@relaxed
def test_every_statistic_is_its_slow_twin(tensor: torch.Tensor) -> None:
    if tensor.is_complex():
        tensor = tensor.abs()
    found, numbers = values.numbers(tensor), twin.numbers_of(tensor)
    compare.assert_same(values.measured(found), twin.whole(numbers), precision=compare.SINGLE)
    first, counts = values.histogram(found)
    after = stats.HISTOGRAM_BINS - first - len(counts)
    assert [0] * first + counts + [0] * after == twin.histogram(numbers)


def test_a_large_tensor_is_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    numbers[::100] = [np.nan, np.inf, -np.inf, 0, 0, 1e3, -1e3, 1e-30, 2, 3]
    whole = values.measured(numbers), values.histogram(numbers), values.colour_of(numbers)
    monkeypatch.setattr(values, "_PART", 7)
    found = values.measured(numbers)
    assert {name: pytest.approx(value, rel=1e-6, nan_ok=True) for name, value in whole[0].items()} == found
    assert values.histogram(numbers) == whole[1]
    assert values.colour_of(numbers) == pytest.approx(whole[2], rel=1e-6)


@pytest.mark.parametrize(
    "odd",
    [
        torch.arange(4).to(torch.bfloat16), torch.tensor([1 + 2j]).conj(), torch.eye(3).to_sparse(), torch.tensor(3),
        torch.tensor([True, False]), torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8),
    ],
)  # fmt: skip
def test_tensors_of_odd_kinds_are_numbers(odd: torch.Tensor) -> None:
    assert values.numbers(odd).shape == tuple(odd.shape)


def test_what_is_no_table_of_numbers_is_said() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(ValueNotKept, match="nested tensor"):
        values.numbers(nested)
    with pytest.raises(ValueNotKept, match="the device meta"):
        values.numbers(torch.ones(2, device="meta"))


def test_of_a_tensor_that_is_too_large_the_beginning_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_SENT", 10)
    part = values.beginning(np.arange(60).reshape(5, 3, 4))
    assert part.values.shape == (1, 2, 4) and part.whole == (5, 3, 4)
    assert part.values.reshape(-1).tolist() == list(range(8))
    assert values.beginning(np.arange(10)).values.shape == (10,)


def test_the_share_of_nan_and_what_is_infinite() -> None:
    found = values.colour_of(np.array([1.0, 3.0, np.nan, np.inf]))
    assert (found.mean, found.std, found.nan_share, found.has_infinite) == (2.0, 1.0, 0.25, True)
    assert np.isnan(values.colour_of(np.zeros(0)).mean)


def test_statistics_have_the_columns_of_a_recorded_step() -> None:
    assert set(values.measured(np.ones(3))) == {one.name for one in stats.BUILT_IN}


def test_the_gradient_of_an_operation_that_none_reached_is_said() -> None:
    trace = nets.loop(gradients=True)
    with pytest.raises(ValueNotKept, match=r"backward\(\) was not called"):
        values.tensor_of(trace["out"], 0, "gradient")
    trace.result.sum().backward()
    assert values.tensor_of(trace["out"], 0, "gradient").shape == (5, 2)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
def test_quantiles_of_a_large_tensor_of_any_type(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    numbers = np.random.default_rng(0).integers(0, 2, 101).astype(dtype)
    if dtype is np.int8:
        numbers = np.array([-100, 100, -100, 100], dtype)  # the way from one to the other is no int8
    whole = values.measured(numbers)
    monkeypatch.setattr(values, "_PART", 3)
    assert values.measured(numbers) == pytest.approx(whole, rel=1e-6, nan_ok=True)

"""Quantiles: exact for small tensors, within half a percent for large ones, whatever the numbers are."""

import pytest
import torch

from endoscope.schema.stats import QUANTILES
from endoscope.stats import Measured, Request, measure
from endoscope.stats.kernels import EXACT_UP_TO
from tests.stats import compare, twin
from tests.stats.plain_torch import measure_with_torch

LARGE = 20_000

KINDS = {
    "normal": lambda: torch.randn(LARGE),
    "around ten": lambda: torch.randn(LARGE) + 10,
    "uniform": lambda: torch.rand(LARGE),
    "after a ReLU": lambda: torch.randn(LARGE).relu(),
    "logarithmic": lambda: (torch.randn(LARGE) * 10).exp(),
    "few values": lambda: torch.tensor([-0.37, 0.0, 0.1, 1.1111])[torch.randint(0, 4, (LARGE,))],
    "one value": lambda: torch.full((LARGE,), 1.234),
    "with NaN": lambda: torch.where(torch.rand(LARGE) < 0.2, torch.nan, torch.randn(LARGE)),
    "subnormal": lambda: torch.randn(LARGE) * 1e-41,
    "largest": lambda: torch.full((LARGE,), torch.finfo(torch.float32).max),
    "double": lambda: torch.randn(LARGE, dtype=torch.float64) * 1e200,
    "half": lambda: torch.randn(LARGE).half(),
}
WAYS = {"kernels": measure, "torch": measure_with_torch}


def quantiles(measured: Measured) -> dict[str, float]:
    return {name: value for name, value in compare.row(measured, 0).items() if name in QUANTILES}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_large_tensors_are_within_half_a_percent(kind: str, way: str) -> None:
    torch.manual_seed(0)
    tensor = KINDS[kind]()
    assert tensor.numel() > EXACT_UP_TO
    want = twin.whole(twin.numbers_of(tensor))
    for name, value in quantiles(WAYS[way]([Request(tensor, None)])).items():
        below_all_bins = 5e-41 if kind == "subnormal" else 0.0  # the last bits of a float32 make no bin of their own
        assert abs(value - want[name]) <= 0.005 * abs(want[name]) + below_all_bins, name
        assert want["min"] <= value <= want["max"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, 2, 3, 100, EXACT_UP_TO - 1, EXACT_UP_TO])
@pytest.mark.parametrize("kind", KINDS)
def test_small_tensors_are_exact(kind: str, count: int, way: str) -> None:
    torch.manual_seed(0)
    tensor = KINDS[kind]()[:count]
    want = twin.whole(twin.numbers_of(tensor))
    for name, value in quantiles(WAYS[way]([Request(tensor, None)])).items():
        assert value == pytest.approx(want[name], rel=1e-12, abs=1e-50), name


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_integers_below_256_are_exact_in_tensors_of_any_size(dtype: torch.dtype, way: str) -> None:
    torch.manual_seed(0)
    tensor = torch.randint(-100, 120, (LARGE,)).to(dtype)
    want = twin.whole(twin.numbers_of(tensor))
    got = quantiles(WAYS[way]([Request(tensor, None)]))
    assert got == {name: pytest.approx(want[name], rel=1e-12) for name in got}


def test_samples_in_any_order_have_the_same_quantiles() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(100, 200)
    a = measure([Request(tensor, 0)])
    b = measure([Request(tensor.t(), 1)])
    assert quantiles(a) == quantiles(b)

"""The kernels equal the torch formulas, on tensors large enough for every way of walking through memory."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from endoscope.schema.stats import BUILT_IN
from endoscope.stats import Measured, Request, measure, reductions
from tests.stats import compare
from tests.stats.plain_torch import measure_with_torch
from tests.stats.tensors import DTYPES, is_wide, tensors

CHANNELS_LAST = torch.channels_last

# name -> how it is made, and its batch dimension
LAYOUTS = {
    "one long row": (lambda: torch.randn(100_003), None),
    "matrix": (lambda: torch.randn(512, 300), None),
    "transposed matrix": (lambda: torch.randn(512, 300).t(), None),
    "activations": (lambda: torch.randn(129, 515), 0),
    "activations, few samples": (lambda: torch.randn(5, 515), 0),
    "activations of a wider tensor": (lambda: torch.randn(40, 700)[:, 100:612], 0),
    "every second sample": (lambda: torch.randn(80, 300)[::2], 0),
    "most units": (lambda: torch.randn(19, 4096), 0),
    "too many units": (lambda: torch.randn(3, 4097), 0),
    "batch last": (lambda: torch.randn(300, 65), 1),
    "tokens": (lambda: torch.randn(9, 65, 256), 0),
    "tokens first": (lambda: torch.randn(65, 9, 256), 1),
    "tokens of three channels": (lambda: torch.randn(7, 2001, 3), 0),
    "tokens of one channel": (lambda: torch.randn(2, 5001, 1), 0),
    "tokens of a longer sequence": (lambda: torch.randn(9, 100, 200)[:, :70], 0),
    "attention": (lambda: torch.randn(6, 40, 4, 64).transpose(1, 2), 0),
    "images": (lambda: torch.randn(5, 16, 33, 31), 0),
    "images, small": (lambda: torch.randn(5, 300, 5, 5), 0),
    "images, channels last": (lambda: torch.randn(5, 16, 33, 31).contiguous(memory_format=CHANNELS_LAST), 0),
    "images, cut": (lambda: torch.randn(5, 16, 40, 40)[:, :, 3:36, 4:35], 0),
    "images, batch second": (lambda: torch.randn(16, 5, 33, 31), 1),
    "volumes": (lambda: torch.randn(3, 7, 11, 13, 17), 0),
    "few units, channels in the middle": (lambda: torch.randn(4, 9, 7, 5).permute(0, 2, 1, 3), 0),
    "expanded": (lambda: torch.randn(1, 700, 1).expand(9, 700, 8), 0),
    "expanded scalar": (lambda: torch.randn(()).expand(50, 60), 0),
}
KINDS = {
    "plain": lambda x: x,
    "after a ReLU": torch.relu,
    "around a thousand": lambda x: x + 1000,
    "constant": lambda x: torch.full_like(x, 0.1),
    "two values": lambda x: 1e-3 * x.sign(),
    "tiny": lambda x: x * 1e-30,
    "huge": lambda x: x * 1e30,
    "many magnitudes": lambda x: (x * 12).exp(),
    "with NaN and Inf": lambda x: torch.where(x > 2, torch.inf, torch.where(x < -2, torch.nan, x)),
}


def assert_agree(ours: Measured, theirs: Measured, requests: list[Request]) -> None:
    assert ours.gaps == theirs.gaps and ours.unit_shape == theirs.unit_shape
    for name in ("hist_first", "hist_values", "hist_offsets", "sample_request", "sample_index", "unit_offsets"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype, name
    for number, request in enumerate(requests):
        precision = compare.DOUBLE if is_wide(request.tensor.dtype) else compare.SINGLE
        want = compare.row(theirs, number)
        compare.assert_same(compare.row(ours, number), want, precision=precision)
        largest = want["abs_max"]
        for got, expected in zip(compare.sample_rows(ours, number), compare.sample_rows(theirs, number), strict=True):
            compare.assert_same(got, expected, precision=2 * compare.SINGLE, stored_in=largest)
        for got, expected in zip(compare.unit_rows(ours, number), compare.unit_rows(theirs, number), strict=True):
            most = {"abs_mean": expected["abs_max"], **expected}  # units have no mean magnitude
            compare.assert_same(got, most, precision=2 * compare.SINGLE, stored_in=largest)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_layouts(layout: str, kind: str) -> None:
    torch.manual_seed(0)
    make, batch_dim = LAYOUTS[layout]
    base = make()
    tensor = KINDS[kind](base)
    if tensor.stride() != base.stride():  # the layout is the point
        tensor = torch.empty_strided(base.shape, base.stride()).copy_(tensor) if 0 not in base.stride() else base
    requests = [Request(tensor, batch_dim)]
    assert_agree(measure(requests), measure_with_torch(requests), requests)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex32, torch.float8_e4m3fnuz, torch.float8_e8m0fnu], ids=str)
@pytest.mark.parametrize("layout", ["activations", "tokens first", "images, channels last", "every second sample"])
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_types(dtype: torch.dtype, layout: str) -> None:
    torch.manual_seed(0)
    make, batch_dim = LAYOUTS[layout]
    numbers = 50 * make()
    if not dtype.is_signed:
        numbers = numbers.abs()
    tensor = torch.complex(numbers, 2 * numbers).to(dtype) if dtype.is_complex else numbers.to(dtype)
    requests = [Request(tensor, batch_dim)]
    assert_agree(measure(requests), measure_with_torch(requests), requests)


@given(tensors(), st.sampled_from([None, 0, 1, -1]), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_tensors(tensor: torch.Tensor, batch_dim: int | None, samples: bool, units: bool) -> None:
    requests = [Request(tensor, batch_dim, samples, units)]
    assert_agree(measure(requests), measure_with_torch(requests), requests)


def test_a_device_without_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such devices exist (Apple's); here the CPU pretends to be one."""
    torch.manual_seed(0)
    requests = [
        Request(torch.randn(40, 60), 0),
        Request(torch.arange(500).to(torch.int16), None),
        Request(torch.ones(3), 0),
    ]
    ours = measure(requests)
    monkeypatch.setattr(reductions, "precision_of", lambda device: torch.float32)
    assert_agree(ours, measure_with_torch(requests), requests)


def test_large_tensors_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    requests = [Request(torch.randn(7, 1000), 0), Request(torch.randn(9000), None), Request(torch.randn(50, 30), 0)]
    ours = measure(requests)
    monkeypatch.setattr("endoscope.stats.reductions.AT_ONCE", 256)
    assert_agree(ours, measure_with_torch(requests), requests)


def test_every_statistic_is_measured_in_one_way_and_has_a_twin() -> None:
    for one in BUILT_IN:
        ways = [one.of is not None, one.level is not None, one.measure is not None]
        assert sum(ways) == 1 and one.twin is not None and one.about, one.name
        assert ways[0] or not (one.is_count or one.of_samples or one.of_units), one.name

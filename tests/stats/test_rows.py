"""Large tensors whose rows are read eight at a time: every number against float64, whatever is among the numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from endoscope.stats import Measured, Request, measure

SHAPES = [(4, 64, 1024), (16, 64, 256), (5, 70, 768), (2, 129, 1032), (8, 64, 520)]


def _one(value: float) -> Callable[[Tensor], None]:
    def put(x: Tensor) -> None:
        x[1, 20, 37] = value

    return put


def _everywhere(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], None]:
    def put(x: Tensor) -> None:
        x.copy_(change(x))

    return put


def _a_tiny_corner(x: Tensor) -> None:
    x[1, 8:16, :64] *= 1e-25


AMONG: dict[str, Callable[[Tensor], None]] = {
    "ordinary": lambda x: None,
    "a NaN": _one(float("nan")),
    "an infinity": _one(float("-inf")),
    "a huge one": _one(1e30),
    "all huge": _everywhere(lambda x: x * 1e25),
    "all tiny": _everywhere(lambda x: x * 1e-25),
    "a tiny corner": _a_tiny_corner,
    "zeros": _everywhere(torch.relu),
    "all zero": _everywhere(torch.zeros_like),
    "all equal": _everywhere(lambda x: torch.full_like(x, 0.1)),
    "far from zero": _everywhere(lambda x: x + 1000),
}


def _check(found: np.ndarray, expected: np.ndarray, scale: np.ndarray, what: str) -> None:
    """Within a few roundings of float32 of the size of the numbers."""
    found = found.astype(np.float64)
    assert (np.isnan(found) == np.isnan(expected)).all(), what
    wrong = np.abs(found - expected) > 4e-6 * scale + 1e-44
    assert not wrong.any(), (what, found[wrong][:3], expected[wrong][:3])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("among", AMONG)
def test_all_statistics_are_those_of_float64(shape: tuple[int, ...], among: str) -> None:
    torch.manual_seed(sum(shape))
    x = torch.randn(*shape)
    AMONG[among](x)
    found = measure([Request(x, 0)], threads=1)
    finite = np.where(np.isfinite(x.numpy()), x.numpy().astype(np.float64), np.nan)
    samples = finite.reshape(shape[0], -1)
    _check_rows(found, "samples", samples)
    units = finite.reshape(-1, shape[-1]).T
    _check_rows(found, "units", units)
    whole = finite.reshape(1, -1)
    _check_rows(found, "whole", whole)
    assert found.whole["zeros"][0] == (x == 0).sum()
    assert found.whole["nans"][0] == x.isnan().sum()
    assert found.whole["infs"][0] == x.isinf().sum()


def _check_rows(found: Measured, of: str, rows: np.ndarray) -> None:
    columns = getattr(found, of)
    size = np.nanmax(np.abs(rows), axis=1)
    spread = np.nanstd(rows, axis=1)
    _check(columns["mean"], np.nanmean(rows, axis=1), size, f"mean of {of}")
    # Around a mean that is large against the spread, float32 numbers themselves are that coarse.
    _check(columns["std"], spread, spread + 1e-2 * size, f"std of {of}")
    _check(columns["abs_max"], size, size, f"abs_max of {of}")
    if of != "units":
        _check(columns["min"], np.nanmin(rows, axis=1), size, f"min of {of}")
        _check(columns["max"], np.nanmax(rows, axis=1), size, f"max of {of}")
        _check(columns["abs_mean"], np.nanmean(np.abs(rows), axis=1), size, f"abs_mean of {of}")
        norm = np.sqrt(np.nansum((rows / np.maximum(size, 1e-300)[:, None]) ** 2, axis=1)) * size
        _check(columns["norm"], norm, norm, f"norm of {of}")


def _same(a: Measured, b: Measured) -> None:
    for name in a.whole:
        np.testing.assert_array_equal(a.whole[name], b.whole[name], err_msg=name)
    np.testing.assert_array_equal(a.hist_values, b.hist_values)
    np.testing.assert_array_equal(a.hist_first, b.hist_first)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (33, 65), (512, 512), (700, 1000)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_a_difference_is_measured_as_if_it_had_been_formed_before(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    after, before = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    _same(measure([Request(after, None, minus=before)]), measure([Request(after - before, None)]))


def test_a_difference_of_tensors_that_do_not_lie_alike() -> None:
    after, before = torch.randn(40, 30).t(), torch.randn(30, 40)
    _same(measure([Request(after, None, minus=before)]), measure([Request(after - before, None)]))
    _same(measure([Request(before, 0, minus=after)]), measure([Request(before - after, 0)]))


def test_a_difference_that_cannot_be_formed_is_a_gap() -> None:
    found = measure([Request(torch.ones(3), None), Request(torch.ones(3), None, minus=torch.ones(4))])
    assert [number for number, _ in found.gaps] == [1]
    assert found.whole["mean"][0] == 1.0

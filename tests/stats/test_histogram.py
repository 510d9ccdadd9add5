"""The stored histogram: the same bins for every tensor, so that adding counts merges histograms."""

import math

import numpy as np
import pytest
import torch

from endoscope.schema.stats import (
    BINS_PER_SIGN,
    HISTOGRAM_BINS,
    ZERO_BIN,
    histogram_bin,
    histogram_edges,
)
from endoscope.stats import Request, measure
from tests.stats import compare, twin
from tests.stats.plain_torch import measure_with_torch


def test_edges() -> None:
    edges = histogram_edges()
    assert len(edges) == HISTOGRAM_BINS + 1 == 258
    assert edges == sorted(edges) == [-edge for edge in reversed(edges)]
    assert edges[0] == -(2.0**32) and edges[-1] == 2.0**32
    assert edges[ZERO_BIN] == edges[ZERO_BIN + 1] == 0  # the zero bin has no width
    assert BINS_PER_SIGN == ZERO_BIN == 128
    assert edges[histogram_bin(1.0)] == 1.0 and edges[histogram_bin(1.0) + 1] == 1.5
    assert edges[histogram_bin(1.5)] == 1.5 and edges[histogram_bin(1.5) + 1] == 2.0


@pytest.mark.parametrize(
    "magnitude", [1.0, 1.4999, 1.5, 1.9999, 2.0**-32, 1.5 * 2.0**-32, 1e-40, 5e-324, 2.0**31, 1e300]
)
def test_the_bin_of_a_number(magnitude: float) -> None:
    for number in (magnitude, -magnitude):
        assert histogram_bin(number) == twin.bin_of(number)
    assert histogram_bin(magnitude) + histogram_bin(-magnitude) == 2 * ZERO_BIN
    assert histogram_bin(0.0) == histogram_bin(-0.0) == ZERO_BIN


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_at_the_edges(dtype: torch.dtype) -> None:
    edges = torch.tensor(histogram_edges(), dtype=dtype)
    after, before = torch.nextafter(edges, edges + math.inf), torch.nextafter(edges, edges - math.inf)
    numbers = torch.cat([edges, after, before])
    for way in (measure, measure_with_torch):
        assert compare.histogram_of(way([Request(numbers, None)]), 0) == twin.histogram(numbers.tolist())


def test_merging_is_adding() -> None:
    torch.manual_seed(0)
    parts = [torch.randn(1000), torch.randn(50, 50).exp(), torch.zeros(10), torch.tensor([math.nan, 1e-42, -3e38])]
    apart = measure([Request(part, None) for part in parts])
    together = measure([Request(torch.cat([part.flatten() for part in parts]), None)])
    added = np.sum([compare.histogram_of(apart, number) for number in range(len(parts))], axis=0)
    assert added.tolist() == compare.histogram_of(together, 0)


def test_trimmed_to_the_bins_in_use() -> None:
    measured = measure([Request(torch.tensor([1.0, 2.0, 2.0]), None), Request(torch.zeros(0), None)])
    assert measured.hist_first.tolist() == [histogram_bin(1.0), 0]
    assert measured.hist_values.tolist() == [1, 0, 2]
    assert measured.hist_offsets.tolist() == [0, 3, 3]


def test_counters_are_clean_after_any_tensor() -> None:
    """One tensor must not leave counts behind for the next, least of all an odd one."""
    odd = [
        torch.tensor([math.nan, math.inf, -math.inf]), torch.tensor([0.0, -0.0, 1e-45, -1e-45]), torch.zeros(100),
        torch.full((5000,), -3e38), torch.randn(64, 64).relu(), torch.tensor([1e308, 5e-324], dtype=torch.float64),
    ]  # fmt: skip
    for tensor in odd:
        measure([Request(tensor, 0)])
        for dtype in (torch.float32, torch.float64):
            after = torch.ones(3, dtype=dtype)
            counts = compare.histogram_of(measure([Request(after, None)]), 0)
            assert counts[histogram_bin(1.0)] == sum(counts) == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_subnormal_numbers_are_not_zeros(dtype: torch.dtype) -> None:
    numbers = torch.tensor([0.0, -0.0, 1e-45, 1e-45, -1e-44, 1e-39, 1.0], dtype=dtype)
    measured = measure([Request(numbers.repeat(400), None)])
    counts = compare.histogram_of(measured, 0)
    assert measured.whole["zeros"] == counts[ZERO_BIN] == 800
    assert counts[ZERO_BIN + 1] == 1200 and counts[ZERO_BIN - 1] == 400 and counts[histogram_bin(1.0)] == 400

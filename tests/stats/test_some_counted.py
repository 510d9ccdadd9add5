"""Large tensors: only some of their numbers are counted in the histogram, and nothing else is guessed."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from endoscope.schema.stats import HISTOGRAM_BINS, QUANTILES, ZERO_BIN
from endoscope.stats import Request, measure
from endoscope.stats.kernels import ENOUGH
from tests.stats import compare
from tests.stats.plain_torch import measure_with_torch

HUGE = 8 * ENOUGH  # one number of eight is counted

KINDS = {
    "normal": lambda n: torch.randn(n),
    "around ten": lambda n: torch.randn(n) + 10,
    "after a ReLU": lambda n: torch.randn(n).relu(),
    "logarithmic": lambda n: (torch.randn(n) * 10).exp(),
    "with NaN": lambda n: torch.where(torch.rand(n) < 0.2, torch.nan, torch.randn(n)),
    "with Inf": lambda n: torch.where(torch.rand(n) < 0.01, -torch.inf, torch.randn(n)),
    "subnormal": lambda n: torch.randn(n) * 1e-39,
    "half": lambda n: torch.randn(n).half(),
}


def made(kind: str, count: int = HUGE + 137) -> Tensor:
    torch.manual_seed(0)
    return KINDS[kind](count)


@pytest.mark.parametrize("kind", KINDS)
def test_histograms_are_those_of_a_fair_sample(kind: str) -> None:
    tensor = made(kind)
    ours = np.array(compare.histogram_of(measure([Request(tensor, None)]), 0), float)
    theirs = np.array(compare.histogram_of(measure_with_torch([Request(tensor, None)]), 0), float)
    assert ours.sum() == theirs.sum() and ours[ZERO_BIN] == theirs[ZERO_BIN]
    share = theirs / theirs.sum()
    # Six standard deviations, and numbers next to each other need not be independent.
    allowed = 6 * np.sqrt(theirs.sum() ** 2 * share * (1 - share) / ENOUGH) + 20
    assert (abs(ours - theirs) <= allowed).all()


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_are_those_of_a_fair_sample(kind: str) -> None:
    tensor = made(kind)
    ordered = np.sort(tensor[tensor.isfinite()].double().numpy())
    measured = compare.row(measure([Request(tensor, None)]), 0)
    for name, level in QUANTILES.items():
        off = 6 * math.sqrt(level * (1 - level) / ENOUGH)  # of the rank
        low, high = (np.quantile(ordered, min(max(level + d, 0), 1)) for d in (-off, off))
        margin = 0.005 * max(abs(low), abs(high)) + 5e-41
        assert low - margin <= measured[name] <= high + margin, name


@pytest.mark.parametrize("shape", [(4096, 129), (16, 64, 513), (2, 3, 400, 257)])
def test_all_columns_are_counted_alike(shape: tuple[int, ...]) -> None:
    """Each column has numbers of its own size; whatever the length of a row, none is preferred."""
    tensor = torch.ones(shape) * 2.0 ** (torch.arange(shape[-1]) % 8)
    counts = compare.histogram_of(measure([Request(tensor, 0)]), 0)
    exact = compare.histogram_of(measure_with_torch([Request(tensor, 0)]), 0)
    assert sum(counts) == tensor.numel()
    assert all(abs(a - b) <= 0.1 * b for a, b in zip(counts, exact, strict=True))


def test_the_lowest_and_the_highest_number_are_never_left_out() -> None:
    tensor = torch.randn(HUGE)
    tensor[12345], tensor[54321] = 1e20, -1e20
    counts = compare.histogram_of(measure([Request(tensor, None)]), 0)
    used = [place for place in range(HISTOGRAM_BINS) if counts[place]]
    exact = compare.histogram_of(measure_with_torch([Request(tensor, None)]), 0)
    assert (used[0], used[-1]) == (exact.index(1), HISTOGRAM_BINS - 1 - exact[::-1].index(1))
    assert sum(counts) == tensor.numel()


@pytest.mark.parametrize("nonzero", [0, 1, 100, 5000])
def test_where_nearly_all_are_zero_the_others_are_counted_one_by_one(nonzero: int) -> None:
    torch.manual_seed(0)
    tensor = torch.zeros(HUGE)
    tensor[torch.randperm(HUGE)[:nonzero]] = torch.randn(nonzero)
    ours, theirs = measure([Request(tensor, None)]), measure_with_torch([Request(tensor, None)])
    assert compare.histogram_of(ours, 0) == compare.histogram_of(theirs, 0)


def test_it_is_the_same_sample_every_time() -> None:
    tensor = made("normal")
    first, second = (measure([Request(tensor, None)]) for _ in range(2))
    assert compare.histogram_of(first, 0) == compare.histogram_of(second, 0)


def test_everything_else_is_exact() -> None:
    tensor = made("normal").view(-1)[:HUGE].view(512, -1)
    ours, theirs = (way([Request(tensor, 0)]) for way in (measure, measure_with_torch))
    one, other = compare.row(ours, 0), compare.row(theirs, 0)
    for name in one:
        if name not in QUANTILES:
            assert one[name] == pytest.approx(other[name], rel=1e-5, abs=1e-5), name
    for got, expected in zip(compare.sample_rows(ours, 0), compare.sample_rows(theirs, 0), strict=True):
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for got, expected in zip(compare.unit_rows(ours, 0), compare.unit_rows(theirs, 0), strict=True):
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-4)

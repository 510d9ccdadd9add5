"""Histogram and quantiles on any device.

Numbers are counted into bins on the device. What goes to the host is small: the coarse counts, and for every rank that
a quantile needs either the number itself or its bin and its place in it.

A bin is named by the upper bits of a number, sign first; zeros have a bin of their own, behind all others.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from endoscope.schema.stats import BINS_PER_SIGN, HISTOGRAM_BINS, LOWEST_EXPONENT, QUANTILES, ZERO_BIN
from endoscope.stats import reductions
from endoscope.stats.kernels import EXACT_UP_TO

_FINE_BITS = 8  # of mantissa, in the name of a fine bin
_LEVELS = np.array(list(QUANTILES.values()))


class _Format(NamedTuple):
    """How the bits of a float are used."""

    bits: torch.dtype  # an integer of the same size
    mantissa: int
    exponent: int

    def bins(self, mantissa: int) -> int:
        """How many bins each sign has, with so many bits of mantissa in their names."""
        return 1 << (self.exponent + mantissa)


_FORMATS = {torch.float32: _Format(torch.int32, 23, 8), torch.float64: _Format(torch.int64, 52, 11)}


class Found(NamedTuple):
    """What the host needs to know about the distribution of some tensors."""

    coarse: Tensor  # [tensors, bins]: positive, negative, zero
    exact: Tensor | None  # [tensors, 2 × quantiles]: the numbers below and above each quantile
    places: Tensor | None  # [tensors, 3, 2 × quantiles]: bin, numbers before it in the bin, numbers in the bin


def distribution(numbers: Tensor) -> Found:
    """Of tensors of the same size, one in each row; the rows are not empty."""
    shape = _FORMATS[numbers.dtype]
    if numbers.shape[1] <= EXACT_UP_TO:
        return Found(_count(numbers, shape, 1), _ordered(numbers), None)
    fine = _count(numbers, shape, _FINE_BITS)
    half_octaves = fine[:, :-1].reshape(len(fine), 2 * shape.bins(1), -1).sum(2)
    return Found(torch.cat([half_octaves, fine[:, -1:]], 1), None, _places(fine, shape))


def most_together(dtype: torch.dtype, size: int) -> int:
    """How many tensors of a size fit into the memory that may be used."""
    bins = 0 if size <= EXACT_UP_TO else 2 * _FORMATS[dtype].bins(_FINE_BITS)
    return max(reductions.AT_ONCE // max(size, bins, 1), 1)


def _count(numbers: Tensor, shape: _Format, mantissa: int) -> Tensor:
    """How many numbers of each row are in each bin."""
    bins = 2 * shape.bins(mantissa) + 1
    counts = torch.zeros(len(numbers) * bins, dtype=torch.int64, device=numbers.device)
    first = torch.arange(0, len(counts), bins, device=numbers.device)[:, None]
    one = torch.ones((), dtype=torch.int64, device=numbers.device)
    for part in numbers.split(max(reductions.AT_ONCE // len(numbers), 1), 1):
        keys = (part.contiguous().view(shape.bits) >> (shape.mantissa - mantissa)) & (bins - 2)
        places = torch.where(part == 0, bins - 1, keys.to(torch.int64)) + first
        counts.scatter_add_(0, places.reshape(-1), one.expand(places.numel()))
    return counts.reshape(len(numbers), bins)


@cache
def _levels(device: torch.device, dtype: torch.dtype) -> Tensor:
    """The levels of the quantiles; copying them to a device means waiting for it, so it is done once."""
    with torch.inference_mode(False):
        return torch.tensor(_LEVELS, dtype=dtype, device=device)


def _ranks(finite: Tensor, dtype: torch.dtype) -> Tensor:
    """The ranks below and above each quantile, of so many finite numbers."""
    levels = _levels(finite.device, dtype)
    last = (finite - 1).clamp(min=0)[:, None]
    below = (levels * last).to(torch.int64)
    return torch.cat([below, torch.minimum(below + 1, last)], 1)


def _ordered(numbers: Tensor) -> Tensor:
    ordered = torch.where((numbers - numbers) == 0, numbers, torch.inf).sort(1).values
    finite = (ordered < torch.inf).sum(1)
    return ordered.gather(1, _ranks(finite, reductions.precision_of(numbers.device)))


def _places(fine: Tensor, shape: _Format) -> Tensor:
    """Where the ranks lie. Bins are counted from the most negative finite numbers to the most positive."""
    per_sign = shape.bins(_FINE_BITS)
    usable = per_sign - (1 << _FINE_BITS)  # the highest exponent is for Inf and NaN
    negative, positive = fine[:, per_sign : per_sign + usable].flip(1), fine[:, :usable]
    counts = torch.cat([negative, fine[:, -1:], positive], 1)
    up_to = counts.cumsum(1)
    ranks = _ranks(up_to[:, -1], reductions.precision_of(fine.device))
    place = torch.searchsorted(up_to, ranks, right=True).clamp(max=2 * usable)
    inside = counts.gather(1, place)
    before = ranks - (up_to.gather(1, place) - inside)
    return torch.stack([place, before, inside], 1)


def histogram(coarse: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stored histogram from coarse counts [tensors, bins], on the host."""
    per_sign = (coarse.shape[1] - 1) // 2
    bias = per_sign // 4 - 1
    usable = per_sign - 2
    rank = np.clip(np.arange(usable) - 2 * (bias + LOWEST_EXPONENT), 0, BINS_PER_SIGN - 1)
    stored = np.zeros((HISTOGRAM_BINS, len(coarse)), np.int64)
    np.add.at(stored, ZERO_BIN + 1 + rank, coarse[:, :usable].T)
    np.add.at(stored, ZERO_BIN - 1 - rank, coarse[:, per_sign : per_sign + usable].T)
    stored[ZERO_BIN] = coarse[:, -1]
    return stored.T


def quantiles(values: NDArray[np.float64], finite: NDArray[np.float64]) -> NDArray[np.float64]:
    """[tensors, quantiles] from the numbers below and above, on the host."""
    position = _LEVELS * np.maximum(finite - 1, 0)[:, None]
    part = position - np.floor(position)
    below, above = np.split(values, 2, 1)
    between = np.where(below == above, below, below * (1 - part) + above * part)
    return np.where(finite[:, None] > 0, between, np.nan)


def numbers_at(
    places: NDArray[np.int64],
    dtype: torch.dtype,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    is_integer: bool,
) -> NDArray[np.float64]:
    """The numbers at places in bins, on the host: as if those of a bin lay evenly between its edges."""
    shape = _FORMATS[dtype]
    shift, usable = shape.mantissa - _FINE_BITS, shape.bins(_FINE_BITS) - (1 << _FINE_BITS)
    place, before, inside = places.swapaxes(0, 1)
    low, high = low[:, None], high[:, None]
    key = np.where(place > usable, place - usable - 1, usable - 1 - place).clip(0)
    kinds = (np.int32, np.float32) if dtype is torch.float32 else (np.int64, np.float64)
    start, end = ((key << shift).astype(kinds[0]).view(kinds[1]).astype(np.float64) for key in (key, key + 1))
    end = np.minimum(end, np.maximum(high, -low))
    part = (before + 0.5) / np.maximum(inside, 1)
    value = np.where(place > usable, start + part * (end - start), part * (end - start) - end)
    value = np.where(place == usable, 0.0, value)
    if is_integer:
        value = np.floor(value + 0.5)
    return np.clip(value, low, high)

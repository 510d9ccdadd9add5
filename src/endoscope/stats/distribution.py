"""Histogram and quantiles as torch formulas; nothing here waits for the device."""

from __future__ import annotations

import torch
from torch import Tensor

from endoscope.schema.stats import BINS_PER_SIGN, HISTOGRAM_BINS, LOWEST_EXPONENT, QUANTILES, ZERO_BIN
from endoscope.stats.formulas import AT_ONCE
from endoscope.stats.layout import EXACT_UP_TO

_MANTISSA_BITS = {torch.float32: 23, torch.float64: 52}
_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}
_FINE = 8  # bits of mantissa that tell fine bins apart


def histogram(numbers: Tensor) -> Tensor:
    """The 257 counts of a flat tensor of float32 or float64 numbers."""
    mantissa = _MANTISSA_BITS[numbers.dtype]
    bias = 127 if numbers.dtype is torch.float32 else 1023
    counts = torch.zeros(HISTOGRAM_BINS + 1, dtype=torch.int64, device=numbers.device)
    for part in numbers.split(AT_ONCE):
        half_octave = _key(part, mantissa - 1) - 2 * (bias + LOWEST_EXPONENT)
        rank = half_octave.clamp(0, BINS_PER_SIGN - 1)
        bins = torch.where(part > 0, ZERO_BIN + 1 + rank, ZERO_BIN - 1 - rank)
        bins = torch.where(part == 0, ZERO_BIN, bins)
        _count(counts, torch.where(part.isfinite(), bins, HISTOGRAM_BINS))
    return counts[:HISTOGRAM_BINS]


def quantiles(numbers: Tensor, finite: Tensor, low: Tensor, high: Tensor, *, is_integer: bool) -> Tensor:
    """All quantiles of a flat tensor, in the order of schema.stats.QUANTILES."""
    levels = torch.tensor(list(QUANTILES.values()), dtype=low.dtype, device=numbers.device)
    position = levels * (finite - 1).clamp(min=0)
    rank = position.to(torch.int64)
    ranks = torch.stack([rank, torch.minimum(rank + 1, (finite - 1).clamp(min=0))])
    if numbers.numel() <= EXACT_UP_TO:
        values = _exact(numbers, ranks)
    else:
        values = _from_fine_bins(numbers, ranks, low, high, is_integer)
    below, above = values.to(levels.dtype)
    part = position - rank
    between = torch.where(below == above, below, below * (1 - part) + above * part)
    return torch.where(finite > 0, between, torch.nan)


def _exact(numbers: Tensor, ranks: Tensor) -> Tensor:
    if not numbers.numel():
        return torch.full(ranks.shape, torch.nan, dtype=numbers.dtype, device=numbers.device)
    ordered = torch.where(numbers.isfinite(), numbers, torch.inf).sort().values
    return ordered[ranks]


def _from_fine_bins(numbers: Tensor, ranks: Tensor, low: Tensor, high: Tensor, is_integer: bool) -> Tensor:
    """Each number of a rank, from where the rank lies in its bin. Bins: negative ones, zero, positive ones."""
    shift = _MANTISSA_BITS[numbers.dtype] - _FINE
    bits = torch.iinfo(_BITS[numbers.dtype]).bits
    keys = 1 << (bits - 1 - shift)  # of one sign
    counts = torch.zeros(2 * keys + 2, dtype=torch.int64, device=numbers.device)
    for part in numbers.split(AT_ONCE):
        key = _key(part, shift)
        place = torch.where(part > 0, keys + 1 + key, keys - 1 - key)
        place = torch.where(part == 0, keys, place)
        _count(counts, torch.where(part.isfinite(), place, 2 * keys + 1))
    up_to = counts.cumsum(0)
    place = torch.searchsorted(up_to, ranks, right=True).clamp(max=2 * keys)
    inside = counts[place].clamp(min=1)
    before = ranks - (up_to[place] - counts[place])
    key = torch.where(place > keys, place - keys - 1, keys - 1 - place).clamp(min=0)
    start, end = _edge(key, shift, numbers.dtype), _edge(key + 1, shift, numbers.dtype)
    end = torch.minimum(end, torch.maximum(high, -low))
    part = (before.to(low.dtype) + 0.5) / inside
    value = torch.where(place > keys, start + part * (end - start), part * (end - start) - end)
    value = torch.where(place == keys, 0.0, value)
    if is_integer:
        value = (value + 0.5).floor()
    return torch.minimum(torch.maximum(value, low), high)


def _key(numbers: Tensor, shift: int) -> Tensor:
    """The upper bits of the magnitudes."""
    bits = _BITS[numbers.dtype]
    return ((numbers.contiguous().view(bits) & torch.iinfo(bits).max) >> shift).to(torch.int64)


def _edge(key: Tensor, shift: int, dtype: torch.dtype) -> Tensor:
    """The smallest magnitude with a key."""
    return (key << shift).to(_BITS[dtype]).view(dtype)


def _count(counts: Tensor, bins: Tensor) -> None:
    counts.scatter_add_(0, bins, torch.ones((), dtype=counts.dtype, device=counts.device).expand(len(bins)))

"""Sums and extremes of rows on any device: the large part of the work, in as few torch calls as possible.

Only torch calls that do not wait for the device. What follows from the sums is worked out on the host
(formulas.py), after one copy for everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from endoscope.stats.formulas import Rows

AT_ONCE = 1 << 22  # elements; more than that at a time would need much memory for intermediate results


def precision_of(device: torch.device) -> torch.dtype:
    """The widest floats that a device can do."""
    return torch.float32 if device.type == "mps" else torch.float64


def real(tensor: Tensor, wide: torch.dtype) -> Tensor:
    """The numbers as float32, or as wide floats if float32 could not hold them; complex ones by magnitude."""
    if tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    if tensor.is_complex():
        infinite = tensor.real.isinf() | tensor.imag.isinf()
        tensor = torch.where(infinite, torch.inf, tensor.abs())
    is_small = tensor.element_size() <= 2 or tensor.dtype is torch.float32
    return tensor.to(torch.float32 if is_small else wide)


class Facts(NamedTuple):
    """What is known about rows that were cut into parts: [parts, facts, …]."""

    facts: Tensor
    part_size: int  # of all parts but the last
    size: int  # of a row


class Group:
    """Tensors of the same shape, side by side: `numbers` is [tensors, samples, numbers of a sample]."""

    def __init__(self, numbers: Tensor, wide: torch.dtype) -> None:
        self.numbers = numbers
        self.wide = wide
        self.scale = self._scale()  # of each tensor: a power of two that keeps squares within bounds, nearly always 1

    def _scale(self) -> Tensor:
        count = len(self.numbers)
        if self.numbers.dtype is not self.wide:  # squares of float32 numbers are no problem for float64
            return torch.ones(count, dtype=self.wide, device=self.numbers.device)
        huge, tiny, power = (1e145, 1e-145, 600.0) if self.wide is torch.float64 else (1e15, 1e-15, 70.0)
        largest = self.numbers.reshape(count, -1).nan_to_num(0.0, 0.0, 0.0).abs().amax(1)
        exponent = (largest < tiny).to(self.wide) * power - (largest > huge).to(self.wide) * power
        return exponent.exp2()

    def samples(self) -> Facts:
        """About [tensors, samples]."""
        at_once = min(self.numbers.shape[2], AT_ONCE)
        parts = [_by_samples(part, self.scale) for part in self.numbers.split(at_once, 2)]
        return Facts(torch.stack(parts), at_once, self.numbers.shape[2])

    def units(self, by_unit: Tensor) -> Facts:
        """About [tensors, units], from the same numbers as [tensors, numbers of a unit, units]."""
        size = by_unit.shape[1]
        at_once = min(size, max(AT_ONCE // by_unit.shape[2], 1))
        return Facts(torch.stack([_unit_facts(part, self.scale) for part in by_unit.split(at_once, 1)]), at_once, size)


def _by_samples(numbers: Tensor, scale: Tensor) -> Tensor:
    """Facts about samples, a few samples at a time if all at once would be too many numbers."""
    at_once = max(AT_ONCE // numbers.shape[2], 1)
    return torch.cat([_facts(part, scale) for part in numbers.split(at_once, 1)], 2)


def _facts(numbers: Tensor, scale: Tensor) -> Tensor:
    """About every row along the last dimension, stacked: counts (finite, zero, NaN, -Inf), mean, variance, sum of
    magnitudes, lowest, highest. In mean and variance zeros stand in for what is not finite."""
    is_finite, scaled, low, high = _prepared(numbers, scale, 2)
    variance, mean = torch.var_mean(scaled, 2, correction=0)
    facts = (
        is_finite.sum(2), (numbers == 0).sum(2), (numbers != numbers).sum(2), (numbers == -torch.inf).sum(2),
        mean, variance, torch.linalg.vector_norm(scaled, 1, 2), low, high,
    )  # fmt: skip
    return torch.stack([fact.to(scale.dtype) for fact in facts])


def _unit_facts(numbers: Tensor, scale: Tensor) -> Tensor:
    """The same along the middle dimension, with nothing where a unit has no such statistic."""
    is_finite, scaled, low, high = _prepared(numbers, scale, 1)
    variance, mean = torch.var_mean(scaled, 1, correction=0)
    nothing = torch.zeros_like(mean)
    facts = is_finite.sum(1), nothing, nothing, nothing, mean, variance, nothing, low, high
    return torch.stack([fact.to(scale.dtype) for fact in facts])


def _prepared(numbers: Tensor, scale: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Which numbers are finite, these scaled and zeros else, lowest and highest along a dimension."""
    is_finite = (numbers - numbers) == 0  # Inf - Inf is NaN
    scaled = torch.where(is_finite, numbers, 0.0).to(scale.dtype) * scale[:, None, None]
    low = torch.where(is_finite, numbers, torch.inf).amin(dim)
    high = torch.where(is_finite, numbers, -torch.inf).amax(dim)
    return is_finite, scaled, low, high


def rows_of(facts: NDArray[np.float64], part_size: int, size: int, scale: NDArray[np.float64]) -> Rows:
    """What the fields of a `Facts` say, once they are on the host."""
    finite, zeros, nans, neg_infs, mean, variance, absolute, low, high = facts.swapaxes(0, 1)
    sizes = np.array([min(part_size, size - start) for start in range(0, size, part_size)], np.float64)
    sizes = sizes.reshape(-1, *[1] * (finite.ndim - 1))
    # Zeros stood in for what is not finite: take them out again.
    true_mean = mean * sizes / np.maximum(finite, 1)
    around = sizes * (variance + mean**2) - finite * true_mean**2
    around = np.where(finite == sizes, sizes * variance, around)
    infs, scales = sizes - finite - nans, np.broadcast_to(scale[:, None], finite.shape)
    return Rows(finite, zeros, nans, infs, neg_infs, true_mean, around, absolute, low, high, scales).merged(0)

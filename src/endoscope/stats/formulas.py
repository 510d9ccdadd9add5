"""The statistics as torch formulas over rows of numbers; nothing here waits for the device.

A row is a sample, a unit over the batch, or a part of a tensor. What is known about several rows can be merged
into what is known about all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

AT_ONCE = 1 << 22  # elements; more than that at a time would need much memory for intermediate results


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known about some rows; one number for each row in every field.

    Sums are in double precision where the device has it. `mean`, `around` and `absolute` are of scaled numbers.
    """

    finite: Tensor  # how many numbers are finite
    zeros: Tensor
    nans: Tensor
    infs: Tensor
    neg_infs: Tensor
    mean: Tensor
    around: Tensor  # sum of squared distances from the mean
    absolute: Tensor  # sum of magnitudes
    low: Tensor
    high: Tensor

    def merged(self) -> Rows:
        """All rows as one: along the first dimension."""
        finite = self.finite.sum(0, keepdim=True)
        low, high = self.low.amin(0, keepdim=True), self.high.amax(0, keepdim=True)
        some = finite.clamp(min=1)
        mean = (self.mean * self.finite).sum(0, keepdim=True) / some
        around = (self.around + self.finite * (self.mean - mean).square()).sum(0, keepdim=True)
        total = {name: getattr(self, name).sum(0, keepdim=True) for name in ("zeros", "nans", "infs", "neg_infs")}
        absolute = self.absolute.sum(0, keepdim=True)
        return Rows(finite, mean=mean, around=around, absolute=absolute, low=low, high=high, **total)


def real(tensor: Tensor, wide: torch.dtype) -> Tensor:
    """The numbers as float32, or in double precision if float32 could not hold them; complex ones by magnitude."""
    if tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    if tensor.is_complex():
        infinite = tensor.real.isinf() | tensor.imag.isinf()
        tensor = torch.where(infinite, torch.inf, tensor.abs())
    exact = (torch.float32, torch.bfloat16, torch.float16, torch.bool)
    small = tensor.dtype in exact or tensor.element_size() == 1 or (tensor.element_size() == 2)
    return tensor.to(torch.float32 if small else wide)


def scale_of(numbers: Tensor, wide: torch.dtype) -> Tensor:
    """A power of two that keeps squares within bounds, nearly always 1."""
    is_double = wide is torch.float64
    if is_double and numbers.dtype is torch.float32:
        return torch.ones((), dtype=wide, device=numbers.device)
    huge, tiny, power = (1e145, 1e-145, 600.0) if is_double else (1e15, 1e-15, 70.0)
    magnitudes = numbers.nan_to_num(0.0, 0.0, 0.0).abs()
    largest = magnitudes.amax() if numbers.numel() else torch.zeros((), device=numbers.device)
    exponent = torch.where(largest > huge, -power, torch.where((largest > 0) & (largest < tiny), power, 0.0))
    return torch.exp2(exponent.to(wide))


def rows_of(numbers: Tensor, scale: Tensor) -> Rows:
    """What is to be known about each row of a matrix; `scale` also says in which precision to add."""
    rows, size = numbers.shape
    if size > AT_ONCE:
        parts = [rows_of(part, scale) for part in numbers.split(AT_ONCE, 1)]
        return _each(_combined(parts, torch.stack).merged(), lambda field: field[0])
    if rows > 1 and rows * size > AT_ONCE:
        parts = [rows_of(part, scale) for part in numbers.split(max(AT_ONCE // max(size, 1), 1))]
        return _combined(parts, torch.cat)
    is_finite = numbers.isfinite()
    finite = is_finite.sum(1)
    scaled = torch.where(is_finite, numbers, 0).to(scale.dtype) * scale
    low, high = _extremes(numbers, is_finite)
    mean = scaled.sum(1) / finite.clamp(min=1)
    mean = torch.where(low == high, low.to(scale.dtype) * scale, mean)  # equal numbers have no spread
    return Rows(
        finite=finite,
        zeros=(numbers == 0).sum(1),
        nans=numbers.isnan().sum(1),
        infs=numbers.isinf().sum(1),
        neg_infs=numbers.isneginf().sum(1),
        mean=mean,
        around=torch.where(is_finite, scaled - mean[:, None], 0).square().sum(1),
        absolute=scaled.abs().sum(1),
        low=low,
        high=high,
    )


def _extremes(numbers: Tensor, is_finite: Tensor) -> tuple[Tensor, Tensor]:
    if numbers.shape[1] == 0:
        return numbers.new_full((len(numbers),), torch.inf), numbers.new_full((len(numbers),), -torch.inf)
    low = torch.where(is_finite, numbers, torch.inf).amin(1)
    return low, torch.where(is_finite, numbers, -torch.inf).amax(1)


def _combined(parts: list[Rows], how: Callable[[list[Tensor]], Tensor]) -> Rows:
    return Rows(*(how([getattr(part, field.name) for part in parts]) for field in fields(Rows)))


def _each(rows: Rows, function: Callable[[Tensor], Tensor]) -> Rows:
    return Rows(*(function(getattr(rows, field.name)) for field in fields(Rows)))


Formula = Callable[[Rows, Tensor], Tensor]
FORMULAS: dict[str, Formula] = {}


def formula(name: str) -> Callable[[Formula], Formula]:
    """Register how a statistic follows from what is known about rows."""

    def register(function: Formula) -> Formula:
        FORMULAS[name] = function
        return function

    return register


def statistic(name: str, rows: Rows, scale: Tensor) -> Tensor:
    """One statistic of every row; numbers, as opposed to counts, are NaN for rows without finite numbers."""
    value = FORMULAS[name](rows, scale)
    return torch.where(rows.finite > 0, value.to(scale.dtype), torch.nan) if name not in _COUNTS else value


_COUNTS = ("zeros", "nans", "infs", "neg_infs")
for _name in _COUNTS:
    FORMULAS[_name] = lambda rows, scale, name=_name: getattr(rows, name)  # type: ignore[misc]


@formula("mean")
def _mean(rows: Rows, scale: Tensor) -> Tensor:
    return rows.mean / scale


@formula("std")
def _std(rows: Rows, scale: Tensor) -> Tensor:
    spread = (rows.around / rows.finite.clamp(min=1)).sqrt() / scale
    return torch.where(rows.low == rows.high, 0.0, spread)


@formula("abs_mean")
def _abs_mean(rows: Rows, scale: Tensor) -> Tensor:
    return rows.absolute / rows.finite.clamp(min=1) / scale


@formula("min")
def _min(rows: Rows, scale: Tensor) -> Tensor:
    return rows.low


@formula("max")
def _max(rows: Rows, scale: Tensor) -> Tensor:
    return rows.high


@formula("abs_max")
def _abs_max(rows: Rows, scale: Tensor) -> Tensor:
    return torch.maximum(-rows.low, rows.high)


@formula("norm")
def _norm(rows: Rows, scale: Tensor) -> Tensor:
    return (rows.around + rows.finite * rows.mean.square()).sqrt() / scale

"""Statistics with plain torch calls: for other devices, and where there are no compiled kernels.

add ─► formulas, distribution ─► one flat tensor of answers per request, on its device
collect ─► one copy per device ─► Answers
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from endoscope.schema.stats import HISTOGRAM_BINS, NUMBERS, QUANTILES, SAMPLE, UNIT
from endoscope.stats.distribution import histogram, quantiles
from endoscope.stats.formulas import Rows, real, rows_of, scale_of, statistic
from endoscope.stats.geometry import unit_axes

if TYPE_CHECKING:
    from endoscope.stats.answers import Answers

_COUNTS = ("zeros", "nans", "infs", "neg_infs")


class _Pending(NamedTuple):
    """Answers that are still on the device."""

    number: int  # of the request
    samples: int
    units: int
    answers: Tensor  # flat; floats as the integers that have the same bits


class Fused:
    """The requests of one call that are measured with torch."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._pending: dict[torch.device, list[_Pending]] = {}
        self._gaps: list[tuple[int, str]] = []

    def add(self, number: int, tensor: Tensor, batch: int | None, samples: int) -> None:
        """Start to measure a tensor; the device may still be busy when this returns."""
        how = self._answers.arrangements[number]
        units = how.units if how else 0
        self._answers.counts[0, number] = tensor.numel()
        try:
            with torch.no_grad():
                flat = _all_answers(tensor.detach(), batch, bool(samples), bool(units))
        except Exception as problem:
            self._gaps.append((number, f"torch could not measure it: {type(problem).__name__}: {problem}"))
            return
        self._pending.setdefault(tensor.device, []).append(_Pending(number, samples, units, flat))

    def collect(self) -> list[tuple[int, str]]:
        """Wait for all devices and write the answers; returns the gaps."""
        for pending in self._pending.values():
            everything = torch.cat([one.answers for one in pending]).cpu()
            for one, answers in zip(pending, everything.split([len(one.answers) for one in pending]), strict=True):
                self._write(one, answers)
        return self._gaps

    def _write(self, one: _Pending, flat: Tensor) -> None:
        answers, number = self._answers, one.number
        floats = flat.view(torch.float64 if flat.dtype is torch.int64 else torch.float32)
        numbers = len(NUMBERS) + len(QUANTILES)
        sizes = [numbers, len(_COUNTS), HISTOGRAM_BINS, len(SAMPLE) * one.samples, len(UNIT) * one.units]
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        answers.numbers[:, number] = floats[: ends[0]].numpy()
        answers.counts[1:, number] = flat[ends[0] : ends[1]].numpy()
        answers.histograms[number] = flat[ends[1] : ends[2]].numpy()
        answers.trim(number)
        row, unit = answers.sample_starts[number], answers.unit_starts[number]
        table = floats[ends[2] : ends[3]].reshape(len(SAMPLE), -1)
        answers.samples[:, row : row + one.samples] = table.to(torch.float32).numpy()
        table = floats[ends[3] : ends[4]].reshape(len(UNIT), -1)
        answers.units[:, unit : unit + one.units] = table.to(torch.float32).numpy()


def precision_of(device: torch.device) -> torch.dtype:
    """The widest floats that a device can do."""
    return torch.float32 if device.type == "mps" else torch.float64


def _all_answers(tensor: Tensor, batch: int | None, samples: bool, units: bool) -> Tensor:
    """Numbers, quantiles, counts, histogram, samples, units: one flat tensor of integers."""
    wide = precision_of(tensor.device)
    is_integer = not (tensor.is_floating_point() or tensor.is_complex())
    numbers = real(tensor, wide)
    scale = scale_of(numbers, wide)
    axis = 0 if batch is None else batch
    by_sample = numbers.reshape(1, -1) if batch is None else _rows(numbers, (axis,))
    rows = rows_of(by_sample, scale)
    whole = rows.merged() if len(by_sample) else rows_of(numbers.reshape(1, -1), scale)
    flat = numbers.reshape(-1)
    low, high = whole.low.to(wide), whole.high.to(wide)
    floats = [
        *(statistic(name, whole, scale) for name in NUMBERS),
        quantiles(flat, whole.finite, low, high, is_integer=is_integer),
    ]
    counts = [*(statistic(name, whole, scale) for name in _COUNTS), histogram(flat)]
    tables = _table(SAMPLE, rows, scale) if samples else []
    if units:
        axes = unit_axes(tensor.shape, batch)
        tables += _table(UNIT, rows_of(_rows(numbers, axes), scale), scale)
    same_bits = torch.int32 if wide is torch.float32 else torch.int64
    return torch.cat(
        [part.to(wide).view(same_bits) for part in floats]
        + [part.to(same_bits) for part in counts]
        + [part.to(wide).view(same_bits) for part in tables]
    )


def _rows(numbers: Tensor, axes: tuple[int, ...]) -> Tensor:
    """A matrix with one row for every position along the given axes."""
    first = numbers.movedim(axes, tuple(range(len(axes))))
    rows = math.prod(first.shape[: len(axes)])
    return first.reshape(rows, numbers.numel() // rows if rows else 0)


def _table(names: tuple[str, ...], rows: Rows, scale: Tensor) -> list[Tensor]:
    return [statistic(name, rows, scale) for name in names]

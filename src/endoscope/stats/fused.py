"""Statistics with plain torch calls: for other devices, and where there are no compiled kernels.

add ─► tensors of the same kind together
start ─► reductions, distribution: small answers, on the device
collect ─► one copy per device ─► formulas, on the host ─► Answers

Tensors of the same shape are measured side by side, because on such devices a call costs more than what it does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from endoscope.schema.stats import COUNTS, NUMBERS, QUANTILES, SAMPLE, UNIT
from endoscope.schema.units import unit_axes
from endoscope.stats import distribution, reductions
from endoscope.stats.formulas import Rows, statistic

if TYPE_CHECKING:
    from endoscope.stats.answers import Answers


class _Kind(NamedTuple):
    """What tensors that are measured side by side have in common."""

    device: torch.device
    dtype: torch.dtype
    shape: torch.Size
    batch: int | None
    samples: int
    units: int


class _Pending(NamedTuple):
    """Answers that are still on the device."""

    kind: _Kind
    numbers: list[int]  # of the requests
    real: torch.dtype  # in which they were measured
    sizes: list[tuple[int, int]]  # of parts and rows, for the samples and then for the units
    parts: list[Tensor]


class Fused:
    """The requests of one call that are measured with torch."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._groups: dict[_Kind, list[tuple[int, Tensor]]] = {}
        self._pending: dict[torch.device, list[_Pending]] = {}
        self._gaps: list[tuple[int, str]] = []

    def add(self, number: int, tensor: Tensor, batch: int | None, samples: int, units: int) -> None:
        """Ask for a tensor to be measured."""
        self._answers.set_count(number, tensor.numel())
        if tensor.numel():
            kind = _Kind(tensor.device, tensor.dtype, tensor.shape, batch, samples, units)
            self._groups.setdefault(kind, []).append((number, tensor.detach()))
        elif samples:
            start = self._answers.plan.sample_starts[number]
            counts = [place for place, name in enumerate(SAMPLE) if name in COUNTS]
            self._answers.samples[counts, start : start + samples] = 0

    def start(self) -> None:
        """Put all work into the queues of the devices; they may still be busy when this returns."""
        with torch.no_grad():
            for kind, members in self._groups.items():
                at_once = distribution.most_together(_measured_in(kind), math.prod(kind.shape))
                for first in range(0, len(members), at_once):
                    self._start(kind, members[first : first + at_once])
        self._groups.clear()

    def _start(self, kind: _Kind, members: list[tuple[int, Tensor]]) -> None:
        try:
            self._pending.setdefault(kind.device, []).append(_reduced(kind, members))
        except Exception as problem:  # whatever a device cannot do must not stop a training run
            reason = f"torch could not measure it: {type(problem).__name__}: {problem}"
            self._gaps += [(number, reason) for number, _ in members]

    def collect(self) -> list[tuple[int, str]]:
        """Wait for all devices and write the answers; returns the gaps."""
        for groups in self._pending.values():
            with torch.no_grad(), np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                self._finish(groups)
        return self._gaps

    def _finish(self, groups: list[_Pending]) -> None:
        """One copy for all groups of a device."""
        flat = [_as_integers(part) for group in groups for part in group.parts]
        host = iter(torch.cat(flat).cpu().split([len(part) for part in flat]))
        for group in groups:
            arrays: list[NDArray[Any]] = [
                _back(next(host), part).numpy().astype(_kind_of(part)) for part in group.parts
            ]
            _Host(self._answers, group, arrays).write()


def _measured_in(kind: _Kind) -> torch.dtype:
    return reductions.real(torch.empty(0, dtype=kind.dtype), reductions.precision_of(kind.device)).dtype


def _reduced(kind: _Kind, members: list[tuple[int, Tensor]]) -> _Pending:
    """Put everything that touches all numbers into the device's queue."""
    tensors = torch.stack([tensor for _, tensor in members])
    wide = reductions.precision_of(kind.device)
    numbers = reductions.real(tensors, wide)
    by_sample = numbers if kind.batch is None else numbers.movedim(kind.batch + 1, 1)
    samples = 1 if kind.batch is None else kind.shape[kind.batch]
    group = reductions.Group(by_sample.reshape(len(members), samples, -1), wide)
    facts = [group.samples()]
    if kind.units:
        facts.append(group.units(_by_unit(numbers, kind)))
    found = distribution.distribution(numbers.reshape(len(members), -1))
    ranks = found.exact if found.places is None else found.places
    assert ranks is not None
    parts = [group.scale, found.coarse, ranks, *(fact.facts for fact in facts)]
    return _Pending(
        kind, [number for number, _ in members], numbers.dtype, [(fact.part_size, fact.size) for fact in facts], parts
    )


def _by_unit(numbers: Tensor, kind: _Kind) -> Tensor:
    """[tensors, numbers of a unit, units]."""
    axes = [1 + axis for axis in unit_axes(kind.shape, kind.batch)]
    last = numbers.movedim(axes, list(range(-len(axes), 0)))
    return last.reshape(len(numbers), -1, kind.units)


def _as_integers(part: Tensor) -> Tensor:
    """Flat, with the same bits, as integers as wide as the device's floats."""
    width = torch.int32 if reductions.precision_of(part.device) is torch.float32 else torch.int64
    if part.is_floating_point():
        return part.to(reductions.precision_of(part.device)).reshape(-1).view(width)
    return part.to(width).reshape(-1)


def _back(flat: Tensor, part: Tensor) -> Tensor:
    if part.is_floating_point():
        flat = flat.view(torch.float32 if flat.dtype is torch.int32 else torch.float64)
    return flat.reshape(part.shape)


def _kind_of(part: Tensor) -> type:
    return np.float64 if part.is_floating_point() else np.int64


class _Host:
    """The answers of one group, in memory of the host."""

    def __init__(self, answers: Answers, group: _Pending, arrays: list[NDArray[Any]]) -> None:
        self.answers = answers
        self.group = group
        scale, self.coarse, self.ranks = arrays[:3]
        facts = zip(arrays[3:], group.sizes, strict=True)
        self.rows = [reductions.rows_of(fact, *sizes, scale) for fact, sizes in facts]

    def write(self) -> None:
        answers, kind, whole = self.answers, self.group.kind, self.rows[0].merged(1)
        columns = {name: statistic(name, whole) for name in (*COUNTS, *NUMBERS)}
        columns |= dict(zip(QUANTILES, self._quantiles(whole).T, strict=True))
        answers.write(self.group.numbers, columns, distribution.histogram(self.coarse))
        if kind.samples:
            self._fill(answers.samples, answers.plan.sample_starts, SAMPLE, self.rows[0])
        if kind.units:
            self._fill(answers.units, answers.plan.unit_starts, UNIT, self.rows[1])

    def _fill(self, table: NDArray[np.float32], starts: list[int], names: tuple[str, ...], rows: Rows) -> None:
        for place, name in enumerate(names):
            for number, part in zip(self.group.numbers, statistic(name, rows), strict=True):
                table[place, starts[number] : starts[number] + len(part)] = part

    def _quantiles(self, whole: Rows) -> NDArray[np.float64]:
        values = self.ranks
        if values.ndim == 3:
            dtype = self.group.kind.dtype
            is_integer = not (dtype.is_floating_point or dtype.is_complex)
            values = distribution.numbers_at(values, self.group.real, whole.low, whole.high, is_integer=is_integer)
        return distribution.quantiles(values, whole.finite)

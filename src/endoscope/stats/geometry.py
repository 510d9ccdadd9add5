"""How a tensor lies in memory, and which of its numbers belong to which sample and unit.

Statistics do not depend on the order in which a sample's numbers are read. So its dimensions are put into the
order of memory and joined where they can be; most samples turn out to be one dense piece, whatever was
transposed before. Only the units have to be brought back into the tensor's order, at the end.

No torch in here: shapes and strides are integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from endoscope.schema.units import unit_axes
from endoscope.stats.kernels import COLUMNS, NO_UNITS, RUNS

Dim = tuple[int, int]  # size, stride


class Arrangement(NamedTuple):
    """A tensor as samples, and a sample as dimensions in the order in which they are read."""

    samples: int
    sample_stride: int
    sample_size: int
    dims: tuple[Dim, ...]  # () for a dense sample
    unit_kind: int
    units: int
    unit_shape: tuple[int, ...]
    unit_order: tuple[int, ...]  # the unit's axes in the order they were read, () if that is their own order


def batch_axis(shape: Sequence[int], batch_dim: int | None) -> int | None:
    """The batch dimension as a number from 0 on; None if the tensor has no such dimension."""
    if batch_dim is None or not -len(shape) <= batch_dim < len(shape):
        return None
    return batch_dim % len(shape)


def arranged(shape: Sequence[int], strides: Sequence[int] | None, batch: int | None, want_units: bool) -> Arrangement:
    """The arrangement of a tensor; without strides it is contiguous."""
    if strides is None:
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    samples, sample_stride = (1, 0) if batch is None else (shape[batch], strides[batch])
    others = [axis for axis in range(len(shape)) if axis != batch]
    size = math.prod(shape[axis] for axis in others)
    axes = unit_axes(shape, batch) if want_units else ()
    order = sorted((axis for axis in others if shape[axis] != 1), key=lambda axis: _nearness(strides[axis]))
    kind = NO_UNITS
    unit_order: tuple[int, ...] = ()
    if axes and len(axes) == len(others):
        kind, unit_order = COLUMNS, _positions(order, axes)
    elif axes:
        feature = axes[0]
        if order and order[-1] == feature:
            kind = COLUMNS
        else:
            kind = RUNS
            order = [feature, *(axis for axis in order if axis != feature)]
    dims = _joined([(shape[axis], strides[axis]) for axis in order])
    if size <= 1 or dims == [(size, 1)]:
        dims = []
    unit_shape = tuple(shape[axis] for axis in axes)
    units = math.prod(unit_shape) if axes else 0
    return Arrangement(samples, sample_stride, size, tuple(dims), kind, units, unit_shape, unit_order)


def _nearness(stride: int) -> float:
    """Outer dimensions first; a dimension that repeats the same memory is outermost."""
    return -stride if stride else -math.inf


def _positions(order: list[int], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The order of reading as positions among the unit's axes; () if it is their own order."""
    read = [axes.index(axis) for axis in order]
    return () if read == sorted(read) else (*read, *(axis for axis in range(len(axes)) if axis not in read))


def _joined(dims: list[Dim]) -> list[Dim]:
    """Neighbouring dimensions that step through memory like one, as one."""
    joined: list[Dim] = []
    for size, stride in dims:
        if size == 1:
            continue
        if joined and joined[-1][1] == size * stride:
            joined[-1] = (joined[-1][0] * size, stride)
        else:
            joined.append((size, stride))
    return joined

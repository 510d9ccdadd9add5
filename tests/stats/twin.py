"""Every statistic once more, slowly: its twin, which is a few lines of plain Python, over `.tolist()`."""

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence

import torch

from endoscope.schema.stats import HISTOGRAM_BINS, ZERO_BIN, Statistic, histogram_edges, registered

EDGES = histogram_edges()


def numbers_of(tensor: torch.Tensor) -> list[float]:
    """The elements as Python floats, in the order of the tensor; complex ones by their magnitude."""
    if tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    if tensor.is_floating_point() and tensor.dtype is not torch.float64:
        tensor = tensor.to(torch.float32)  # .tolist() does not know all small types
    flat = tensor.detach().reshape(-1).tolist()
    return [abs(x) if isinstance(x, complex) else float(x) for x in flat]


def whole(numbers: Sequence[float]) -> dict[str, float]:
    """Statistics of the whole, or of a sample, or of a unit: the definitions are the same."""
    finite = [x for x in numbers if math.isfinite(x)]
    return {one.name: of_one(one, numbers if one.is_count else finite) for one in registered()}


def of_one(statistic: Statistic, numbers: Sequence[float]) -> float:
    assert statistic.twin is not None
    return statistic.twin(numbers) if numbers or statistic.is_count else math.nan


def histogram(numbers: Iterable[float]) -> list[int]:
    """All 257 counts, found by looking each number up among the edges."""
    counts = [0] * HISTOGRAM_BINS
    for x in numbers:
        if math.isfinite(x):
            counts[bin_of(x)] += 1
    return counts


def bin_of(x: float) -> int:
    if x == 0:
        return ZERO_BIN
    right = EDGES[ZERO_BIN + 1 :]  # edges of the positive bins
    rank = min(bisect.bisect_right(right, abs(x)) - 1, len(right) - 2)
    return ZERO_BIN + 1 + rank if x > 0 else ZERO_BIN - 1 - rank


def samples(tensor: torch.Tensor, batch: int) -> list[list[float]]:
    """The numbers of each sample."""
    return [numbers_of(tensor.select(batch, index)) for index in range(tensor.shape[batch])]


def units(tensor: torch.Tensor, batch: int, cap: int = 4096) -> tuple[tuple[int, ...], list[list[float]]]:
    """The shape of the units and the numbers of each."""
    shape = tensor.shape
    others = [axis for axis in range(tensor.dim()) if axis != batch]
    if tensor.numel() == 0 or not others:
        return (), []
    if math.prod(shape[axis] for axis in others) > cap:
        others = [1] if tensor.dim() >= 4 and batch == 0 else [others[-1]]
        if shape[others[0]] > cap:
            return (), []
    found = []
    for position in itertools.product(*(range(shape[axis]) for axis in others)):
        part = tensor
        for axis, index in sorted(zip(others, position, strict=True), reverse=True):
            part = part.select(axis, index)
        found.append(numbers_of(part))
    return tuple(shape[axis] for axis in others), found

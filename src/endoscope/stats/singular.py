"""Singular values of a matrix, and how many of them count: dear, so only on request and rarely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from endoscope.stats.elements import NotMeasurable, as_plain
from endoscope.stats.reductions import precision_of, real

TOP = 16
ALL_UP_TO = 2048  # rows or columns, whichever are fewer; of larger matrices only the largest values are found
_ROUNDS = 12


class Spectrum(NamedTuple):
    """What `spectrum` found; NaN where there is no answer."""

    singular_values: NDArray[np.float64]  # the largest, in descending order
    effective_rank: float  # exp(entropy of the singular values divided by their sum)


def spectrum(tensor: Tensor, top: int = TOP) -> Spectrum:
    """The largest singular values and the effective rank of a matrix.

    A tensor with more dimensions is a matrix of its first dimension by all others, as for the kernels of a
    convolution; one with fewer is a single row. Numbers that are not finite have no singular values. Never raises
    because of a tensor.
    """
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            matrix = _matrix(tensor)
            if matrix.numel() == 0 or not bool(matrix.isfinite().all()):
                return _unknown(min(top, *matrix.shape))
            return _of(matrix, top)
    except (NotMeasurable, RuntimeError, NotImplementedError):
        return _unknown(0)


def _matrix(tensor: Tensor) -> Tensor:
    plain = as_plain(tensor)
    rows = plain.shape[0] if plain.dim() > 1 else 1
    matrix = plain.reshape(rows, plain.numel() // rows if rows else 0)
    if matrix.is_complex():
        return matrix.to(torch.complex128 if matrix.dtype is torch.complex128 else torch.complex64)
    return real(matrix, precision_of(matrix.device))


def _of(matrix: Tensor, top: int) -> Spectrum:
    largest = float(matrix.abs().max())
    if largest == 0.0:
        return Spectrum(np.zeros(min(top, *matrix.shape)), 0.0)
    scaled = matrix / largest  # squares of huge or tiny numbers would leave their range
    if min(matrix.shape) > ALL_UP_TO:
        return Spectrum(largest * _largest(scaled, top).double().cpu().numpy(), float("nan"))
    values = torch.linalg.svdvals(scaled).double().cpu()
    shares = values / values.sum()
    entropy = -torch.special.xlogy(shares, shares).sum()
    return Spectrum(largest * values[:top].numpy(), float(entropy.exp()))


def _largest(matrix: Tensor, top: int) -> Tensor:
    """The largest singular values by repeated multiplication, from the same directions every time."""
    generator = torch.Generator().manual_seed(0)  # of our own: the global one is the user's
    directions = torch.randn(matrix.shape[1], top + 8, generator=generator)
    subspace = directions.to(matrix)
    for _ in range(_ROUNDS):
        subspace = torch.linalg.qr(matrix @ subspace).Q
        subspace = torch.linalg.qr(matrix.mH @ subspace).Q
    values: Tensor = torch.linalg.svdvals(matrix @ subspace)
    return values[:top]


def _unknown(count: int) -> Spectrum:
    return Spectrum(np.full(count, np.nan), float("nan"))

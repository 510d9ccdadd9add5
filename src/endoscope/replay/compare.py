"""Are two tensors equal, and if not, where do they first differ?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

#: A second run may use another instruction order (threads, alignment); more than this many units of the last place,
#: relative to the largest value, is a difference. By size of the type in bytes; coarser types round the same way.
COARSE_UNITS = {1: 0, 2: 2}
UNITS_OF_LAST_PLACE = 16


def tolerance(dtype: torch.dtype) -> float:
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return COARSE_UNITS.get(dtype.itemsize, UNITS_OF_LAST_PLACE) * torch.finfo(dtype).eps


@dataclass(frozen=True, slots=True)
class Difference:
    reason: str
    index: tuple[int, ...] | None = None
    expected: Any = None
    found: Any = None


def same(expected: torch.Tensor, found: torch.Tensor) -> bool:
    """Bit for bit, NaN equal to NaN."""
    if expected is found:
        return True
    if expected.is_meta or found.is_meta:  # no numbers: shape and type are all there is
        return expected.shape == found.shape and expected.dtype == found.dtype
    if expected.dtype != found.dtype or expected.layout != found.layout:
        return False
    if _shape(expected) != _shape(found):
        return False
    expected, found = plain(expected), plain(found)
    if expected.numel() == 0 or torch.equal(expected, found):
        return True
    if not (expected.is_floating_point() or expected.is_complex()) or _first_differ(expected, found):
        return False
    return bool(torch.allclose(_wide(expected), _wide(found), rtol=0.0, atol=0.0, equal_nan=True))


def _first_differ(expected: torch.Tensor, found: torch.Tensor) -> bool:
    """Tensors that differ mostly do so early on: a cheap look before the careful one."""
    for a, b in zip(expected.reshape(-1)[:8].tolist(), found.reshape(-1)[:8].tolist(), strict=True):
        if a != b and not (a != a and b != b):
            return True
    return False


def difference(expected: torch.Tensor, found: torch.Tensor) -> tuple[Difference | None, float]:
    """None if equal within the tolerance, and the largest deviation relative to the largest value."""
    if same(expected, found):
        return None, 0.0
    if _shape(expected) != _shape(found):
        return Difference(f"kept shape {_shape(expected)}, replayed shape {_shape(found)}"), float("inf")
    if expected.dtype != found.dtype:
        return Difference(f"kept dtype {expected.dtype}, replayed dtype {found.dtype}"), float("inf")
    a, b = _wide(plain(expected, bits=False)), _wide(plain(found, bits=False))
    if a.shape != b.shape:
        return Difference("kept and replayed values differ in their inner structure"), float("inf")
    deviations, scale = _deviations(a, b)
    deviation = float(deviations.max()) / scale
    limit = tolerance(expected.dtype)
    if deviation <= limit:
        return None, deviation
    index = tuple(int(i) for i in (deviations > limit * scale).nonzero()[0])
    return Difference("kept and replayed values differ", index, a[index].item(), b[index].item()), deviation


def _shape(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The shape; of a nested tensor the shapes of its parts."""
    return tuple(tuple(part.shape) for part in tensor.unbind()) if tensor.is_nested else tuple(tensor.shape)


def plain(tensor: torch.Tensor, bits: bool = True) -> torch.Tensor:
    """A dense, ordinary tensor with the same numbers; the bits of types that torch cannot compare."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        return tensor.int_repr()
    if bits and tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:
        return tensor.view(torch.uint8)  # fp8 cannot be compared, its bits can
    if tensor.is_nested:
        parts = [part.reshape(-1) for part in tensor.unbind()]
        return torch.cat(parts) if parts else torch.empty(0)
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """A type in which comparisons are implemented (fp8 has none) and which holds every value exactly."""
    if tensor.dtype in (torch.float64, torch.complex128, torch.float32, torch.complex64):
        return tensor
    if tensor.is_complex():
        return tensor.to(torch.complex64)
    return tensor.float() if tensor.is_floating_point() else tensor


def _deviations(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Absolute difference per element (infinite where only one is finite), and the largest finite magnitude."""
    wide = torch.complex128 if a.is_complex() else torch.float64
    x, y = a.to(wide), b.to(wide)
    agree = torch.isclose(x, y, rtol=0.0, atol=0.0, equal_nan=True)
    finite = torch.isfinite(x) & torch.isfinite(y)
    apart = torch.where(finite, (x - y).abs(), torch.full_like(x.abs(), float("inf")))
    apart = torch.where(agree, torch.zeros_like(apart), apart)
    scale = float(x.abs()[finite].max()) if bool(finite.any()) else 1.0
    return apart, max(scale, 1e-300)

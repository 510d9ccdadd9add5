"""Which tensors the compiled kernels can read where they lie, and how others are brought into that form."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch

from endoscope.stats import kernels as at

MOST_ELEMENTS = 2**32 - 1  # counts of a histogram are 32-bit
MOST_DENSE = 2**28  # elements; a sparse tensor beyond that is not written out

# An unread copy-on-write tensor would be copied by data_ptr(); newer versions can look without touching.
address_of = getattr(torch.Tensor, "const_data_ptr", torch.Tensor.data_ptr)


class Element(NamedTuple):
    """How the kernels read a type of element."""

    code: int
    lookup: int  # address of the table for 8-bit types
    is_integer: bool


class NotMeasurable(Exception):
    """The numbers of a tensor cannot be had; the message says why."""


_CODES = {
    torch.float32: at.FLOAT32, torch.bfloat16: at.BFLOAT16, torch.float16: at.FLOAT16,
    torch.int16: at.INT16, torch.uint16: at.UINT16, torch.complex64: at.COMPLEX64, torch.complex32: at.COMPLEX32,
    torch.float64: at.FLOAT64, torch.int32: at.INT32, torch.uint32: at.UINT32,
    torch.int64: at.INT64, torch.uint64: at.UINT64, torch.complex128: at.COMPLEX128,
    torch.bool: at.BYTE, torch.uint8: at.BYTE, torch.int8: at.BYTE,
}  # fmt: skip
for _name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
    if hasattr(torch, _name):  # depends on the version of torch
        _CODES[getattr(torch, _name)] = at.BYTE

_tables: dict[torch.dtype, torch.Tensor] = {}  # kept for good: the kernels know their addresses


@cache
def element_of(dtype: torch.dtype) -> Element | None:
    """How to read elements of a type; None if the kernels cannot."""
    code = _CODES.get(dtype)
    if code is None:
        return None
    is_float = dtype.is_floating_point or dtype.is_complex
    return Element(code, _lookup(dtype) if code == at.BYTE else 0, not is_float)


def _lookup(dtype: torch.dtype) -> int:
    """All 256 elements of an 8-bit type as float32."""
    every_byte = torch.tensor(range(256), dtype=torch.uint8)
    # A bool is a byte that is not zero; viewing other bytes as bool is undefined.
    values = every_byte != 0 if dtype is torch.bool else every_byte.view(dtype)
    _tables[dtype] = values.to(torch.float32)
    return _tables[dtype].data_ptr()


def locate(tensor: torch.Tensor) -> int | None:
    """The address at which the kernels can read this tensor as it is; None if they cannot."""
    if not (
        tensor.is_cpu
        and tensor.layout is torch.strided
        and tensor.dtype in _CODES
        and not tensor.is_nested
        and not tensor.is_neg()
    ):
        return None
    address: int = address_of(tensor)
    if tensor.storage_offset() and not tensor.untyped_storage().nbytes():
        return None  # its memory was given back
    return address if address or not tensor.numel() else None


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers as a dense tensor of an ordinary type, on the same device; raises NotMeasurable."""
    tensor = _unwrapped(tensor).detach()
    if tensor.is_meta:
        raise NotMeasurable("it is on the meta device, where tensors have shapes but no numbers")
    if tensor.is_nested:
        raise NotMeasurable("it is a nested tensor, whose samples have different shapes")
    if tensor.numel() > MOST_ELEMENTS:
        raise NotMeasurable(f"it has {tensor.numel()} elements, more than {MOST_ELEMENTS} are not counted")
    if tensor.layout is torch.strided and tensor.numel() and is_gone(tensor):
        raise NotMeasurable("its memory was freed, as sharded training does with parameters not in use")
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        if tensor.numel() > MOST_DENSE:
            raise NotMeasurable(f"it is sparse and would have {tensor.numel()} elements when written out")
        tensor = tensor.to_dense()
    if tensor.is_neg() or tensor._is_zerotensor():
        tensor = tensor.clone()
    if element_of(tensor.dtype) is None:
        tensor = tensor.to(torch.float32)
    return tensor


def is_gone(tensor: torch.Tensor) -> bool:
    """Is there less memory than the tensor needs?"""
    last = tensor.storage_offset() + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return not tensor._is_zerotensor() and tensor.untyped_storage().nbytes() < (last + 1) * tensor.element_size()


def _unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """What a tensor subclass holds in this process."""
    kind = type(tensor)
    if kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        return tensor
    if hasattr(tensor, "to_local"):  # a distributed tensor: this rank's part of it
        local = tensor.to_local()
        if isinstance(local, torch.Tensor) and type(local).__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
            return local
    raise NotMeasurable(f"it is a {kind.__module__}.{kind.__qualname__}, which computes its numbers in its own way")

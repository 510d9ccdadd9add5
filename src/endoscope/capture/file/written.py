"""Tensors on their way into a file: which numbers are written, each piece of memory once.

A tensor that only shows the memory of another one (a transpose, a reshape, an output) is written as a number and its
strides. What a file cannot hold (sparse, nested and quantised tensors, and those without memory) is said, not dropped.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.patch.torch_private import DisableTorchFunction, out_of_sight
from endoscope.capture.record.regions import unwrapped

#: Of torch -> of safetensors.
NAMES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
    torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.float32: "F32", torch.float64: "F64", torch.complex64: "C64", torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2", torch.float8_e4m3fnuz: "F8_E4M3FNUZ", torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.complex128: "F64", torch.complex32: "F16",  # pairs
}  # fmt: skip
if hasattr(torch, "float8_e8m0fnu"):  # not in older versions
    NAMES[torch.float8_e8m0fnu] = "F8_E8M0"
_PAIRS = (torch.complex128, torch.complex32)


class CannotWrite(Exception):
    """Why a tensor cannot stand in a file."""


class Piece(NamedTuple):
    """A piece of memory, and how a tensor shows it."""

    dtype: torch.dtype
    shape: tuple[int, ...]  # in the order of memory
    strides: tuple[int, ...] | None  # of the tensor over it; None: one element behind the other
    memory: Tensor | None  # None where it is read when it is needed
    bytes: Callable[[], Any]
    shown: tuple[int, ...] | None = None  # of the tensor; None: that of its slot


def as_piece(tensor: Tensor) -> Piece:
    """Raises CannotWrite."""
    with torch.no_grad(), DisableTorchFunction(), out_of_sight():
        try:
            memory, strides = _as_it_lies(_plain(tensor))
        except CannotWrite:
            raise
        except Exception as error:  # a subclass of somebody else, memory that is gone
            raise CannotWrite(f"a {type(tensor).__name__} that cannot be read ({error})") from None
    return Piece(memory.dtype, tuple(memory.shape), strides, memory, lambda: _bytes_of(memory))


def _bytes_of(memory: Tensor) -> Any:
    with torch.no_grad(), DisableTorchFunction(), out_of_sight():
        flat = memory.as_strided((memory.numel(),), (1,))  # `reshape` may leave a single element a wide stride
        return flat.cpu().view(torch.uint8).numpy().data


class Placed(NamedTuple):
    """Where a tensor is found again."""

    number: int
    strides: tuple[int, ...] | None  # None: one element behind the other


class Tensors:
    """All tensors of one file. They are collected first, because their sizes stand in front of the first of them."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []  # they hold their memory, which must not go to others meanwhile
        self._known: dict[Any, int] = {}

    def add(self, tensor: Tensor) -> Placed:
        """Raises CannotWrite."""
        return self.add_piece(as_piece(tensor))

    def add_piece(self, piece: Piece) -> Placed:
        key = None
        if piece.memory is not None and piece.memory.numel():
            memory = piece.memory
            key = (str(memory.device), memory.data_ptr(), memory.numel(), memory.dtype)
        number = self._known.get(key) if key is not None else None
        if number is None:
            number = len(self._pieces)
            self._pieces.append(piece)
            if key is not None:
                self._known[key] = number
        return Placed(number, piece.strides)

    def write(self, file: IO[bytes]) -> list[int]:
        """As safetensors; returns the checksum of each."""
        head, end = {}, 0
        for number, piece in enumerate(self._pieces):
            size = math.prod(piece.shape) * piece.dtype.itemsize
            shape = [*piece.shape, 2] if piece.dtype in _PAIRS else list(piece.shape)
            head[str(number)] = {"dtype": NAMES[piece.dtype], "shape": shape, "data_offsets": [end, end + size]}
            end += size
        text = json.dumps(head, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        sums = []
        for piece in self._pieces:
            data = piece.bytes()
            sums.append(zlib.crc32(data))
            file.write(data)
        return sums


def _plain(tensor: Tensor) -> Tensor:
    """The same numbers, as an ordinary tensor."""
    tensor = unwrapped(tensor)
    if tensor.layout is not torch.strided:
        raise CannotWrite(f"a sparse tensor ({tensor.layout})")
    if tensor.is_nested:
        raise CannotWrite("a nested tensor")
    if tensor.is_quantized:
        raise CannotWrite("a quantised tensor")
    if tensor.device.type == "meta":
        raise CannotWrite("a tensor on the device meta, which has no values")
    if tensor.dtype not in NAMES:
        raise CannotWrite(f"a tensor of the type {tensor.dtype}, for which the format has no name")
    if type(tensor) not in (Tensor, torch.nn.Parameter):
        if tensor.untyped_storage().data_ptr() == 0 and tensor.numel():
            raise CannotWrite(f"a {type(tensor).__name__}, which has no memory of its own")
        tensor = tensor.as_subclass(Tensor)
    return tensor.detach().resolve_conj().resolve_neg()


def _as_it_lies(tensor: Tensor) -> tuple[Tensor, tuple[int, ...] | None]:
    """The elements in the order of memory, each once; and the strides of the tensor over them."""
    if tensor.is_contiguous():
        return tensor, None
    strides = tensor.stride()
    once = tensor
    for dim, stride in enumerate(strides):
        if stride == 0 and tensor.shape[dim] > 1:
            once = once.narrow(dim, 0, 1)
    memory = once.permute(*sorted(range(tensor.dim()), key=lambda dim: (-strides[dim], dim)))
    if not memory.is_contiguous():
        return tensor.contiguous(), None
    return memory, strides

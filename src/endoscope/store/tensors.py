"""Raw values as safetensors files, by the package of that name.

A tensor is named by the number of its key. Which samples it holds is in the file's metadata, as JSON:
`samples` = {"12": [0, 3, 5]}; a tensor that is not listed there is whole. `pairs` = [7] lists complex numbers of
double precision, for which the format has no name: real and imaginary part, side by side. The package knows bfloat16
and 8-bit floats, numpy does not: their bits are written and read as integers, and decoded here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, TensorSpec, safe_open, serialize

from endoscope.schema.recording import RAW_DTYPES, RawValues
from endoscope.store.sealed import load

#: Floats of 8 bits: bits of the exponent, its bias, and the numbers that do not follow from their bits.
_FLOATS8: dict[str, tuple[int, int, dict[int, float]]] = {
    "F8_E4M3": (4, 7, {0x7F: nan, 0xFF: nan}),
    "F8_E5M2": (5, 15, {0x7C: inf, 0xFC: -inf, **dict.fromkeys((0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF), nan)}),
    "F8_E4M3FNUZ": (4, 8, {0x80: nan}),
    "F8_E5M2FNUZ": (5, 16, {0x80: nan}),
}
NUMPY = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8",
    "BF16": "<u2", **dict.fromkeys(_FLOATS8, "u1"), "F8_E8M0": "u1",  # bits, decoded below
}  # fmt: skip


class CannotStore(ValueError):
    """Values of a kind for which the file format has no name."""


class Entry(NamedTuple):
    """One tensor of a file."""

    dtype: str  # safetensors' name
    shape: tuple[int, ...]
    start: int  # bytes, from the start of the file
    end: int


def encode(values: Sequence[tuple[RawValues, str]]) -> bytes:
    """A whole file; each tensor comes with the name of its dtype."""
    arrays = {raw.key: _stored(np.asarray(raw.array)) for raw, _ in values}  # they must live until the end
    specs = {
        str(raw.key): TensorSpec(
            dtype=_name_of(np.asarray(raw.array).dtype, dtype),
            shape=arrays[raw.key].shape,
            data_ptr=arrays[raw.key].ctypes.data,
            data_len=arrays[raw.key].nbytes,
        )
        for raw, dtype in values
    }
    samples = {str(raw.key): [int(sample) for sample in raw.samples] for raw, _ in values if raw.samples is not None}
    pairs = [raw.key for raw, _ in values if np.asarray(raw.array).dtype.char == "D"]
    metadata = {
        name: json.dumps(found, separators=(",", ":")) for name, found in (("samples", samples), ("pairs", pairs))
    }
    return bytes(serialize(specs, metadata))


def check(array: Any, dtype: str) -> None:
    """Raise CannotStore unless `encode` can write this array."""
    _name_of(np.asarray(array).dtype, dtype)


class TensorFile:
    """A safetensors file whose bytes are in memory, usually mapped; tensors are decoded when asked for."""

    def __init__(self, path: Path, data: memoryview) -> None:
        """ValueError if the file is none of ours."""
        try:
            with safe_open(path, framework="np") as file:
                metadata = file.metadata() or {}
                described = [(name, file.get_slice(name)) for name in file.offset_keys()]
                shapes = {int(name): (one.get_dtype(), tuple(one.get_shape())) for name, one in described}
            self.samples = _samples_in(metadata.get("samples", "{}"))
            self._pairs = frozenset(json.loads(metadata.get("pairs", "[]")))
            self.entries = _places(shapes, len(data))
            self._check()
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"not a file of raw values: {error}") from error
        self._data = data

    def array(self, key: int, position: int | None = None) -> np.ndarray:
        """The tensor of a key, or one of the samples in it; a copy that belongs to the caller."""
        entry = self.entries[key]
        stored = np.frombuffer(self._data[entry.start : entry.end], NUMPY[entry.dtype]).reshape(entry.shape)
        values = decode(stored if position is None else stored[position], entry.dtype)
        return values.view(np.complex128)[..., 0] if key in self._pairs else values

    def _check(self) -> None:
        for key, samples in self.samples.items():
            if self.entries[key].shape[:1] != (len(samples),):
                raise ValueError(f"tensor {key} has not one row for each of its samples")
        for key in self._pairs:
            if self.entries[key].dtype != "F64" or self.entries[key].shape[-1:] != (2,):
                raise ValueError(f"tensor {key} does not hold pairs")


def keys_in(path: Path) -> list[int]:
    """Which tensors a file holds, read from its head alone; raises ValueError if that is damaged."""
    try:
        with safe_open(path, framework="np") as file:
            return [int(name) for name in file.keys()]  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"the head of the file is damaged: {error}") from error


def _places(shapes: dict[int, tuple[str, tuple[int, ...]]], size: int) -> dict[int, Entry]:
    """Tensors lie one behind the other, without gaps, up to the end of the file."""
    lengths = [math.prod(shape) * np.dtype(NUMPY[dtype]).itemsize for dtype, shape in shapes.values()]
    start, found = size - sum(lengths), {}
    for (key, (dtype, shape)), length in zip(shapes.items(), lengths, strict=True):
        found[key] = Entry(dtype, shape, start, start + length)
        start += length
    return found


def _samples_in(text: str) -> dict[int, list[int]]:
    found = load(text)
    if found is None or not all(type(one) is list and all(type(n) is int for n in one) for one in found.values()):
        raise ValueError("it does not say which samples it holds")
    return {int(key): samples for key, samples in found.items()}


def decode(stored: np.ndarray, dtype: str) -> np.ndarray:
    """Stored bits as numbers that numpy can compute with; always a copy."""
    if dtype == "BF16":
        return np.asarray(np.left_shift(stored, 16, dtype=np.uint32)).view(np.float32)
    if dtype in _FLOATS8 or dtype == "F8_E8M0":
        return np.asarray(_all_values_of(dtype)[stored])
    return np.array(stored)


@cache
def _all_values_of(dtype: str) -> np.ndarray:
    """The 256 numbers of an 8-bit float."""
    bits = np.arange(256)
    if dtype == "F8_E8M0":  # a power of two, no sign
        return np.asarray(np.where(bits < 255, np.ldexp(1.0, bits - 127), nan), np.float32)
    exponent_bits, bias, special = _FLOATS8[dtype]
    mantissa_bits = 7 - exponent_bits
    exponent, mantissa = np.divmod(bits & 0x7F, 1 << mantissa_bits)
    whole = np.where(exponent > 0, mantissa + (1 << mantissa_bits), mantissa)  # the smallest have no leading one
    values = np.ldexp(whole, np.maximum(exponent, 1) - bias - mantissa_bits) * np.where(bits < 128, 1.0, -1.0)
    values[list(special)] = list(special.values())
    return np.asarray(values, np.float32)


@cache  # numpy takes long to say what a dtype is called
def _name_of(array_dtype: np.dtype, dtype: str) -> str:
    """What the package calls the numbers in an array that stands for a tensor of `dtype`."""
    if dtype == "bfloat16" or dtype.startswith("float8"):
        width = 2 if dtype == "bfloat16" else 1
        if dtype not in RAW_DTYPES or array_dtype.itemsize != width or array_dtype.kind not in "iuV":
            raise CannotStore(f"the bits of {dtype} were expected, not an array of {array_dtype}")
        return dtype
    name = "float64" if array_dtype.char == "D" else array_dtype.name
    if name not in RAW_DTYPES:
        raise CannotStore(f"raw values of dtype {dtype} ({array_dtype} in numpy) have no name in safetensors")
    return name


def _stored(array: np.ndarray) -> np.ndarray:
    """The bytes to write, as a little-endian array of the shape to write."""
    if array.dtype.char == "D":
        array = np.ascontiguousarray(array).view(np.float64).reshape(*array.shape, 2)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(array.shape)  # ascontiguousarray makes 0-d arrays 1-d

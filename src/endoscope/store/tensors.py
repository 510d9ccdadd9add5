"""Raw values as safetensors files: a size, a JSON header, and the bytes of all tensors one behind the other.

A tensor is named by the number of its key. Which samples it holds is in the file's metadata, as JSON:
`samples` = {"12": [0, 3, 5]}; a tensor that is not listed there is whole. `pairs` = [7] lists complex numbers of
double precision, for which the format has no name: real and imaginary part, side by side. Written and read here,
without the safetensors package, so that bfloat16 and the 8-bit floats, which numpy lacks, survive.
"""

from __future__ import annotations

import json.encoder
import math
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from endoscope.schema.recording import RAW_DTYPES, RawValues

_SIZE = struct.Struct("<Q")
_ALIGNMENT = 8
_FLOAT32 = np.dtype("<f4")
_text = json.encoder.encode_basestring_ascii  # as a JSON text


class _Float(NamedTuple):
    """A float of 8 bits that numpy does not know: sign, exponent, mantissa."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    has_infinity: bool
    zero_sign_is_nan: bool  # the "fnuz" kinds: -0 is NaN, and nothing else is


_FLOATS8 = {
    "F8_E4M3": _Float(4, 3, 7, has_infinity=False, zero_sign_is_nan=False),
    "F8_E5M2": _Float(5, 2, 15, has_infinity=True, zero_sign_is_nan=False),
    "F8_E4M3FNUZ": _Float(4, 3, 8, has_infinity=False, zero_sign_is_nan=True),
    "F8_E5M2FNUZ": _Float(5, 2, 16, has_infinity=False, zero_sign_is_nan=True),
}
_NUMPY = {
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


def encode(values: Sequence[tuple[RawValues, str]]) -> list[bytes | memoryview]:
    """A whole file, as the pieces to write; each tensor comes with the name of its dtype."""
    bits = [_bits(raw.array, dtype) for raw, dtype in values]
    described = [(raw.key, name, array.shape) for (raw, _), (name, array) in zip(values, bits, strict=True)]
    header = _header(tuple(described))
    pairs = [raw.key for (raw, _), (name, _) in zip(values, bits, strict=True) if name == "F64" and _is_pair(raw.array)]
    metadata = f'{{"samples":{_text(_samples(values))},"pairs":{_text(_json(pairs))}}}'
    text = f'{{"__metadata__":{metadata}{header.entries}}}'.encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return [_SIZE.pack(len(text)) + text, *[_bytes_of(bits[place][1]) for place in header.order]]


class _Header(NamedTuple):
    """What a file says about its tensors, without which samples they are of."""

    entries: str  # JSON, a comma before each
    order: list[int]  # in which the tensors follow; those without bytes are left out


@lru_cache(16)  # most steps have the same tensors
def _header(tensors: tuple[tuple[int, str, tuple[int, ...]], ...]) -> _Header:
    """Of key, name of the dtype and shape of each."""
    widths = [np.dtype(_NUMPY[name]).itemsize for _, name, _ in tensors]
    order = sorted(range(len(tensors)), key=lambda place: -widths[place])  # wide ones first, so that all are aligned
    entries, with_bytes, offset = "", [], 0
    for place in order:
        key, name, shape = tensors[place]
        end = offset + widths[place] * math.prod(shape)
        entry = {"dtype": name, "shape": list(shape), "data_offsets": [offset, end]}
        entries += f',"{key}":{_json(entry)}'
        with_bytes += [place] if end > offset else []
        offset = end
    return _Header(entries, with_bytes)


def _bytes_of(bits: np.ndarray) -> memoryview:
    return bits.data.cast("B") if bits.dtype.char in "fd" else bits.reshape(-1).view(np.uint8).data


def check(array: Any, dtype: str) -> None:
    """Raise CannotStore unless `encode` can write this array."""
    _name_in_file(np.asarray(array).dtype, dtype)


class TensorFile:
    """A safetensors file in memory, usually mapped; tensors are decoded when asked for."""

    def __init__(self, data: memoryview) -> None:
        try:
            size = _SIZE.unpack_from(data)[0]
            header = json.loads(bytes(data[_SIZE.size : _SIZE.size + size]))
            metadata = header.pop("__metadata__", {})
            samples = json.loads(metadata.get("samples", "{}"))
            self.samples: dict[int, list[int]] = {int(key): indices for key, indices in samples.items()}
            self._pairs = frozenset(json.loads(metadata.get("pairs", "[]")))
            base = _SIZE.size + size
            self.entries = {int(key): _entry(entry, base, len(data)) for key, entry in header.items()}
        except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a file of raw values: {error}") from error
        self._data = data

    def array(self, key: int, position: int | None = None) -> np.ndarray:
        """The tensor of a key, or one of the samples in it; a copy that belongs to the caller."""
        entry = self.entries[key]
        stored = np.frombuffer(self._data[entry.start : entry.end], _NUMPY[entry.dtype]).reshape(entry.shape)
        values = decode(stored if position is None else stored[position], entry.dtype)
        return values.view(np.complex128)[..., 0] if key in self._pairs else values


def keys_in(path: Path) -> list[int]:
    """Which tensors a file holds, read from its head alone; raises ValueError if that is damaged."""
    with path.open("rb") as file:
        size = _SIZE.unpack(file.read(_SIZE.size).ljust(_SIZE.size, b"\0"))[0]
        if size > path.stat().st_size:
            raise ValueError("the head of the file is damaged")
        return [int(key) for key in json.loads(file.read(size)) if key != "__metadata__"]


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
    if dtype == "F8_E8M0":  # a power of two, no sign
        return np.array([2.0 ** (bits - 127) for bits in range(255)] + [np.nan], dtype=np.float32)
    return np.array([_value_of(bits, _FLOATS8[dtype]) for bits in range(256)], dtype=np.float32)


def _value_of(bits: int, kind: _Float) -> float:
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = (bits & 0x7F) >> kind.mantissa_bits
    mantissa = bits & ((1 << kind.mantissa_bits) - 1)
    if kind.zero_sign_is_nan:
        if bits == 0x80:
            return float("nan")
    elif exponent == (1 << kind.exponent_bits) - 1:
        if kind.has_infinity:
            return sign * float("inf") if mantissa == 0 else float("nan")
        if bits & 0x7F == 0x7F:
            return float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - kind.bias - kind.mantissa_bits)
    return sign * (1 + mantissa / (1 << kind.mantissa_bits)) * 2.0 ** (exponent - kind.bias)


def _samples(values: Sequence[tuple[RawValues, str]]) -> str:
    """As JSON. Most tensors share the list of their samples."""
    texts: dict[int, str] = {}  # by the identity of the list
    found = []
    for raw, _ in values:
        if raw.samples is not None:
            text = texts.get(id(raw.samples))
            if text is None:
                text = texts[id(raw.samples)] = _json([int(sample) for sample in raw.samples])
            found.append(f'"{raw.key}":{text}')
    return f"{{{','.join(found)}}}"


def _is_pair(array: Any) -> bool:
    return bool(np.asarray(array).dtype.char == "D")  # complex128


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@cache  # numpy takes long to say what a dtype is called
def _name_in_file(array_dtype: np.dtype, dtype: str) -> str:
    """What the file calls the numbers in an array that stands for a tensor of `dtype`."""
    name = RAW_DTYPES.get(dtype, "")
    if name in ("BF16", "F8_E8M0", *_FLOATS8):
        if array_dtype.itemsize != np.dtype(_NUMPY[name]).itemsize or array_dtype.kind not in "iuV":
            raise CannotStore(f"the bits of {dtype} were expected, not an array of {array_dtype}")
    elif array_dtype.char == "D":
        name = "F64"
    else:
        name = RAW_DTYPES.get(array_dtype.name, "")
    if not name:
        raise CannotStore(f"raw values of dtype {dtype} ({array_dtype} in numpy) have no name in safetensors")
    return name


@cache
def _little(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("<")


def _bits(array: Any, dtype: str) -> tuple[str, np.ndarray]:
    """(name of the dtype in the file, the bytes to write as an array of the shape to write)."""
    array = np.asarray(array)
    name = _name_in_file(array.dtype, dtype)
    if array.dtype is _FLOAT32 and array.flags.c_contiguous:  # nearly always
        return name, array
    if _is_pair(array):
        array = np.ascontiguousarray(array).view(np.float64).reshape(*array.shape, 2)
    little = array.astype(_little(array.dtype), copy=False)
    return name, np.ascontiguousarray(little).reshape(array.shape)  # ascontiguousarray makes 0-d arrays 1-d


def _entry(entry: dict[str, Any], base: int, size: int) -> Entry:
    start, end = (base + offset for offset in entry["data_offsets"])
    shape = tuple(entry["shape"])
    expected = int(np.prod(shape, dtype=np.int64)) * np.dtype(_NUMPY[entry["dtype"]]).itemsize
    if not base <= start <= end <= size or end - start != expected:
        raise ValueError("a tensor lies outside of the file")
    return Entry(entry["dtype"], shape, start, end)

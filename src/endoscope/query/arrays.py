"""From numpy to Arrow without pandas: `pyarrow.array` imports pandas where it is installed, which takes a second."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def numbers(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Numbers or truth values; null where `valid` is false."""
    mask = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if values.dtype == bool:
        return pa.Array.from_buffers(pa.bool_(), len(values), [mask, _buffer(np.packbits(values, bitorder="little"))])
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [mask, _buffer(values)])


def texts(words: Sequence[str]) -> pa.Array:
    encoded = [word.encode() for word in words]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(words), [None, _buffer(offsets), pa.py_buffer(b"".join(encoded))])


def dictionary(words: np.ndarray) -> pa.Array:
    """Texts that repeat, each stored once."""
    codes: dict[str, int] = {}
    places = np.fromiter((codes.setdefault(word, len(codes)) for word in words.tolist()), np.int32, len(words))
    return pa.DictionaryArray.from_arrays(numbers(places), texts(list(codes)))


def lists(lengths: np.ndarray, values: np.ndarray) -> pa.Array:
    """Lists of different lengths, their numbers given one after the other."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    inner = numbers(values)
    return pa.Array.from_buffers(pa.list_(inner.type), len(lengths), [None, _buffer(offsets)], children=[inner])


def _buffer(values: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values))

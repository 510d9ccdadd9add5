"""From numpy to Arrow without pandas: `pyarrow.array` imports pandas where it is installed, which takes a second.

Nor is anything used here that imports `pyarrow.compute` (`take`, `dictionary_encode`, …): that takes a tenth of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from endoscope.store.streams import to_numpy


def numbers(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Numbers or truth values; null where `valid` is false."""
    mask = _mask(valid)
    if values.dtype == bool:
        return pa.Array.from_buffers(pa.bool_(), len(values), [mask, _buffer(np.packbits(values, bitorder="little"))])
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [mask, _buffer(values)])


def texts(words: Sequence[str]) -> pa.Array:
    encoded = [word.encode() for word in words]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(words), [None, _buffer(offsets), pa.py_buffer(b"".join(encoded))])


def dictionary(words: Sequence[str] | np.ndarray) -> pa.Array:
    """Texts that repeat, each stored once."""
    codes: dict[str, int] = {}
    listed = words.tolist() if isinstance(words, np.ndarray) else words
    places = np.array([codes.setdefault(word, len(codes)) for word in listed], np.int32)
    return pa.DictionaryArray.from_arrays(numbers(places), texts(list(codes)))


def take(column: pa.Array, rows: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Some rows of a column of numbers, or of texts that repeat; null where `valid` is false."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(take(column.indices, rows, valid), column.dictionary)
    values = to_numpy(column)
    # Where there is nothing at all, every row is null, and what it holds is never looked at.
    return numbers(values[rows] if len(values) else np.zeros(len(rows), values.dtype), valid)


def lists(lengths: np.ndarray, values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Lists of different lengths, their numbers given one after the other; null where `valid` is false."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    inner = numbers(values)
    buffers = [_mask(valid), _buffer(offsets)]
    return pa.Array.from_buffers(pa.list_(inner.type), len(lengths), buffers, children=[inner])


def narrow(column: pa.Array) -> pa.Array:
    """Whole numbers, or lists of them, in the smallest type that holds them all; anything else as it is."""
    if column.null_count or not len(column):
        return column
    if pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type):
        offsets = to_numpy(column.offsets)
        return lists(np.diff(offsets), _narrow(to_numpy(column.values)[offsets[0] : offsets[-1]]))
    return numbers(_narrow(to_numpy(column))) if pa.types.is_integer(column.type) else column


def _narrow(values: np.ndarray) -> np.ndarray:
    if not len(values):
        return values
    low, high = int(values.min()), int(values.max())
    kind = np.min_scalar_type(high if low >= 0 else min(low, -1 - high))
    return values.astype(kind) if kind.itemsize < values.dtype.itemsize else values


def _mask(valid: np.ndarray | None) -> pa.Buffer | None:
    return None if valid is None or valid.all() else _buffer(np.packbits(valid, bitorder="little"))


def _buffer(values: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values))

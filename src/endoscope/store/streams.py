"""Tables as Arrow IPC streams: a segment is a schema message and one record batch message per commit.

pyarrow makes and reads the messages. They are handled one by one, because a chunk of a segment must be readable without
walking through everything before it, and because a commit that failed is cut off and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from endoscope.schema.recording import TABLES
from endoscope.schema.stats import derived
from endoscope.store.sealed import to_utf8

_TYPES = {
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint32": pa.uint32(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "list<int32>": pa.list_(pa.int32()),
    "list<uint32>": pa.list_(pa.uint32()),
    "list<float32>": pa.list_(pa.float32()),
    "list<string>": pa.list_(pa.string()),
}

#: By the type's number: asking for the hash of a type costs more than reading a column.
_NUMPY = {_TYPES[name].id: np.dtype(name) for name in "int16 int32 uint32 int64 float32 float64".split()}
#: What pyarrow raises when it is given bytes that are no message of the kind that is expected.
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError, TypeError, OverflowError, MemoryError)


class ListColumn(NamedTuple):
    """A column of lists: all values, and where each list begins (and the last one ends)."""

    values: Any
    offsets: np.ndarray


class Message(NamedTuple):
    """One Arrow message, and where it lies."""

    kind: str  # "schema", "record batch", …
    start: int
    end: int


@derived
def schema_of(table: str) -> pa.Schema:
    """The Arrow schema of a table as this version writes it."""
    return pa.schema([pa.field(name, _TYPES[kind]) for name, kind in TABLES[table]])


@derived
def schema_message(table: str) -> bytes:
    """How every segment of a table begins."""
    return bytes(schema_of(table).serialize())


def batch_message(table: str, columns: Mapping[str, Any]) -> memoryview:
    """One record batch, from arrays, lists and ListColumns. No column may be missing, no value is null."""
    arrays = [to_arrow(columns[name], word) for name, word in TABLES[table]]
    return memoryview(pa.RecordBatch.from_arrays(arrays, schema=schema_of(table)).serialize())


def to_arrow(values: Any, word: str) -> pa.Array:
    """A column of the type that the word means. (pa.array() would import pandas if it can, which takes a second.)"""
    kind = _TYPES[word]
    if word.startswith("list<"):
        column = values if isinstance(values, ListColumn) else list_column(values)
        inner = to_arrow(column.values, word[5:-1])
        return pa.Array.from_buffers(kind, len(column.offsets) - 1, [None, _buffer(column.offsets)], children=[inner])
    if word == "string":
        encoded = [to_utf8(value) for value in values]
        buffers = [None, _buffer(_offsets(encoded)), pa.py_buffer(b"".join(encoded))]
        return pa.Array.from_buffers(kind, len(encoded), buffers)
    # Counts may arrive as floats and the other way round; a measurement must not fail on that.
    numbers = np.ascontiguousarray(values, word)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def list_column(values: Sequence[Sequence[Any]]) -> ListColumn:
    return ListColumn([item for value in values for item in value], _offsets(values))


def messages_in(data: memoryview, start: int = 0) -> Iterator[Message]:
    """The messages that follow each other from `start` on, up to the first bytes that are none."""
    source = pa.BufferReader(pa.py_buffer(data))
    if start < len(data):
        source.seek(start)
    while start < len(data):
        try:
            kind = pa.ipc.read_message(source).type
        except _UNREADABLE:
            return
        yield Message(kind, start, source.tell())
        start = source.tell()


def read_schema(segment: bytes | memoryview | pa.NativeFile) -> pa.Schema | None:
    """The schema that a segment begins with; None if it cannot be read."""
    try:
        return pa.ipc.read_schema(segment if isinstance(segment, pa.NativeFile) else pa.py_buffer(segment))
    except _UNREADABLE:
        return None


def read_batch(chunk: bytes | memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The record batch of one chunk, without copying; raises ValueError if there is none."""
    source = pa.BufferReader(pa.py_buffer(chunk))
    try:
        message = pa.ipc.read_message(source)
        if message.type == "schema":  # a segment's first chunk begins with it
            message = pa.ipc.read_message(source)
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
    except _UNREADABLE as error:
        raise ValueError(f"no record batch: {error}") from error
    return batch


def batch_part(chunk: memoryview) -> memoryview:
    """The bytes of a chunk without the schema that the first chunk of a segment begins with."""
    first = next(messages_in(chunk), None)
    return chunk[first.end :] if first is not None and first.kind == "schema" else chunk


def merge_batches(chunks: Sequence[memoryview], schema: pa.Schema) -> memoryview:
    """Several chunks as one record batch message."""
    return _as_message(pa.Table.from_batches([read_batch(chunk, schema) for chunk in chunks]))


def rows_of_steps(
    chunks: Sequence[memoryview], schema: pa.Schema, stays: Callable[[np.ndarray], np.ndarray]
) -> memoryview | None:
    """The rows of some steps as one message; None if all rows stay, nothing if none does."""
    table = pa.Table.from_batches([read_batch(chunk, schema) for chunk in chunks], schema=schema)
    rows = stays(to_numpy(table["step"]))
    if rows.all():
        return None
    left = table.filter(pa.array(rows))
    return _as_message(left) if left.num_rows else memoryview(b"")


def _as_message(table: pa.Table) -> memoryview:
    return memoryview(table.combine_chunks().to_batches()[0].serialize())


def to_list(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """What `to_pylist()` returns, for numbers, texts and lists of them in a fraction of the time."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray) or column.null_count or not len(column):
        return list(column.to_pylist())
    if column.type.id in _NUMPY:
        return list(to_numpy(column).tolist())
    if pa.types.is_list(column.type):
        inner, ends = to_list(column.values), to_numpy(column.offsets).tolist()
        return [inner[start:end] for start, end in pairwise(ends)]
    if pa.types.is_string(column.type):
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).tolist()
        text = bytes(data) if data is not None else b""
        return [text[start:end].decode() for start, end in pairwise(ends)]
    return list(column.to_pylist())


def to_numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """A column of numbers without nulls. (Its own to_numpy() imports pandas if it can, which takes a second.)"""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            return np.concatenate([np.empty(0, _NUMPY[column.type.id]), *map(to_numpy, column.chunks)])
        column = column.chunk(0)
    kind = _NUMPY[column.type.id]
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.empty(0, kind)
    return np.frombuffer(data, kind, len(column), column.offset * kind.itemsize)


def _offsets(parts: Sequence[Any]) -> np.ndarray:
    return np.array([0, *accumulate(map(len, parts))], np.int32)


def _buffer(offsets: Any) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(offsets, np.int32))

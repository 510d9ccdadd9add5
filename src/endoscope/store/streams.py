"""Tables as Arrow IPC streams: a segment is a schema message and one record batch message per commit.

The parts of a stream are made and read one by one, and not through pyarrow's stream classes, because a chunk of a
segment must be readable without walking through everything before it, and because a commit that failed is cut off
and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.schema.recording import TABLES
from endoscope.store import layout

_TYPES = {
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "list<int32>": pa.list_(pa.int32()),
    "list<uint32>": pa.list_(pa.uint32()),
    "list<float32>": pa.list_(pa.float32()),
    "list<string>": pa.list_(pa.string()),
}

_NUMPY = {pa.from_numpy_dtype(name): np.dtype(name) for name in "int16 int32 uint32 int64 float32 float64".split()}


@cache
def schema_of(table: str) -> pa.Schema:
    """The Arrow schema of a table as this version writes it."""
    return pa.schema([pa.field(name, _TYPES[kind]) for name, kind in TABLES[table]])


@cache
def schema_message(table: str) -> bytes:
    """How every segment of a table begins."""
    return bytes(schema_of(table).serialize())


def example_message(table: str) -> bytes:
    """A record batch of one row, made by pyarrow; no number in its metadata is zero, because zeros may be left out."""
    schema = schema_of(table)
    return bytes(pa.RecordBatch.from_arrays([_example(field.type) for field in schema], schema=schema).serialize())


def _example(kind: pa.DataType) -> pa.Array:
    """One value. (pa.array() would import pandas if it can, which takes a second.)"""
    offsets = pa.py_buffer(np.array([0, 1], np.int32))
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, 1, [None, offsets], children=[_example(kind.value_type)])
    if pa.types.is_string(kind):
        return pa.Array.from_buffers(kind, 1, [None, offsets, pa.py_buffer(b"x")])
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(8))])


def read_schema(segment: bytes | memoryview) -> pa.Schema | None:
    """The schema that a segment begins with; None if it cannot be read."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(segment))
    except (pa.ArrowException, OSError, EOFError, ValueError):
        return None


def read_batch(chunk: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The record batch of one chunk, without copying; raises ValueError if there is none."""
    message = layout.batch_in(chunk)
    try:
        part = pa.py_buffer(chunk[message.start : message.end])
        return pa.ipc.read_record_batch(pa.ipc.read_message(part), schema)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise ValueError(str(error)) from error


def read_batches(segment: memoryview) -> list[pa.RecordBatch]:
    """All record batches of a segment from its beginning, without copying; none if it cannot be read like that."""
    try:
        return list(pa.ipc.open_stream(pa.py_buffer(segment)))
    except (pa.ArrowException, OSError, EOFError, ValueError):
        return []


def merge_batches(messages: Sequence[memoryview], schema: pa.Schema) -> bytes:
    """Several record batch messages as one."""
    table = pa.Table.from_batches([read_batch(message, schema) for message in messages]).combine_chunks()
    return bytes(table.to_batches()[0].serialize())


def steps_in(message: memoryview, schema: pa.Schema) -> list[int]:
    """The numbers of steps in a record batch."""
    return list(to_numpy(read_batch(message, schema).column(schema.names.index("step"))).tolist())


def rows_of_steps(
    messages: Sequence[memoryview], schema: pa.Schema, stays: Callable[[np.ndarray], np.ndarray]
) -> bytes | None:
    """The rows of some steps as one message; None if all rows stay, nothing if none does."""
    if not messages:
        return None
    table = pa.Table.from_batches([read_batch(message, schema) for message in messages]).combine_chunks()
    rows = stays(to_numpy(table["step"]))
    if rows.all():
        return None
    left = table.filter(pa.array(rows)).combine_chunks()
    return bytes(left.to_batches()[0].serialize()) if left.num_rows else b""


def to_list(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """What `to_pylist()` returns, for numbers, texts and lists of them in a fraction of the time."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray) or column.null_count or not len(column):
        return list(column.to_pylist())
    if column.type in _NUMPY:
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
            return np.concatenate([np.empty(0, _NUMPY[column.type]), *map(to_numpy, column.chunks)])
        column = column.chunk(0)
    kind = _NUMPY[column.type]
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.empty(0, kind)
    return np.frombuffer(data, kind, len(column), column.offset * kind.itemsize)

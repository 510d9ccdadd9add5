"""Where the numbers of a record batch lie inside its message: just enough of Arrow's metadata to find them.

A series takes one number out of each of a thousand batches. Asking pyarrow for a thousand batches of thirty columns
costs more time and memory than all the rest, so the few fields that say where a column begins are read here.

    message     ff ff ff ff │ metadata size │ metadata (a flatbuffer: Message ─► RecordBatch) │ body: the buffers
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

_HEAD = struct.Struct("<iI")  # continuation mark, size of the metadata with its padding
_MARK = -1
_I32, _U16, _I64 = (struct.Struct(code) for code in ("<i", "<H", "<q"))

_SCHEMA, _RECORD_BATCH = 1, 3  # Message.header_type
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3  # fields of Message
_FEW = 8  # messages, for which nothing is worth being prepared
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3  # fields of RecordBatch


Read = Callable[[int, int], bytes]  # (size, start) -> bytes


class BatchLayout(NamedTuple):
    """One record batch message; places are counted from the start of the bytes that were looked at."""

    start: int
    end: int
    rows: int
    buffers: np.ndarray  # int64: where each buffer begins


class MetadataPlaces(NamedTuple):
    """Where in a record batch message the numbers are that depend on its contents."""

    rows: int
    body_length: int
    nodes: int  # first of the pairs
    buffers: int
    body: int  # end of the metadata


def metadata_places(data: memoryview) -> MetadataPlaces:
    """For a message in which none of these numbers is left out, as zeros may be."""
    body, _, kind, header = _message(data, 0)
    message = _fields(data, _HEAD.size + _I32.unpack_from(data, _HEAD.size)[0])
    batch = _fields(data, header)
    assert kind == _RECORD_BATCH and message(_BODY_LENGTH) and batch(_LENGTH)
    nodes, buffers = (batch(field) + _I32.unpack_from(data, batch(field))[0] + 4 for field in (_NODES, _BUFFERS))
    return MetadataPlaces(batch(_LENGTH), message(_BODY_LENGTH), nodes, buffers, body)


def schema_part(data: bytes) -> bytes:
    """The schema message that a segment begins with."""
    return data[: _HEAD.size + (_HEAD.unpack_from(data)[1] if len(data) >= _HEAD.size else 0)]


def batch_in(data: memoryview, start: int = 0) -> BatchLayout:
    """The first record batch message at or behind `start`; raises ValueError if the bytes are none of ours."""
    try:
        while True:
            body, end, kind, header = _message(data, start)
            if kind == _RECORD_BATCH:
                return _batch(data, (start, body, end), header)
            if kind != _SCHEMA:
                raise ValueError(f"unexpected Arrow message of type {kind}")
            start = end
    except (struct.error, IndexError) as error:
        raise ValueError("incomplete Arrow message") from error


def batches_in(data: memoryview, starts: Sequence[int], read: Read) -> list[BatchLayout]:
    """The same for many places at once: messages of a table differ in a few numbers, and one shows where these are.

    `read` takes small pieces out of the same bytes.
    """
    found: list[BatchLayout | None] = [None] * len(starts)
    if len(starts) > _FEW:
        example = batch_in(data, starts[1])  # a segment's first chunk begins with its schema
        found = _alike(data, starts, example, read)
    return [batch or batch_in(data, start) for batch, start in zip(found, starts, strict=True)]


def _alike(data: memoryview, starts: Sequence[int], example: BatchLayout, read: Read) -> list[BatchLayout | None]:
    """The messages whose metadata are those of an example, apart from lengths and places; None for all others."""
    if not example.rows:  # then some of the numbers are left out
        return [None] * len(starts)
    here = data[example.start : example.end]
    places = metadata_places(here)
    if max(starts) + places.body > len(data) or min(starts) < 0:
        return [None] * len(starts)
    joined = b"".join([read(places.body, start) for start in starts])
    stacked = np.frombuffer(joined, np.uint8).reshape(len(starts), places.body)
    nodes, count = (_I32.unpack_from(here, place - 4)[0] for place in (places.nodes, places.buffers))
    is_fixed = np.ones(places.body, dtype=bool)
    for place, numbers in ((places.rows, 1), (places.body_length, 1), (places.nodes, 2 * nodes),
                           (places.buffers, 2 * count)):  # fmt: skip
        is_fixed[place : place + 8 * numbers] = False
    same = (stacked == np.frombuffer(here, np.uint8, places.body)) | ~is_fixed

    def numbers_at(place: int, many: int) -> np.ndarray:
        return np.ascontiguousarray(stacked[:, place : place + 8 * many]).view("<i8")

    rows, body_lengths = numbers_at(places.rows, 1)[:, 0], numbers_at(places.body_length, 1)[:, 0]
    pairs = numbers_at(places.buffers, 2 * count)
    bodies = np.array(starts, np.int64) + places.body
    ends = bodies + body_lengths
    farthest = bodies + (pairs[:, ::2] + pairs[:, 1::2]).max(1, initial=0)
    good = same.all(1) & (rows >= 0) & (body_lengths >= 0) & (ends <= len(data))
    good &= (pairs.min(1, initial=0) >= 0) & (farthest <= ends)
    buffers = pairs[:, ::2] + bodies[:, None]
    found = zip(starts, ends.tolist(), rows.tolist(), buffers, good.tolist(), strict=True)
    return [BatchLayout(start, end, many, own) if fits else None for start, end, many, own, fits in found]


def buffer_places(schema: pa.Schema) -> dict[str, tuple[int, ...]]:
    """Column -> which of the batch's buffers hold its data: (values,) or, for lists, (offsets, values)."""
    places: dict[str, tuple[int, ...]] = {}
    following = 0
    for field in schema:
        if pa.types.is_list(field.type):
            inner = _buffer_count(field.type.value_type)
            places[field.name] = (following + 1, following + 1 + inner)
            following += 2 + inner
        else:
            following += _buffer_count(field.type)
            places[field.name] = (following - 1,)
    return places


def _buffer_count(kind: pa.DataType) -> int:
    """Validity and values; text also has offsets."""
    return 3 if pa.types.is_string(kind) else 2


def _message(data: memoryview, start: int) -> tuple[int, int, int, int]:
    """(start of the body, end of the message, type, place of the header table)."""
    mark, size = _HEAD.unpack_from(data, start)
    if mark != _MARK or size == 0:
        raise ValueError("no Arrow message here")
    base = start + _HEAD.size
    table = base + _I32.unpack_from(data, base)[0]
    fields = _fields(data, table)
    kind, header, length = fields(_HEADER_TYPE), fields(_HEADER), fields(_BODY_LENGTH)
    if not kind or not header:
        raise ValueError("an Arrow message without a header")
    body_length = _I64.unpack_from(data, length)[0] if length else 0
    end = base + size + body_length
    if body_length < 0 or end > len(data):
        raise ValueError("incomplete Arrow message")
    return base + size, end, data[kind], header + _I32.unpack_from(data, header)[0]


def _batch(data: memoryview, message: tuple[int, int, int], table: int) -> BatchLayout:
    start, body, end = message
    fields = _fields(data, table)
    if fields(_COMPRESSION):
        raise ValueError("a compressed record batch")
    length, buffers = fields(_LENGTH), fields(_BUFFERS)
    rows = _I64.unpack_from(data, length)[0] if length else 0
    vector = buffers + _I32.unpack_from(data, buffers)[0]
    count = _I32.unpack_from(data, vector)[0]
    try:
        pairs = np.frombuffer(data, "<i8", 2 * count, vector + 4)  # offset, length, offset, length, …
    except ValueError as error:
        raise ValueError("incomplete Arrow message") from error
    offsets, lengths = pairs[::2], pairs[1::2]
    if rows < 0 or (count and (pairs.min() < 0 or body + int((offsets + lengths).max()) > end)):
        raise ValueError("a buffer outside of its message")
    return BatchLayout(start, end, rows, offsets + body)


def _fields(data: memoryview, table: int) -> Callable[[int], int]:
    """Number of a field of a flatbuffer table -> where it lies; 0 if it has its default value."""
    vtable = table - _I32.unpack_from(data, table)[0]
    size = _U16.unpack_from(data, vtable)[0]
    places = struct.unpack_from(f"<{size // 2 - 2}H", data, vtable + 4) if vtable >= 0 and size >= 4 else ()
    return lambda number: table + places[number] if number < len(places) and places[number] else 0

"""Record batches as bytes, straight from numpy: the metadata of a message is made once per table and filled in.

pyarrow makes the same bytes, but an object for every column of every step first, which takes several times as long, in
the same process as somebody's training. All that differs between two batches of a table are the number of rows and the
places of the buffers, so a message that pyarrow made is kept as a form, and these numbers are put into it. Most steps
have the same numbers as the one before, but for the length of what comes last.

    form:  head │ metadata: … body length … rows … [length, nulls] per node … [place, length] per buffer …
    body:  for each column: no validity (nothing is null), offsets of lists and texts, values; each padded to 8 bytes
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from endoscope.schema.recording import TABLES
from endoscope.store import layout
from endoscope.store.streams import example_message

_ALIGNMENT = 8
_PADDING = [bytes(length) for length in range(_ALIGNMENT)]
_I64 = struct.Struct("<q")
_INT32 = np.dtype(np.int32)


#: A dtype for numbers, a list with the kind inside for lists, None for text.
_Kind: TypeAlias = "np.dtype | list[_Kind] | None"


class ListColumn(NamedTuple):
    """A column of lists: all values, and where each list begins (and the last one ends)."""

    values: np.ndarray
    offsets: np.ndarray


class _Form(NamedTuple):
    """Bytes of a message without its body, and where the numbers go that differ."""

    metadata: bytes
    places: layout.MetadataPlaces
    columns: list[tuple[str, _Kind]]


class Filled(NamedTuple):
    """A form with all numbers but the length of the last buffer: of most tables nothing else differs between steps."""

    metadata: bytes
    body_length: int  # where that stands
    size: int  # of the body up to the last buffer
    width: int  # bytes of a value in the last buffer
    last_node: int  # where the length of the last node stands; -1 if that is not the number of values in that buffer
    last_buffer: int  # where the length of the last buffer stands

    def ending_with(self, last: int) -> bytearray:
        """What stands before a body whose last buffer has so many values."""
        metadata, size = bytearray(self.metadata), last * self.width
        _I64.pack_into(metadata, self.body_length, self.size + size + -size % _ALIGNMENT)
        _I64.pack_into(metadata, self.last_buffer, size)
        if self.last_node >= 0:
            _I64.pack_into(metadata, self.last_node, last)
        return metadata


class Body:
    """Collects buffers, and the lengths that tell how they lie."""

    def __init__(self, table: str, columns: Mapping[str, Any]) -> None:
        self.parts: list[Any] = []  # anything with a buffer, and behind each what fills it up
        self.lengths: list[int] = []  # values in each buffer
        for name, kind in _form(table).columns:
            self._add(columns[name], kind)

    def _add(self, values: Any, kind: _Kind) -> None:
        """One column, depth first, as Arrow orders nodes and buffers."""
        if kind.__class__ is list:
            column = values if values.__class__ is ListColumn else list_column(values)
            self._numbers(column.offsets, _INT32)
            self._add(column.values, kind[0])
        elif kind is None:
            encoded = [value.encode(errors="replace") for value in values]  # half a surrogate pair has no encoding
            self._numbers(_offsets(encoded), _INT32)
            text = b"".join(encoded)
            self._buffer(text, 1, len(text))
        else:
            self._numbers(values, kind)

    def _numbers(self, values: Any, kind: Any) -> None:
        # Counts may arrive as floats and the other way round; a measurement must not fail on that.
        if values.__class__ is not np.ndarray or values.dtype is not kind or not values.flags.c_contiguous:
            values = np.ascontiguousarray(values, kind)
        self._buffer(values, kind.itemsize, len(values))

    def _buffer(self, data: Any, width: int, length: int) -> None:
        self.lengths.append(length)
        self.parts += (data, padding_of(width * length))


def batch_message(table: str, columns: Mapping[str, Any]) -> bytes:
    """One record batch, from arrays, lists and ListColumns. No column may be missing, no value is null."""
    body = Body(table, columns)
    *lengths, last = body.lengths
    return b"".join([filled(table, tuple(lengths)).ending_with(last), *body.parts])


def padding_of(size: int) -> bytes:
    """What fills a buffer of so many bytes up."""
    return _PADDING[-size % _ALIGNMENT]


@lru_cache(256)
def filled(table: str, lengths: tuple[int, ...]) -> Filled:
    """`lengths` as `Body` collects them, without the last one."""
    form = _form(table)
    waiting = iter((*lengths, 0))
    nodes: list[int] = []  # length, nulls, length, nulls, …
    buffers: list[int] = []  # place, length, place, length, …
    size = width = 0

    def buffer(number: int, width: int) -> None:
        nonlocal size
        buffers.extend((size, number * width))
        size += number * width + -number * width % _ALIGNMENT

    def add(kind: _Kind) -> bool:
        """Whether the last length is that of a node."""
        nonlocal width
        number = next(waiting)
        is_list, is_text = isinstance(kind, list), kind is None
        nodes.extend((number - 1 if is_list or is_text else number, 0))
        buffers.extend((size, 0))  # validity
        width = 4 if is_list or is_text else kind.itemsize  # type: ignore[union-attr]
        buffer(number, width)
        if is_text:
            width = 1
            buffer(next(waiting), 1)
            return False
        return add(kind[0]) if is_list else True  # type: ignore[index]

    ends_in_node = False
    for _, kind in form.columns:
        ends_in_node = add(kind)
    metadata = bytearray(form.metadata)
    _I64.pack_into(metadata, form.places.rows, nodes[0])
    struct.pack_into(f"<{len(nodes)}q", metadata, form.places.nodes, *nodes)
    struct.pack_into(f"<{len(buffers)}q", metadata, form.places.buffers, *buffers)
    last_node = form.places.nodes + 8 * (len(nodes) - 2) if ends_in_node else -1
    last_buffer = form.places.buffers + 8 * (len(buffers) - 1)
    return Filled(bytes(metadata), form.places.body_length, size, width, last_node, last_buffer)


@cache
def _form(table: str) -> _Form:
    message = memoryview(example_message(table))
    places = layout.metadata_places(message)
    return _Form(bytes(message[: places.body]), places, [(name, _kind_of(word)) for name, word in TABLES[table]])


def _kind_of(word: str) -> _Kind:
    if word.startswith("list<"):
        return [_kind_of(word[5:-1])]
    return None if word == "string" else np.dtype(word)


def list_column(values: Sequence[Sequence[Any]]) -> ListColumn:
    inner: Any = [item for value in values for item in value]
    return ListColumn(inner, _offsets(values))


def _offsets(parts: Sequence[Any]) -> np.ndarray:
    return np.array([0, *accumulate(map(len, parts))], _INT32)

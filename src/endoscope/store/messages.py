"""Record batches as bytes, straight from numpy: the metadata of a message is made once per table and filled in.

pyarrow makes the same bytes, but an object for every column of every step first, which takes several times as long, in
the same process as somebody's training. All that differs between two batches of a table are the number of rows and the
places of the buffers, so a message that pyarrow made is kept as a form, and these numbers are put into it.

    form:  head │ metadata: … body length … rows … [length, nulls] per node … [place, length] per buffer …
    body:  for each column: no validity (nothing is null), offsets of lists and texts, values; each padded to 8 bytes
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from endoscope.schema.recording import TABLES
from endoscope.store import layout
from endoscope.store.streams import example_message

_ALIGNMENT = 8
_PADDING = [bytes(-length % _ALIGNMENT) for length in range(_ALIGNMENT)]  # by length modulo 8
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


class _Body:
    """Collects buffers and where they lie."""

    def __init__(self) -> None:
        self.parts: list[Any] = []  # anything with a buffer
        self.nodes: list[int] = []  # length, nulls, length, nulls, …
        self.buffers: list[int] = []  # place, length, place, length, …
        self.size = 0

    def add(self, values: Any, kind: _Kind) -> None:
        """One column, depth first, as Arrow orders nodes and buffers."""
        if isinstance(kind, np.dtype):
            self._node(len(values))
            self._numbers(values, kind)
        elif isinstance(kind, list):
            column = values if isinstance(values, ListColumn) else _list_column(values)
            self._node(len(column.offsets) - 1)
            self._numbers(column.offsets, _INT32)
            self.add(column.values, kind[0])
        else:
            encoded = [value.encode(errors="replace") for value in values]  # half a surrogate pair has no encoding
            self._node(len(encoded))
            self._numbers(_offsets(encoded), _INT32)
            self._buffer(b"".join(encoded), sum(map(len, encoded)))

    def _node(self, length: int) -> None:
        self.nodes += (length, 0)
        self.buffers += (self.size, 0)  # validity

    def _numbers(self, values: Any, kind: np.dtype) -> None:
        # Counts may arrive as floats and the other way round; a measurement must not fail on that.
        numbers = np.ascontiguousarray(values, kind)
        self._buffer(numbers, numbers.nbytes)

    def _buffer(self, data: Any, length: int) -> None:
        self.buffers += (self.size, length)
        padding = _PADDING[length % _ALIGNMENT]
        self.parts += (data, padding)
        self.size += length + len(padding)


def batch_message(table: str, columns: Mapping[str, Any]) -> bytes:
    """One record batch, from arrays, lists and ListColumns. No column may be missing, no value is null."""
    body = _Body()
    form = _form(table)
    for name, kind in form.columns:
        body.add(columns[name], kind)
    metadata = bytearray(form.metadata)
    places = form.places
    _I64.pack_into(metadata, places.body_length, body.size)
    _I64.pack_into(metadata, places.rows, body.nodes[0])
    struct.pack_into(f"<{len(body.nodes)}q", metadata, places.nodes, *body.nodes)
    struct.pack_into(f"<{len(body.buffers)}q", metadata, places.buffers, *body.buffers)
    return b"".join([metadata, *body.parts])


@cache
def _form(table: str) -> _Form:
    message = memoryview(example_message(table))
    places = layout.metadata_places(message)
    return _Form(bytes(message[: places.body]), places, [(name, _kind_of(word)) for name, word in TABLES[table]])


def _kind_of(word: str) -> _Kind:
    if word.startswith("list<"):
        return [_kind_of(word[5:-1])]
    return None if word == "string" else np.dtype(word)


def _list_column(values: Sequence[Sequence[Any]]) -> ListColumn:
    inner: Any = [item for value in values for item in value]
    return ListColumn(inner, _offsets(values))


def _offsets(parts: Sequence[Any]) -> np.ndarray:
    return np.array([0, *accumulate(map(len, parts))], _INT32)

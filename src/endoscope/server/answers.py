"""The three forms in which data travels: JSON, Arrow streams, raw float32."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from starlette.responses import Response, StreamingResponse

from endoscope.server.json_answers import as_json, to_json

__all__ = ["InPieces", "as_arrow", "as_floats", "as_json", "to_json"]

_PIECE = 1 << 20  # bytes; larger tensors are sent in pieces, so that they need no second copy
_ARROW = "application/vnd.apache.arrow.stream"


def as_arrow(table: pa.Table, facts: Mapping[str, Any] | None = None) -> Response:
    """A table as an Arrow stream; `facts` go into the metadata of its schema, as JSON."""
    if facts:
        table = table.replace_schema_metadata({name: to_json(value) for name, value in facts.items()})
    table = table.combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type=_ARROW)


def as_floats(array: np.ndarray, headers: Mapping[str, Any]) -> Response:
    """Little-endian float32, the last dimension varying fastest; complex numbers as their magnitudes."""
    magnitudes = np.abs(array) if np.iscomplexobj(array) else array
    with np.errstate(over="ignore", invalid="ignore"):
        floats = np.ascontiguousarray(magnitudes, dtype="<f4")
    described = {"X-Shape": list(array.shape), "X-Dtype": str(array.dtype), **headers}
    told = {name: json.dumps(value) for name, value in described.items()}
    told["Content-Length"] = str(floats.nbytes)
    data = floats.reshape(-1).view(np.uint8).data if floats.size else memoryview(b"")
    if len(data) <= _PIECE:
        return Response(bytes(data), headers=told, media_type="application/octet-stream")
    return InPieces(data, told)


class InPieces(StreamingResponse):
    """Many bytes, sent piece by piece: a whole copy of them is never made."""

    def __init__(self, data: memoryview, headers: Mapping[str, str]) -> None:
        self._data = data
        super().__init__(self.pieces(), headers=headers, media_type="application/octet-stream")

    @property
    def size(self) -> int:
        return len(self._data)

    def pieces(self) -> Iterator[bytes]:
        for start in range(0, len(self._data), _PIECE):
            yield bytes(self._data[start : start + _PIECE])

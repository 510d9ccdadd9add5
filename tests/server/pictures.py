"""Reads a picture as the page does, in a few lines of plain Python."""

from __future__ import annotations

import json
import struct
from typing import Any

WHOLE = ("parent", "tensor", "address", "flags", "members", "size")
FLOATS = ("x", "y", "width", "height", "entry")


def read(data: bytes) -> dict[str, Any]:
    """The head and every list of numbers, by name."""
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    found: dict[str, Any] = {"head": head}
    boxes, edges = head["boxes"], head["edges"]
    counts = [(name, boxes, "i") for name in WHOLE]
    counts += [("boxOfTensor", head["tensors"], "i"), ("from", edges, "i"), ("to", edges, "i"), ("back", edges, "i")]
    counts += [("starts", edges + 1, "i"), *((name, boxes, "f") for name in FLOATS), ("points", head["points"], "f")]
    at = 4 + length
    for name, count, kind in counts:
        found[name] = list(struct.unpack_from(f"<{count}{kind}", data, at))
        at += 4 * count
    assert at == len(data)
    return found

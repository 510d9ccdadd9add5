"""Answers in JSON. Nothing here needs numpy or pyarrow: the page's own files are served before these are imported."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response


def as_json(data: Any, status: int = 200) -> Response:
    # The name of a folder may be no text; half a surrogate pair is escaped.
    return Response(to_json(data).encode(errors="backslashreplace"), status, media_type="application/json")


def to_json(data: Any) -> str:
    """JSON that every browser reads: NaN and infinities, which JSON does not have, become null."""
    try:
        return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, TypeError):
        return json.dumps(_plain(data), allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not getattr(value, "shape", None):  # a number of numpy
        return _plain(value.item())
    return value

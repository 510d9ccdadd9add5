"""JSON that carries its own checksum, as its last member: {"commit": 3, …, "crc": "0badf00d"}."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

_SEAL = re.compile(rb',\s*"crc": ?"([0-9a-f]{8})"\s*\}\s*')


def seal(document: Mapping[str, Any], indent: int | None = None) -> bytes:
    """The document as JSON, with a checksum over everything that stands before the checksum."""
    if indent is None:
        return seal_line(dump(document)[:-1])
    text = dump(document, indent, (",", ": "))[:-1].rstrip("\n").encode()
    return text + b",\n" + b" " * indent + b'"crc": "%08x"\n}\n' % zlib.crc32(text)


def seal_line(text: str) -> bytes:
    """The same for a JSON object on one line, given without its closing brace."""
    data = text.encode()
    return b'%b,"crc":"%08x"}\n' % (data, zlib.crc32(data))


def unseal(text: bytes) -> dict[str, Any] | None:
    """The document, without the checksum; None if anything in it was changed."""
    start = text.rfind(b",", 0, text.rfind(b'"crc"'))
    match = _SEAL.fullmatch(text, max(start, 0)) if start > 0 else None
    if match is None or zlib.crc32(text[:start]) != int(match[1], 16):
        return None
    document = json.loads(text)
    del document["crc"]
    return dict(document)


def dump(value: Any, indent: int | None = None, separators: tuple[str, str] = (",", ":")) -> str:
    """JSON of whatever a user put there: numbers of numpy are numbers, what JSON cannot hold becomes text."""
    try:
        return json.dumps(value, indent=indent, separators=separators, default=_plain)
    except (TypeError, ValueError):  # keys that are no text, a structure that contains itself
        return json.dumps(_with_text_keys(value, 0), indent=indent, separators=separators, default=_plain)


_DEEPEST = 50


def _with_text_keys(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): _with_text_keys(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(item, depth + 1) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # arrays and numbers of numpy and torch
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return str(value)

"""JSON that carries its own checksum, as its last member: {"commit": 3, …, "crc": "0badf00d"}."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

_SEAL = re.compile(rb',\s*"crc": ?"([0-9a-f]{8})"\s*\}\s*')
#: In JSON: an escaped backslash or both halves of a pair, which stay; or one half alone, which is no text.
_HALF_PAIR = re.compile(r"(\\\\|\\ud[89ab]..\\ud[c-f]..)|\\(ud[89a-f]..)", re.IGNORECASE)


def seal(document: Mapping[str, Any], indent: int | None = None) -> bytes:
    """The document as JSON, with a checksum over everything that stands before the checksum."""
    if indent is None:
        data = dump(document)[:-1].encode()
        return b'%b,"crc":"%08x"}\n' % (data, zlib.crc32(data))
    text = dump(document, indent, (",", ": "))[:-1].rstrip("\n").encode()
    return text + b",\n" + b" " * indent + b'"crc": "%08x"\n}\n' % zlib.crc32(text)


def unseal(text: bytes) -> dict[str, Any] | None:
    """The document, without the checksum; None if anything in it was changed."""
    start = text.rfind(b",", 0, text.rfind(b'"crc"'))
    match = _SEAL.fullmatch(text, max(start, 0)) if start > 0 else None
    if match is None or zlib.crc32(text[:start]) != int(match[1], 16):
        return None
    document = load(text)
    if document is not None:
        document.pop("crc", None)
    return document


def load(text: bytes | str) -> dict[str, Any] | None:
    """A JSON object; None if the text is none."""
    try:
        found = json.loads(_escaped(text if isinstance(text, str) else text.decode()))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def dump(value: Any, indent: int | None = None, separators: tuple[str, str] = (",", ":")) -> str:
    r"""JSON of whatever a user put there: numbers of numpy are numbers, what JSON cannot hold becomes text.

    Half a surrogate pair, which no text can hold, is escaped: "\\ud800".
    """
    try:
        text = json.dumps(value, indent=indent, separators=separators, default=_plain)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, a structure that contains itself
        text = json.dumps(_with_text_keys(value, 0), indent=indent, separators=separators, default=_plain)
    return _escaped(text)


def to_utf8(text: str) -> bytes:
    r"""As bytes; half a surrogate pair is escaped: "\\ud800"."""
    return text.encode(errors="backslashreplace")


def _escaped(text: str) -> str:
    return _HALF_PAIR.sub(lambda found: found[1] or rf"\\{found[2]}", text) if r"\ud" in text.lower() else text


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

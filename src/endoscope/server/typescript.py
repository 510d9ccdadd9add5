"""Makes frontend/src/api/types.ts from wire.py:  python -m endoscope.server.typescript frontend/src/api/types.ts"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from endoscope.schema import stats
from endoscope.server import wire

_HEAD = "// Made from src/endoscope/server/wire.py by `python -m endoscope.server.typescript`. Do not edit.\n"
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}


def generate() -> str:
    """The whole file."""
    parts = [_HEAD, _constants()]
    comments = _comments(inspect.getsource(wire))
    for name, value in vars(wire).items():
        if typing.is_typeddict(value) and not name.startswith("_"):
            parts.append(_interface(name, value, comments))
    parts.append(_statistics())
    return "\n".join(parts)


def _constants() -> str:
    numbers = {
        "LAYOUT_VERSION": wire.LAYOUT_VERSION,
        "SELECTION_VERSION": wire.SELECTION_VERSION,
        "HISTOGRAM_BINS": stats.HISTOGRAM_BINS,
        "ZERO_BIN": stats.ZERO_BIN,
        "LOWEST_EXPONENT": stats.LOWEST_EXPONENT,
    }
    return "\n".join(f"export const {name} = {value};" for name, value in numbers.items()) + "\n"


def _statistics() -> str:
    """Those that are built in: the page needs labels for them before it has seen a trial."""
    found = [_literal(wire.statistic(one)) for one in stats.BUILT_IN]
    units = json.dumps(stats.UNIT)
    lines = ["export const STATISTICS: readonly Statistic[] = [", *(f"  {one}," for one in found), "];"]
    return "\n".join([*lines, f"export const UNIT_STATISTICS = {units} as const;"]) + "\n"


def _literal(found: Mapping[str, object]) -> str:
    fields = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in found.items()]
    return "{ " + ", ".join(fields) + " }"


def _interface(name: str, described: type, comments: dict[str, dict[str, str]]) -> str:
    said: dict[str, str] = {}
    for base in (*getattr(described, "__orig_bases__", ()), described):
        said |= comments.get(getattr(base, "__name__", ""), {})
    lines = [*_comment(inspect.getdoc(described) or "", ""), f"export interface {name} {{"]
    for field, annotation in typing.get_type_hints(described).items():
        lines += _comment(said.get(field, ""), "  ")
        lines.append(f"  readonly {field}: {_type(annotation)};")
    return "\n".join([*lines, "}"]) + "\n"


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}/** {text} */"] if text else []


def _type(annotation: Any) -> str:
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if typing.is_typeddict(annotation):
        return str(annotation.__name__)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        inner = _type(arguments[0])
        return f"readonly ({inner})[]" if " " in inner else f"readonly {inner}[]"
    if origin is dict:
        return f"Readonly<Record<string, {_type(arguments[1])}>>"
    if origin is tuple:
        return f"readonly [{', '.join(_type(part) for part in arguments)}]"
    if origin is typing.Literal:
        return " | ".join(f'"{word}"' for word in arguments)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(_type(part) for part in arguments)
    raise TypeError(f"wire.py uses {annotation!r}, for which there is no type of TypeScript here")


def _comments(source: str) -> dict[str, dict[str, str]]:
    """Class -> field -> what stands behind the field's `#`."""
    lines = source.splitlines()
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            texts = {ast.unparse(part.target): lines[part.lineno - 1].partition("  # ")[2] for part in fields}
            found[node.name] = {field: text[:1].upper() + text[1:] for field, text in texts.items() if text}
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(generate(), encoding="utf-8")

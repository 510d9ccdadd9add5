"""The page's types are made from the server's."""

from __future__ import annotations

import re
import typing

import pytest

from endoscope.server import live, typescript, wire
from endoscope.server.routes import findings, layout, tables, trials, views
from tests.house.tree import ROOT

ROUTE_MODULES = (live, findings, layout, tables, trials, views)
FILE = ROOT / "frontend" / "src" / "api" / "types.ts"


def test_the_file_is_what_would_be_made_now() -> None:
    command = "python -m endoscope.server.typescript frontend/src/api/types.ts"
    assert FILE.read_text(encoding="utf-8") == typescript.generate(), f"types.ts is stale. Type:  {command}"


def test_every_type_of_the_wire_is_in_it() -> None:
    text = typescript.generate()
    names = [name for name, value in vars(wire).items() if typing.is_typeddict(value) and not name.startswith("_")]
    assert len(names) > 20 and all(f"export interface {name} {{" in text for name in names)
    assert "  readonly pass: number;" in text and "  readonly pass: number | null;" in text
    assert "  /** Number of the newest recorded step */\n  readonly lastStep: number | null;" in text
    assert "readonly edges: readonly (readonly [number, number, readonly string[]])[];" in text
    assert 'readonly kind: "image" | "frame" | "text" | "error";' in text


def test_a_type_that_is_not_known_is_a_mistake() -> None:
    with pytest.raises(TypeError, match=r"wire\.py uses"):
        typescript._type(bytes)


def test_every_address_is_described() -> None:
    text = (ROOT / "src" / "endoscope" / "server" / "HTTP_API.md").read_text(encoding="utf-8")
    routes = [route for module in ROUTE_MODULES for route in module.ROUTES]
    assert len(routes) > 15
    assert not {route.path for route in routes if f"`{route.path}`" not in text}
    answers = set(re.findall(r"`([A-Z][A-Za-z]+)`", text)) - {"Host", "Origin"}
    assert {name for name in answers if not hasattr(wire, name)} == set()

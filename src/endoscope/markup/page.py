"""The frame of an offline page: one file, nothing is fetched and nothing runs, whatever it shows."""

from __future__ import annotations

from collections.abc import Iterable

from endoscope.markup.style import STYLE
from endoscope.markup.tags import Markup, tag

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, body: Iterable[Markup]) -> str:
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    ]
    arrow = tag("path", d="M0 0L8 4L0 8z", class_="tip")
    marker = tag(
        "marker", arrow, id="arrow", markerWidth="8", markerHeight="8", refX="7.5", refY="4", orient="auto",
        markerUnits="userSpaceOnUse",
    )  # fmt: skip
    shared = tag("svg", tag("defs", marker), width=0, height=0, class_="shared", aria_hidden="true")
    whole = tag("html", tag("head", head), tag("body", shared, tag("main", list(body))), lang="en")
    return f"<!doctype html>\n{whole}\n"


def logo(words: str) -> Markup:
    return tag("p", tag("i", class_="ring"), words, class_="logo")

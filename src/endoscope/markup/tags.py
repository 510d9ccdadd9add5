"""HTML and SVG out of Python, so that nothing from a recording can become markup.

Text is escaped unless it is `Markup`, and `Markup` is only made here: `tag("b", name, class_="node")`.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable

_EMPTY = frozenset(("br", "hr", "img", "meta", "line", "rect", "circle", "path", "image", "polyline", "polygon", "use"))
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | float | None | Iterable["Child"]


def text(value: object) -> Markup:
    """Anything as harmless text; characters that no browser would show become a visible sign."""
    return Markup(html.escape(_FORBIDDEN.sub("�", str(value))))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """One element; `class_` and `stroke_width` become `class` and `stroke-width`, what is None or False is left out."""
    told = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _EMPTY and not children:
        return Markup(f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{join(children)}</{name}>")


def join(children: Iterable[Child], between: str = "") -> Markup:
    """Children one after the other; lists are opened, None is nothing."""
    return Markup(between.join(_render(child) for child in children))


def _render(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, (str, int, float)):
        return text(child)
    return join(child)


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if name == "viewbox":
        name = "viewBox"
    if name == "preserveaspectratio":
        name = "preserveAspectRatio"
    if value is True:
        return f" {name}"
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
    return f' {name}="{text(shown)}"'


def picture(svg: str, label: str) -> Markup:
    """An SVG with a look of its own: as an image, so that the page's rules do not reach into it, nor its own out."""
    data = base64.b64encode(svg.encode()).decode()
    return tag("img", src=f"data:image/svg+xml;base64,{data}", alt=label, style="background: #fff; max-width: none")

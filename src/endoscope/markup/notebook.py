"""What notebooks show: HTML that needs no script, no server and no other file, so that it is there after saving.

Jupyter, VS Code and Colab treat HTML differently: some take the style away. What is written here can be read without.
Colours are those of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from endoscope.markup.tags import Child, Markup, tag

MOST_BYTES = 400_000  # of one output: a saved notebook holds all of them
_MOST_TEXT = 100_000
_STYLE = Markup(
    """
.endoscope { font: 13px/1.45 system-ui, sans-serif; max-width: 100%; }
.endoscope .soft { opacity: 0.7; }
.endoscope table { border-collapse: collapse; margin: 4px 0; display: block; overflow: auto; max-height: 420px; }
.endoscope th, .endoscope td { text-align: left; vertical-align: top; padding: 2px 10px 2px 0; font-size: 12px;
  border-bottom: 1px solid rgba(128, 128, 128, 0.3); }
.endoscope pre { margin: 0; font-size: 12px; white-space: pre-wrap; }
.endoscope summary { cursor: pointer; font-weight: 600; margin: 4px 0; }
.endoscope .picture { overflow: auto; max-height: 520px; }
.endoscope .badge { border: 1px solid rgba(128, 128, 128, 0.6); border-radius: 9px; padding: 0 8px; font-size: 11px; }
.endoscope .error { border-color: #d04a42; } .endoscope .warning { border-color: #c98a1b; }
"""
)


class Shown:
    """Shows itself in notebooks, as plain text and as HTML."""

    __slots__ = ()

    def _block(self) -> Markup:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return block(self._block())

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        text = str(self)
        shown = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}\n… cut here, print() shows all of it"
        bundle = {"text/plain": shown, "text/html": self._repr_html_()}
        return {kind: data for kind, data in bundle.items() if not _is_left_out(kind, include, exclude)}


def _is_left_out(kind: str, include: Collection[str] | None, exclude: Collection[str] | None) -> bool:
    return (bool(include) and kind not in (include or ())) or kind in (exclude or ())


def block(body: Markup) -> str:
    """The whole of one output."""
    return tag("div", tag("style", _STYLE), body, class_="endoscope")


def fitting(parts: Iterable[Markup], instead: str) -> list[Markup]:
    """As many of the parts as there is room for; where some are left out, `instead` says how to see them."""
    shown: list[Markup] = []
    room = MOST_BYTES
    for part in parts:
        room -= len(part.encode())
        if room < 0:
            return [*shown, tag("p", instead, class_="soft")]
        shown.append(part)
    return shown


def table(head: Sequence[str], rows: Iterable[Sequence[Child]]) -> Markup:
    body = [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    return tag("table", tag("tr", [tag("th", word) for word in head]) if head else None, body)


def facts(rows: Iterable[tuple[str, str]]) -> Markup:
    """Title and text; several lines stay several lines."""
    return tag("table", [tag("tr", tag("th", title), tag("td", tag("pre", text))) for title, text in rows])


def folded(title: str, *inside: Child, opened: bool = False) -> Markup:
    return tag("details", tag("summary", title), list(inside), open=opened)


def run_block(name: str, told: str, path: str) -> Markup:
    """Of a training that is being recorded."""
    shown = f"endoscope.show({path!r})"
    return tag("div", tag("p", tag("b", name), f": {told}"), tag("pre", shown) if path else None)

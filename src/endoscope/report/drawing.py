"""The dependency graph as inline SVG: boxes by kind, marked where something was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from endoscope.report.folding import Box, Folded
from endoscope.report.layers import Item, Placed, arrange, in_order
from endoscope.report.markup import Markup, tag

_HIGH = 38.0
_BETWEEN = 30.0
_EDGE = 16.0  # around everything
_LETTER = 6.6  # mean width
_NARROWEST, _WIDEST = 84.0, 210.0
_MOST_LETTERS = int((_WIDEST - 22) / _LETTER)


class Mark(NamedTuple):
    """A finding at a node."""

    number: int  # of the finding in the list
    severity: str
    title: str
    anchor: str


def draw(folded: Folded, marks: Mapping[str, Sequence[Mark]], label: str) -> Markup:
    """`marks`: key of a box -> findings in it."""
    order = in_order({key: box.position for key, box in folded.boxes.items()}, folded.edges)
    widths = {key: _width(folded.boxes[key]) for key in order}
    placed = arrange(order, folded.edges, widths)
    wide = placed.width + 2 * _EDGE
    high = placed.count * (_HIGH + _BETWEEN) - _BETWEEN + 2 * _EDGE
    edges = [_edge(way, placed) for way in placed.ways.values()]
    edges += [_back(source, target, placed, widths) for source, target in placed.back]
    boxes = [_box(folded.boxes[key], placed, widths[key], marks.get(key, ())) for key in order]
    return tag(
        "svg", tag("title", label), tag("g", edges, class_="edges"), boxes, viewbox=f"0 0 {wide:.0f} {high:.0f}",
        width=f"{wide:.0f}", height=f"{high:.0f}", class_="graph", role="img", aria_label=label,
    )  # fmt: skip


def _width(box: Box) -> float:
    longest = max(min(len(box.title), _MOST_LETTERS), min(len(box.note), _MOST_LETTERS) * 0.95)
    return min(max(longest * _LETTER + 24, _NARROWEST), _WIDEST)


def _top(layer: int) -> float:
    return _EDGE + layer * (_HIGH + _BETWEEN)


def _layer(item: Item, placed: Placed) -> int:
    return placed.layer[item] if isinstance(item, str) else item[2]


def _edge(way: Sequence[Item], placed: Placed) -> Markup:
    """From the lower side of a box to the upper side of another, straight through layers on the way."""
    parts = []
    for upper, lower in pairwise(way):
        x1, x2 = placed.x[upper] + _EDGE, placed.x[lower] + _EDGE
        y1 = _top(_layer(upper, placed)) + _HIGH
        y2 = _top(_layer(lower, placed))
        middle = (y1 + y2) / 2
        start = f"M{x1:.1f} {y1:.1f}" if upper is way[0] else f"L{x1:.1f} {y1:.1f}"
        parts.append(f"{start}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}")
    return tag("path", d="".join(parts), class_="edge", marker_end="url(#arrow)")


def _back(source: str, target: str, placed: Placed, widths: Mapping[str, float]) -> Markup:
    """What comes round again leaves and enters at the right side."""
    x1 = placed.x[source] + widths[source] / 2 + _EDGE
    x2 = placed.x[target] + widths[target] / 2 + _EDGE
    y1, y2 = (_top(placed.layer[key]) + _HIGH / 2 for key in (source, target))
    out = max(x1, x2) + 14
    return tag(
        "path", d=f"M{x1:.1f} {y1:.1f}C{out:.1f} {y1:.1f} {out:.1f} {y2:.1f} {x2:.1f} {y2:.1f}", class_="edge back",
        marker_end="url(#arrow)",
    )  # fmt: skip


def _box(box: Box, placed: Placed, width: float, marks: Sequence[Mark]) -> Markup:
    x, y = placed.x[box.key] - width / 2 + _EDGE, _top(placed.layer[box.key])
    worst = marks[0].severity if marks else ""
    about = f"{box.title}: {box.note}" + "".join(f"\n{mark.number}. {mark.title}" for mark in marks)
    drawn = tag(
        "g",
        tag("title", about),
        tag("rect", x=x, y=y, width=width, height=_HIGH, rx=6, class_="body"),
        tag("rect", x=x, y=y + 6, width=4, height=_HIGH - 12, class_="bar"),
        tag("text", _shortened(box.title), x=x + 12, y=y + 16, class_="name"),
        tag("text", _shortened(box.note), x=x + 12, y=y + 30, class_="note"),
        _badge(x + width, y, marks) if marks else None,
        class_=f"box kind-{box.kind}" + (f" severity-{worst}" if worst else ""),
    )
    return tag("a", drawn, href=f"#{marks[0].anchor}") if marks else drawn


def _badge(x: float, y: float, marks: Sequence[Mark]) -> Markup:
    more = "" if len(marks) == 1 else "+"
    return tag(
        "g",
        tag("circle", cx=x - 2, cy=y + 2, r=9),
        tag("text", f"{marks[0].number}{more}", x=x - 2, y=y + 5.5, class_="middle"),
        class_="badge",
    )


def _shortened(text: str) -> str:
    """The end of a long name says more than its beginning."""
    return text if len(text) <= _MOST_LETTERS else "…" + text[-(_MOST_LETTERS - 1) :]

"""The dependency graph as inline SVG: boxes by kind in frames of modules, marked where something was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from endoscope.layout.compose import Layout, arrange
from endoscope.layout.folding import Box, Folded
from endoscope.layout.recorded import RecordedTree
from endoscope.layout.sizes import sized
from endoscope.markup.tags import Markup, tag

_EDGE = 16.0  # around everything
_LETTER, _NOTE_LETTER = 6.6, 5.4  # mean width
_SAME = 0.01


class Mark(NamedTuple):
    """A finding at a node."""

    number: int  # of the finding in the list
    severity: str
    title: str
    anchor: str


def draw(network: RecordedTree, folded: Folded, marks: Mapping[int, Sequence[Mark]], label: str) -> Markup:
    """`marks`: number of a box -> findings in it."""
    texts = [network.box_texts(box) for box in folded.boxes]
    layout = arrange(sized(folded, texts, [False] * len(texts), {}))
    wide, high = layout.total_width + 2 * _EDGE, layout.total_height + 2 * _EDGE
    numbers = range(len(folded.boxes))
    frames = [_frame(layout, number, texts[number][0]) for number in numbers if folded.boxes[number].open]
    boxes = [
        _box(network, folded.boxes[number], _place(layout, number), texts[number], marks.get(number, ()))
        for number in numbers
        if not folded.boxes[number].open
    ]
    edges = [
        _edge(path, back, is_chip=source in folded.chips)
        for (source, _), path, back in zip(folded.edges, layout.paths, layout.back, strict=True)
    ]
    drawn = tag("g", frames, tag("g", edges, class_="edges"), boxes, transform=f"translate({_EDGE:g} {_EDGE:g})")
    return tag(
        "svg", tag("title", label), drawn, viewbox=f"0 0 {wide:.0f} {high:.0f}", width=f"{wide:.0f}",
        height=f"{high:.0f}", class_="graph", role="img", aria_label=label,
    )  # fmt: skip


def kind_of(network: RecordedTree, box: Box) -> str:
    """What its colour says."""
    return network.tree.graph.parts[box.part].kind if box.part >= 0 else "module"


class _Place(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def _place(layout: Layout, box: int) -> _Place:
    return _Place(layout.x[box], layout.y[box], layout.width[box], layout.height[box])


def _frame(layout: Layout, box: int, title: str) -> Markup:
    x, y, width, height = _place(layout, box)
    return tag(
        "g",
        tag("rect", x=x, y=y, width=width, height=height, rx=8, class_="frame"),
        tag("text", _shortened(title, width - 16), x=x + 10, y=y + 15, class_="note"),
    )


def _edge(path: Sequence[float], back: bool, *, is_chip: bool) -> Markup:
    """Straight where x or y stays the same, otherwise a curve with vertical ends; what comes round again is dashed."""
    points = list(zip(path[::2], path[1::2], strict=True))
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x1, y1), (x2, y2) in pairwise(points):
        if is_chip or abs(x1 - x2) < _SAME or abs(y1 - y2) < _SAME:
            parts.append(f"L{x2:.1f} {y2:.1f}")
        else:
            middle = (y1 + y2) / 2
            parts.append(f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}")
    return tag("path", d="".join(parts), class_="edge back" if back else "edge", marker_end="url(#arrow)")


def _box(network: RecordedTree, box: Box, place: _Place, texts: tuple[str, str], marks: Sequence[Mark]) -> Markup:
    x, y, width, height = place
    worst = marks[0].severity if marks else ""
    about = f"{_about(network, box)}: {texts[1]}" + "".join(f"\n{mark.number}. {mark.title}" for mark in marks)
    drawn = tag(
        "g",
        tag("title", about),
        tag("rect", x=x, y=y, width=width, height=height, rx=6, class_="body"),
        tag("rect", x=x, y=y + 6, width=4, height=height - 12, class_="bar"),
        _texts(network, box, place, texts),
        _badge(x + width, y, marks) if marks else None,
        class_=f"box kind-{kind_of(network, box)}" + (f" severity-{worst}" if worst else ""),
    )
    return tag("a", drawn, href=f"#{marks[0].anchor}") if marks else drawn


def _texts(network: RecordedTree, box: Box, place: _Place, texts: tuple[str, str]) -> list[Markup]:
    x, y, width, _ = place
    label, detail = texts
    if box.is_chip:
        return [
            tag("text", _shortened(f"{label} {detail}", width - 12, _NOTE_LETTER), x=x + 9, y=y + 15, class_="note")
        ]
    count = f"×{len(box.modules)}" if len(box.modules) > 1 else ""
    if box.modules and not count:
        detail = f"{detail} · {network.tree.size[box.modules[0]]} nodes".removeprefix(" · ")
    found = [
        tag("text", _shortened(label, width - 20 - len(count) * _LETTER), x=x + 12, y=y + 15, class_="name"),
        tag("text", _shortened(detail, width - 18, _NOTE_LETTER), x=x + 12, y=y + 29, class_="note"),
    ]
    return [*found, tag("text", count, x=x + width - 8, y=y + 15, class_="note end")] if count else found


def _about(network: RecordedTree, box: Box) -> str:
    """The whole name."""
    if box.part >= 0:
        return network.tree.graph.parts[box.part].name
    addresses = [network.tree.modules[module].address for module in box.modules]
    types = network.types.get(addresses[0], "")
    return " … ".join(dict.fromkeys((addresses[0], addresses[-1]))) + (f" ({types})" if types else "")


def _badge(x: float, y: float, marks: Sequence[Mark]) -> Markup:
    more = "" if len(marks) == 1 else "+"
    return tag(
        "g",
        tag("circle", cx=x - 2, cy=y + 2, r=9),
        tag("text", f"{marks[0].number}{more}", x=x - 2, y=y + 5.5, class_="middle"),
        class_="badge",
    )


def _shortened(text: str, width: float, letter: float = _LETTER) -> str:
    """The end of a long name says more than its beginning."""
    most = max(2, int(width / letter))
    return text if len(text) <= most else "…" + text[-(most - 1) :]

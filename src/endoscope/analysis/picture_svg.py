"""A picture as SVG, which every browser shows and no program has to be installed for."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import pairwise

from endoscope.analysis.picture import NOWHERE, Edge, Look, Node, Picture
from endoscope.analysis.picture_code import CONTROL, FOLD, LINE, fill, frame_color, is_box, is_dashed
from endoscope.analysis.picture_layout import (
    COUNT_SIZE,
    EDGE_SIZE,
    LOOP,
    NODE_SIZE,
    Item,
    Places,
    Point,
    Route,
    lay_out,
    line_height,
    line_width,
)
from endoscope.analysis.picture_text import Line, Span, cut

_EDGE = 12.0  # around everything
_TITLE_SIZE = 13.0
_TITLE_LINE = 16.0
_LONGEST_TITLE = 200
_RIM = 3.0  # between the two outlines of a closed module
_SAME = 0.01

_STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;font-size:10px;text-anchor:middle;white-space:pre}"
    ".bold{font-weight:bold}.left{text-anchor:start}.edge{fill:none;stroke-width:1}.small{font-size:8px}"
)


def svg_text(picture: Picture, direction: str = "down") -> str:
    """The whole picture; the corner tells title and totals."""
    places = lay_out(picture, direction)
    head = [cut(picture.title, _LONGEST_TITLE), *map(cut, picture.facts)]
    top = _EDGE + len(head) * _TITLE_LINE + 6
    written = max(line_width((Span(line, bold=number == 0),), _TITLE_SIZE) for number, line in enumerate(head))
    width, height = max(places.width, written) + 2 * _EDGE, places.height + top + _EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{_escaped(head[0])}</title>",
        f"<style>{_STYLE}</style>",
        f"<defs>{''.join(_markers())}</defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *_corner(head),
        f'<g transform="translate({_EDGE:g} {top:g})">',
        *_content(picture, places),
        "</g>",
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def _corner(head: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(head):
        y = _EDGE + number * _TITLE_LINE + _TITLE_SIZE
        style = 'class="left bold"' if number == 0 else 'class="left"'
        yield f'<text {style} x="{_EDGE:g}" y="{y:g}" style="font-size:{_TITLE_SIZE:g}px">{_escaped(line)}</text>'


def _markers() -> Iterator[str]:
    """Heads of arrows; that of a decision is open."""
    for name, color in (("line", LINE), ("fold", FOLD)):
        head = f'<path d="M0 0L8 3.5L0 7z" fill="{color}"/>'
        yield _marker(name, head)
    yield _marker("control", f'<path d="M1 0.5L8 3.5L1 6.5" fill="none" stroke="{CONTROL}"/>')


def _marker(name: str, head: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 9 7" refX="8" refY="3.5" markerWidth="9" markerHeight="7" '
        f'markerUnits="userSpaceOnUse" orient="auto">{head}</marker>'
    )


def _content(picture: Picture, places: Places) -> Iterator[str]:
    """Frames, edges, nodes, texts of edges: each over the ones before."""
    frames = [item for item in places.items if item.box != NOWHERE]
    for item in frames:
        yield _frame(picture, item)
    for route in places.routes:
        yield _edge(route, places.turned)
    for item in frames:
        yield from _frame_title(item)
    for item in places.items:
        if item.node is not None:
            yield from _node(item, item.node, places.turned)
    for route in places.routes:
        if route.label is not None:
            yield from _edge_text(route.label, FOLD if route.edge.again else "#000000")


def _frame(picture: Picture, item: Item) -> str:
    box = picture.boxes[item.box]
    dots = ' stroke-dasharray="2 3"' if box.function else ' rx="6"'
    width = 2 if box.times > 1 else 1
    return (
        f'<rect x="{item.x:.1f}" y="{item.y:.1f}" width="{item.width:.1f}" height="{item.height:.1f}"{dots} '
        f'fill="none" stroke="{frame_color(box)}" stroke-width="{width}"/>'
    )


def _frame_title(item: Item) -> Iterator[str]:
    """In the middle of the upper border's strip; edges pass behind."""
    if not item.lines:
        return
    width = line_width(item.lines[0], NODE_SIZE) + 4
    x = item.x + item.width / 2
    yield f'<rect x="{x - width / 2:.1f}" y="{item.y + 3:.1f}" width="{width:.1f}" height="14" fill="#ffffff"/>'
    yield _text(item.lines[0], x, item.y + 14)


def _node(item: Item, node: Node, turned: bool) -> Iterator[str]:
    sideways, upright = (0.0, item.loop_room) if turned else (item.loop_room, 0.0)
    x, y = item.x + sideways, item.y + upright
    width, height = item.width - 2 * sideways, item.height - 2 * upright
    look = f'fill="{fill(node)}" stroke="#000000"' + (' stroke-dasharray="5 3"' if is_dashed(node) else "")
    yield f"<g><title>{_escaped(cut(node.label))}</title>"
    if is_box(node):
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'
    else:
        rx, ry = width / 2, height / 2
        yield f'<ellipse cx="{x + rx:.1f}" cy="{y + ry:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" {look}/>'
    if node.look is Look.MODULE:
        inner = width - 2 * _RIM, height - 2 * _RIM
        yield (
            f'<rect x="{x + _RIM:.1f}" y="{y + _RIM:.1f}" width="{inner[0]:.1f}" height="{inner[1]:.1f}" '
            'fill="none" stroke="#000000"/>'
        )
    yield from _lines(item.lines, x + width / 2, y + height / 2, NODE_SIZE)
    yield "</g>"


def _edge_text(item: Item, color: str) -> Iterator[str]:
    yield (
        f'<rect x="{item.x:.1f}" y="{item.y:.1f}" width="{item.width:.1f}" height="{item.height:.1f}" '
        'fill="#ffffff" fill-opacity="0.9"/>'
    )
    yield f'<g class="small" fill="{color}">'
    yield from _lines(item.lines, item.x + item.width / 2, item.y + item.height / 2, EDGE_SIZE)
    yield "</g>"


def _lines(lines: Sequence[Line], x: float, middle: float, size: float) -> Iterator[str]:
    y = middle - sum(line_height(line, size) for line in lines) / 2
    for line in lines:
        y += line_height(line, size)
        yield _text(line, x, y - size * 0.3, size)


def _text(line: Line, x: float, y: float, size: float = NODE_SIZE) -> str:
    spans = [_span(span) for span in line]
    look = "" if size == NODE_SIZE else ' class="small"'
    return f'<text{look} x="{x:.1f}" y="{y:.1f}">{"  ".join(spans)}</text>'


def _span(span: Span) -> str:
    text = _escaped(span.text)
    if span.is_count:
        return f'<tspan class="bold" fill="{FOLD}" style="font-size:{COUNT_SIZE:g}px">{text}</tspan>'
    return f'<tspan class="bold">{text}</tspan>' if span.bold else text


# ---- edges -----------------------------------------------------------------------------------------------------------


def _edge(route: Route, turned: bool) -> str:
    color, head, dashes = _look_of(route.edge)
    return f'<path class="edge" d="{_path(route, turned)}" stroke="{color}"{dashes} marker-end="url(#{head})"/>'


def _look_of(edge: Edge) -> tuple[str, str, str]:
    if edge.control:
        return CONTROL, "control", ' stroke-dasharray="5 3"'
    if edge.again:
        return FOLD, "fold", ' stroke-dasharray="5 3"'
    return LINE, "line", ""


def _path(route: Route, turned: bool) -> str:
    points = route.points
    start = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    if route.edge.source == route.edge.target:
        return start + _loop(points, turned)
    if route.is_chip:
        return start + _to("L", points[-1])
    pieces = [start]
    for (x1, y1), (x2, y2) in pairwise(points):
        if abs(x1 - x2) < _SAME or abs(y1 - y2) < _SAME:
            pieces.append(_to("L", (x2, y2)))
        elif turned:
            middle = (x1 + x2) / 2
            pieces.append(_to("C", (middle, y1), (middle, y2), (x2, y2)))
        else:
            middle = (y1 + y2) / 2
            pieces.append(_to("C", (x1, middle), (x2, middle), (x2, y2)))
    return "".join(pieces)


def _loop(points: Sequence[Point], turned: bool) -> str:
    away = (0.0, LOOP) if turned else (LOOP, 0.0)
    return _to("C", *((x + away[0], y + away[1]) for x, y in points), points[1])


def _to(command: str, *points: Point) -> str:
    return command + " ".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)

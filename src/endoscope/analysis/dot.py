"""A picture as text for Graphviz, for those who want to lay it out themselves."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from endoscope.analysis.picture import NOWHERE, Box, Edge, Look, Node, Picture
from endoscope.analysis.picture_code import CONTROL, FOLD, LINE, WHITE, fill, frame_color, is_box, is_dashed
from endoscope.analysis.picture_text import Line, Span, box_line, cut, edge_lines, node_lines

#: Where the arrows point -> Graphviz' word for it.
DIRECTIONS = {"up": "BT", "down": "TB", "left": "RL", "right": "LR"}

_GAP = "\u00a0"  # a space that Graphviz keeps
_LONGEST_TITLE = 200

_HEAD = """\
digraph {{
graph [rankdir={direction} fontname="Helvetica,Arial,sans-serif" fontsize=13 label=<{label}> labelloc=t labeljust=l
  ranksep=0.3
  nodesep=0.2 pad=0.15{large}]
node [shape=oval style=filled fillcolor="{white}" fontname="Helvetica,Arial,sans-serif" fontsize=10 height=0.3
  margin="0.09,0.03"]
edge [fontname="Helvetica,Arial,sans-serif" fontsize=8 arrowsize=0.6 color="{line}"]
"""
# Graphviz optimises until it is done, which for thousands of nodes can be never: say how many rounds.
_LARGE = "\n  nslimit={limit:.3f} nslimit1=1 mclimit=0.2 splines=line"
_ROUNDS = 60


def dot_text(picture: Picture, direction: str = "down", large: int = 1500) -> str:
    """The picture in the DOT language. Above `large` nodes the layout is asked to be quick, not beautiful."""
    quick = _LARGE.format(limit=_ROUNDS / len(picture.nodes)) if len(picture.nodes) > large else ""
    names = _names(picture.nodes)
    title = f"<b>{_escaped(cut(picture.title, _LONGEST_TITLE))}</b>"
    label = "<br align='left'/>".join([title, *(_escaped(cut(fact)) for fact in picture.facts)])
    head = _HEAD.format(
        direction=DIRECTIONS[direction], label=f"{label}<br align='left'/>", large=quick, white=WHITE, line=LINE
    )
    lines = [head, *_boxes_and_nodes(picture, names, direction)]
    lines += [f"{names[e.source]} -> {names[e.target]}{_edge(e)}" for e in picture.edges]
    return "\n".join([*lines, "}", ""])


def _names(nodes: Sequence[Node]) -> dict[int, str]:
    """What a node is called in the file: its label. Browsers show it when the pointer rests on the node."""
    names: dict[int, str] = {}
    used: dict[str, int] = {}
    for node in nodes:
        count = used[node.label] = used.get(node.label, 0) + 1
        names[node.key] = f'"{_quoted(node.label if count == 1 else f"{node.label} ({count})")}"'
    return names


def _boxes_and_nodes(picture: Picture, names: dict[int, str], direction: str) -> Iterator[str]:
    inner_boxes: dict[int, list[Box]] = {}
    inner_nodes: dict[int, list[Node]] = {}
    for key in sorted(picture.boxes):
        inner_boxes.setdefault(picture.boxes[key].parent, []).append(picture.boxes[key])
    for node in picture.nodes:
        inner_nodes.setdefault(node.box, []).append(node)
    pending: list[Box | str] = list(reversed(inner_boxes.get(NOWHERE, [])))
    yield from (f"{names[node.key]} {_node(node, '')}" for node in inner_nodes.get(NOWHERE, []))
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
            continue
        around = picture.address_around(item.parent)
        yield f'subgraph "cluster_{item.key} {_quoted(item.name)}" {{ {_frame(item, around, direction)}'
        inner = picture.address_around(item.key)
        yield from (f"{names[node.key]} {_node(node, inner)}" for node in inner_nodes.get(item.key, []))
        pending.append("}")
        pending += reversed(inner_boxes.get(item.key, []))


def _frame(box: Box, around: str, direction: str) -> str:
    label = "b" if direction == "up" else "t"  # Graphviz turns them with the picture: this is always the upper edge
    style = "dotted" if box.function else "rounded"
    width = 2 if box.times > 1 else 1
    look = f'style={style} color="{frame_color(box)}" penwidth={width} fontsize=10 margin=8 labelloc={label}'
    return f"graph [label=<{_html(box_line(box, around)) or ' '}> {look}]"


def _node(node: Node, around: str) -> str:
    attributes = [f"label=<{_lines(node_lines(node, around))}>"]
    if is_box(node):
        attributes.append("shape=box")
    if fill(node) != WHITE:
        attributes.append(f'fillcolor="{fill(node)}"')
    if is_dashed(node):
        attributes.append('style="filled,dashed"')
    if node.look is Look.MODULE:
        attributes.append("peripheries=2")
    return f"[{' '.join(attributes)}]"


def _edge(edge: Edge) -> str:
    attributes = []
    if lines := edge_lines(edge):
        attributes.append(f"label=<{'<br/>'.join(f'{_GAP}{_html(line)}{_GAP}' for line in lines)}>")
    if edge.control:
        attributes.append(f'style=dashed color="{CONTROL}" arrowhead=open')
    if edge.again:
        attributes.append(f'style=dashed color="{FOLD}" fontcolor="{FOLD}" constraint=false')
    return f" [{' '.join(attributes)}]" if attributes else ""


def _lines(lines: Iterable[Line]) -> str:
    return "<br/>".join(map(_html, lines))


def _html(line: Line) -> str:
    return f"{_GAP} ".join(map(_span, line))


def _span(span: Span) -> str:
    text = f"<b>{_escaped(span.text)}</b>" if span.bold else _escaped(span.text)
    return f'<font color="{FOLD}" point-size="13">{text}</font>' if span.is_count else text


def _escaped(text: str) -> str:
    return html.escape(text, quote=False) if text.strip() else _GAP  # Graphviz cannot read an empty <b></b>


def _quoted(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')

"""A picture as text for Graphviz.

The visual code is that of the TorchLens paper: green inputs, red outputs, grey where parameters are used, light grey
buffers, boxes for operations that are a whole module and ovals for all others, frames around modules, dashes around
what no input leads to, yellow for a value that decided a branch.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from endoscope.analysis.picture import NOWHERE, Box, Edge, Look, Node, Picture, Weight, range_text, size_text

#: Where the arrows point -> Graphviz' word for it.
DIRECTIONS = {"up": "BT", "down": "TB", "left": "RL", "right": "LR"}

GREEN, RED = "#98e698", "#ff9c94"
PALE_GREEN, PALE_RED = "#dcf5dc", "#ffdeda"
GREY, LIGHT_GREY, WHITE = "#d0d0d0", "#efefef", "#ffffff"
YELLOW = "#ffe14d"
FRAME, FOLD, CONTROL = "#7a7a7a", "#2f5fb3", "#c98a00"

_FILL = {
    Look.INPUT: GREEN,
    Look.OUTPUT: RED,
    Look.BUFFER: LIGHT_GREY,
    Look.CONSTANT: LIGHT_GREY,
    Look.ENTRANCE: PALE_GREEN,
    Look.EXIT: PALE_RED,
}
_GAP = "\u00a0"  # a space that Graphviz keeps
_MOST_SHAPES = 4  # of parameters, in one node
_LONGEST_LINE = 60
_LONGEST_PREFIX = 12  # of addresses in full; inside a frame with a longer one they are told from there

_HEAD = """\
digraph {{
graph [rankdir={direction} fontname="Helvetica,Arial,sans-serif" fontsize=13 label=<{label}> labelloc=t labeljust=l
  ranksep=0.3
  nodesep=0.2 pad=0.15{large}]
node [shape=oval style=filled fillcolor="{white}" fontname="Helvetica,Arial,sans-serif" fontsize=10 height=0.3
  margin="0.09,0.03"]
edge [fontname="Helvetica,Arial,sans-serif" fontsize=8 arrowsize=0.6 color="#404040"]
"""
# Graphviz optimises until it is done, which for thousands of nodes can be never: say how many rounds.
_LARGE = "\n  nslimit={limit:.3f} nslimit1=1 mclimit=0.2 splines=line"
_ROUNDS = 60


def dot_text(picture: Picture, direction: str = "up", large: int = 1500) -> str:
    """The picture in the DOT language. Above `large` nodes the layout is asked to be quick, not beautiful."""
    quick = _LARGE.format(limit=_ROUNDS / len(picture.nodes)) if len(picture.nodes) > large else ""
    names = _names(picture.nodes)
    label = "<br align='left'/>".join([f"<b>{_text(picture.title, 200)}</b>", *map(_text, picture.facts)])
    lines = [
        _HEAD.format(direction=DIRECTIONS[direction], label=f"{label}<br align='left'/>", large=quick, white=WHITE)
    ]
    lines += _boxes_and_nodes(picture, names, direction)
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


def _short(address: str, around: str) -> str:
    """`encoder.layer.3.output.dense`, inside the frame of `encoder.layer.3.output`: `…dense`."""
    if len(around) > _LONGEST_PREFIX and address.startswith(around + "."):
        return "…" + address[len(around) + 1 :]
    return address


def _frame(box: Box, around: str, direction: str) -> str:
    label = "b" if direction == "up" else "t"  # Graphviz turns them with the picture: this is always the upper edge
    color, width = (FOLD, 2) if box.times > 1 else (FRAME, 1)
    style = "dotted" if box.function else "rounded"
    text = _box_label(box, around)
    look = f'style={style} color="{color}" penwidth={width} fontsize=10 margin=8 labelloc={label}'
    return f"graph [label=<{text}> {look}]"


def _box_label(box: Box, around: str) -> str:
    parts = []
    if box.times > 1:
        parts.append(f'<font color="{FOLD}" point-size="13"><b>×{box.times}</b></font>')
    if box.function:
        parts.append(f"<b>{_text(box.name)}</b>{_GAP} (function)")
    elif box.address:
        name = f"@{_short(box.name, around)}"
        name += f" … @{_short(box.last, around)}" if box.last and box.last != box.name else ""
        parts.append(f"<b>{_text(name)}</b>{_GAP} ({_text(box.type)})")
    if box.rolled and box.passes > 1:
        parts.append(f"(x{box.passes})")
    return " ".join(parts) or " "


def _node(node: Node, around: str) -> str:
    attributes = [f"label=<{'<br/>'.join(_lines(node, around))}>"]
    if node.whole or node.look is Look.MODULE:
        attributes.append("shape=box")
    fill = _fill(node)
    if fill != WHITE:
        attributes.append(f'fillcolor="{fill}"')
    if node.dashed or node.look is Look.CONSTANT:
        attributes.append('style="filled,dashed"')
    if node.look is Look.MODULE:
        attributes.append("peripheries=2")
    return f"[{' '.join(attributes)}]"


def _fill(node: Node) -> str:
    if node.decides:
        return YELLOW
    return _FILL.get(node.look) or (GREY if node.weights else WHITE)


def _lines(node: Node, around: str) -> list[str]:
    """What is written in a node, as HTML."""
    if node.look is Look.MODULE:
        lines = _module_lines(node, around)
    else:
        lines = [f"<b>{_text(_name(node, around))}</b>"]
        lines += [_text(_shape(node))] if node.shape else []
        lines += [_text(_weights("params", node.weights))] if node.weights else []
        lines += [_text(_weights("buffers", node.buffers))] if node.buffers else []
        lines += [f"@{_text(_short(node.whole, around))}"] if node.whole else []
    lines += [_text(node.note)] if node.note else []
    if node.times > 1:
        lines.insert(0, f'<font color="{FOLD}" point-size="13"><b>×{node.times}</b></font>')
    return lines


def _name(node: Node, around: str) -> str:
    name = f"@{_short(node.label, around)}" if node.look is Look.BUFFER else node.label
    if node.times > 1 and node.last and not node.whole:
        name += f" … {node.last}"
    return f"{name} (x{node.passes})" if node.rolled and node.passes > 1 else name


def _module_lines(node: Node, around: str) -> list[str]:
    name = f"@{_short(node.label, around)}" + (f" … @{_short(node.last, around)}" if node.last else "")
    times = f" (x{node.passes})" if node.passes > 1 else ""
    lines = [f"<b>{_text(name)}</b>{_GAP} ({_text(node.type)}){times}"]
    lines += [_text(_shape(node))] if node.shape else []
    lines.append(f"{node.operations:,} operations ({size_text(node.inner_bytes)})")
    if node.weights:
        count, size = sum(w.count for w in node.weights), sum(w.bytes for w in node.weights)
        lines.append(f"{count:,} params ({size_text(size)})")
    return lines


def _shape(node: Node) -> str:
    return f"{node.shape} ({size_text(node.bytes)})"


def _weights(word: str, weights: tuple[Weight, ...]) -> str:
    shapes = [weight.shape for weight in weights]
    more = f" and {len(shapes) - _MOST_SHAPES} more" if len(shapes) > _MOST_SHAPES else ""
    return f"{word}: {', '.join(shapes[:_MOST_SHAPES])}{more}"


def _edge(edge: Edge) -> str:
    attributes = []
    middle = [f"<b><font point-size='13'>{_text(edge.mark)}</font></b>"] if edge.mark else []
    middle += [_text(" ".join(filter(None, (edge.output, edge.argument))))] if edge.output or edge.argument else []
    middle += [f"Out {range_text(edge.leaves)}"] if edge.leaves else []
    middle += [f"In {range_text(edge.enters)}"] if edge.enters else []
    if middle:
        attributes.append(f"label=<{'<br/>'.join(f'{_GAP}{line}{_GAP}' for line in middle)}>")
    if edge.control:
        attributes.append(f'style=dashed color="{CONTROL}" arrowhead=open')
    if edge.again:
        attributes.append(f'style=dashed color="{FOLD}" fontcolor="{FOLD}" constraint=false')
    return f" [{' '.join(attributes)}]" if attributes else ""


def _text(text: str, longest: int = _LONGEST_LINE) -> str:
    """Fit for an HTML-like label: escaped, on one line, not too long, without characters that XML forbids."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    plain = "".join(c if c.isprintable() else " " for c in short)
    return html.escape(plain, quote=False) if plain.strip() else _GAP  # Graphviz cannot read an empty <b></b>


def _quoted(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')

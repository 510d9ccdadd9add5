"""What is written in the nodes, on the frames and beside the edges of a picture: lines of plain text."""

from __future__ import annotations

from typing import NamedTuple

from endoscope.analysis.picture import Box, Edge, Look, Node, Weight, range_text, size_text

_MOST_SHAPES = 4  # of parameters, in one node
_LONGEST_LINE = 60
_LONGEST_PREFIX = 12  # of addresses in full; inside a frame with a longer one they are told from there


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    bold: bool = False
    is_count: bool = False  # ×12: large, and in the colour of repeated blocks


Line = tuple[Span, ...]


def node_lines(node: Node, around: str) -> list[Line]:
    """`around`: address of the nearest module."""
    if node.look is Look.MODULE:
        lines = _module_lines(node, around)
    else:
        lines = [_bold(_name(node, around))]
        lines += [_plain(_shape(node))] if node.shape else []
        lines += [_plain(_weights("params", node.weights))] if node.weights else []
        lines += [_plain(_weights("buffers", node.buffers))] if node.buffers else []
        lines += [_plain(f"@{_short(node.whole, around)}")] if node.whole else []
    lines += [_plain(node.note)] if node.note else []
    return [(Span(f"×{node.times}", bold=True, is_count=True),), *lines] if node.times > 1 else lines


def box_line(box: Box, around: str) -> Line:
    """The title of a frame; empty if there is nothing to say."""
    spans = [Span(f"×{box.times}", bold=True, is_count=True)] if box.times > 1 else []
    if box.function:
        spans += [*_bold(box.name), Span("(function)")]
    elif box.address:
        name = f"@{_short(box.name, around)}"
        name += f" … @{_short(box.last, around)}" if box.last and box.last != box.name else ""
        spans += [*_bold(name), Span(f"({cut(box.type)})")]
    if box.rolled and box.passes > 1:
        spans.append(Span(f"(x{box.passes})"))
    return tuple(spans)


def edge_lines(edge: Edge) -> list[Line]:
    """The word of a decision, the argument, the passes."""
    lines: list[Line] = [(Span(cut(edge.mark), bold=True),)] if edge.mark else []
    if edge.output or edge.argument:
        lines.append(_plain(" ".join(filter(None, (edge.output, edge.argument)))))
    lines += [_plain(f"Out {range_text(edge.leaves)}")] if edge.leaves else []
    lines += [_plain(f"In {range_text(edge.enters)}")] if edge.enters else []
    return lines


def cut(text: str, longest: int = _LONGEST_LINE) -> str:
    """On one line, not too long, without characters that XML forbids."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else " " for c in short)


def _plain(text: str) -> Line:
    return (Span(cut(text)),)


def _bold(text: str) -> Line:
    return (Span(cut(text), bold=True),)


def _short(address: str, around: str) -> str:
    """`encoder.layer.3.output.dense`, inside the frame of `encoder.layer.3.output`: `…dense`."""
    if len(around) > _LONGEST_PREFIX and address.startswith(around + "."):
        return "…" + address[len(around) + 1 :]
    return address


def _name(node: Node, around: str) -> str:
    name = f"@{_short(node.label, around)}" if node.look is Look.BUFFER else node.label
    if node.times > 1 and node.last and not node.whole:
        name += f" … {node.last}"
    return f"{name} (x{node.passes})" if node.rolled and node.passes > 1 else name


def _module_lines(node: Node, around: str) -> list[Line]:
    name = f"@{_short(node.label, around)}" + (f" … @{_short(node.last, around)}" if node.last else "")
    times = f" (x{node.passes})" if node.passes > 1 else ""
    lines: list[Line] = [(*_bold(name), Span(f"({cut(node.type)}){times}"))]
    lines += [_plain(_shape(node))] if node.shape else []
    lines.append(_plain(f"{node.operations:,} operations ({size_text(node.inner_bytes)})"))
    if node.weights:
        count, size = sum(w.count for w in node.weights), sum(w.bytes for w in node.weights)
        lines.append(_plain(f"{count:,} params ({size_text(size)})"))
    return lines


def _shape(node: Node) -> str:
    return f"{node.shape} ({size_text(node.bytes)})"


def _weights(word: str, weights: tuple[Weight, ...]) -> str:
    shapes = [weight.shape for weight in weights]
    more = f" and {len(shapes) - _MOST_SHAPES} more" if len(shapes) > _MOST_SHAPES else ""
    return f"{word}: {', '.join(shapes[:_MOST_SHAPES])}{more}"

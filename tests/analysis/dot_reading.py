"""Reads back the DOT text that we write: enough of the language for our own files, nothing more."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_NODE = re.compile(r'^"((?:[^"\\]|\\.)*)" \[label=<(.*?)>((?: [\w]+=(?:"[^"]*"|[\w.]+))*)\]$')
_EDGE = re.compile(r'^"((?:[^"\\]|\\.)*)" -> "((?:[^"\\]|\\.)*)"(?: \[(.*)\])?$')
_BOX = re.compile(r'^subgraph "cluster_(\d+) [^"]*" \{ graph \[label=<(.*?)> (style=.*)\]$')
_ATTRIBUTE = re.compile(r'(\w+)=("[^"]*"|[\w.]+)')


@dataclass
class Drawn:
    """What the text would draw."""

    title: list[str]
    nodes: dict[str, DrawnNode] = field(default_factory=dict)
    edges: list[DrawnEdge] = field(default_factory=list)
    boxes: dict[str, list[str]] = field(default_factory=dict)  # label -> labels of the boxes around

    def edge(self, source: str, target: str) -> DrawnEdge:
        (found,) = [e for e in self.edges if (e.source, e.target) == (source, target)]
        return found

    def pairs(self) -> set[tuple[str, str]]:
        return {(e.source, e.target) for e in self.edges}


@dataclass
class DrawnNode:
    lines: list[str]
    attributes: dict[str, str]
    boxes: list[str]  # labels of the boxes around, outermost first


@dataclass
class DrawnEdge:
    source: str
    target: str
    lines: list[str]
    attributes: dict[str, str]


def read(dot: str) -> Drawn:
    head = re.search(r"graph \[.*?label=<(.*?)> labelloc", dot, re.DOTALL)
    assert head
    drawn = Drawn([line for line in plain(head[1]) if line])
    open_boxes: list[str] = []
    for line in dot.splitlines():
        if box := _BOX.match(line):
            label = " ".join(plain(box[2]))
            drawn.boxes[label] = list(open_boxes)
            open_boxes.append(label)
        elif line == "}" and open_boxes:
            open_boxes.pop()
        elif edge := _EDGE.match(line):
            drawn.edges.append(_edge(*edge.groups()))
        elif node := _NODE.match(line):
            drawn.nodes[node[1]] = DrawnNode(plain(node[2]), attributes(node[3]), list(open_boxes))
    return drawn


def _edge(source: str, target: str, rest: str | None) -> DrawnEdge:
    label = re.search(r"label=<(.*?)>(?= \w+=|$)", rest or "")
    return DrawnEdge(source, target, plain(label[1]) if label else [], attributes(rest or ""))


def attributes(text: str) -> dict[str, str]:
    return {name: value.strip('"') for name, value in _ATTRIBUTE.findall(re.sub(r"label=<.*>", "", text))}


def plain(label: str) -> list[str]:
    """The lines of an HTML-like label, without markup."""
    lines = re.split(r"<br[^>]*/>", label)
    return [html.unescape(re.sub(r"<[^>]*>", "", line)).replace("\u00a0", "").strip() for line in lines]

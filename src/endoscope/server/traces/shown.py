"""A trace as the page shows it: its operations by place in the picture, and what they are called.

trace.graph ─► nodes and edges without unused parameters ─► TracedTree (one by one, or rolled) ─► graph/pictures.py
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from endoscope.errors import LookupFailed
from endoscope.layout.names import shape_text
from endoscope.layout.traced import Traced, TracedTree
from endoscope.layout.tree import STORED
from endoscope.server.graph.pictures import Drawable

_MOST_SHAPES = 3  # of an operation with several outputs


@dataclass(frozen=True, slots=True)
class _Read:
    """What is shown of a trace. Everything has one entry for each node of the picture."""

    ops: list[Any]
    nodes: list[Traced]
    records: list[Mapping[str, Any]]  # as `trace.graph` tells them
    edges: list[tuple[int, int]]
    unused: list[str]  # parameters and buffers that nobody reads
    place: dict[str, int]  # label -> place


class ShownTrace:
    """A trace that is served. May be shared by threads; what takes time is worked out when it is asked for."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.lock = threading.RLock()
        self._read: _Read | None = None
        self._drawables: dict[bool, Drawable] = {}
        self._trees: dict[bool, TracedTree] = {}
        self.opened: dict[str, list[str]] = {}  # lists of open modules that are too long for an address

    @property
    def name(self) -> str:
        return str(self.trace.name)

    @property
    def read(self) -> _Read:
        with self.lock:
            if self._read is None:
                self._read = _read(self.trace)
            return self._read

    def tree(self, rolled: bool) -> TracedTree:
        with self.lock:
            if rolled not in self._trees:
                types = {str(module.label): str(module.type) for module in self.trace.modules}
                self._trees[rolled] = TracedTree(self.read.nodes, self.read.edges, types, rolled=rolled)
            return self._trees[rolled]

    def drawable(self, rolled: bool) -> Drawable:
        with self.lock:
            if rolled not in self._drawables:
                self._drawables[rolled] = Drawable(self.tree(rolled))
            return self._drawables[rolled]

    def op(self, label: str) -> Any:
        """An operation by its label."""
        place = self.read.place.get(label)
        if place is None:
            raise LookupFailed(f"{self.name} has no operation with the label {label[:200]!r}.")
        return self.read.ops[place]


def _read(trace: Any) -> _Read:
    graph = trace.graph.to_dict()
    by_label = {op.label: op for op in trace.everything()}
    entries: Sequence[Mapping[str, Any]] = graph["nodes"]
    links = [(edge["source"], edge["target"]) for edge in graph["edges"]]
    read = {source for source, _ in links}
    shown = [n for n, entry in enumerate(entries) if str(entry["kind"]) not in STORED or n in read]
    place = {old: new for new, old in enumerate(shown)}
    ops = [by_label[entries[old]["label"]] for old in shown]
    nodes = [_node(entries[old], op) for old, op in zip(shown, ops, strict=True)]
    return _Read(
        ops=ops,
        nodes=nodes,
        records=[entries[old] for old in shown],
        edges=[(place[source], place[target]) for source, target in links],
        unused=[str(entry["label"]) for n, entry in enumerate(entries) if n not in place],
        place={node.label: number for number, node in enumerate(nodes)},
    )


def _node(entry: Mapping[str, Any], op: Any) -> Traced:
    label, calls = str(entry["label"]), tuple(entry["calls"])
    returned = tuple(key for key in entry["keys"] if key in calls)
    shapes = shapes_text(entry["shapes"])
    form = (entry["type"], tuple(map(tuple, entry["shapes"])), entry["settings"])
    return Traced(label, str(op.layer), str(entry["kind"]), calls, returned, shapes, form)


def shapes_text(shapes: Sequence[Sequence[int]]) -> str:
    """2×3; of several outputs all, or how many there are."""
    texts = [shape_text(shape) for shape in shapes]
    if len(texts) <= _MOST_SHAPES:
        return ", ".join(texts)
    return f"{len(texts)} × {texts[0]}" if len(set(texts)) == 1 else f"{len(texts)} tensors: {texts[0]}, …"

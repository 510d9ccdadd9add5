"""A trace as the page shows it: its operations by place in the picture, and what they are called.

trace.graph ─► nodes and edges without unused parameters ─► TracedTree (one by one, or rolled) ─► graph/pictures.py
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from endoscope.errors import LookupFailed
from endoscope.layout.names import shape_text
from endoscope.layout.traced import Traced, TracedTree
from endoscope.layout.tree import STORED
from endoscope.server.graph.pictures import Drawable

MADE = ("computed", "generated")  # kinds of what an operation made
Shape = tuple[int, ...]
_MOST_SHAPES = 3  # of an operation with several outputs
_MOST_LETTERS = 1000


@dataclass(frozen=True, slots=True)
class _Read:
    """What is shown of a trace. Everything has one entry for each node of the picture."""

    ops: list[Any]
    nodes: list[Traced]
    shapes: list[tuple[Shape, ...]]  # of everything that each returned
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

    def prepare(self) -> None:
        """Work out beside what the page begins with: it will ask in a moment."""
        threading.Thread(target=self.drawable, args=(False,), name="endoscope-prepare", daemon=True).start()

    def op(self, label: str) -> Any:
        """An operation by its label."""
        place = self.read.place.get(label)
        if place is None:
            raise LookupFailed(f"{self.name} has no operation with the label {label[:200]!r}.")
        return self.read.ops[place]


def _read(trace: Any) -> _Read:
    everything = list(trace.graph.nodes)
    labels = [str(op.label) for op in everything]
    above = [[str(parent.label) for parent in op.parents] for op in everything]
    read = {label for own in above for label in own}
    shown = [n for n, op in enumerate(everything) if str(op.kind) not in STORED or labels[n] in read]
    place = {labels[old]: new for new, old in enumerate(shown)}
    ops = [everything[old] for old in shown]
    shapes = [tuple([tuple(map(int, meta.shape)) for meta in op.metas]) for op in ops]
    return _Read(
        ops=ops,
        nodes=[_node(op, own) for op, own in zip(ops, shapes, strict=True)],
        shapes=shapes,
        edges=[(place[parent], new) for new, old in enumerate(shown) for parent in above[old]],
        unused=[label for label in labels if label not in place],
        place=place,
    )


def _node(op: Any, shapes: tuple[Shape, ...]) -> Traced:
    calls = tuple(map(str, op.place.modules))
    returned = tuple(key for key in op.keys if key in calls)
    kind, form = str(op.kind), (str(op.type), shapes)
    settings = settings_of(op) if kind in MADE else ""
    return Traced(str(op.label), str(op.layer), kind, calls, returned, shapes_text(shapes), (*form, settings))


def settings_of(op: Any) -> str:
    """Arguments that are no tensors: two convolutions of one shape may differ in their dilation."""
    call = op.function
    return f"{call.plain_args}{call.plain_kwargs}"[:_MOST_LETTERS]


def shapes_text(shapes: Sequence[Sequence[int]]) -> str:
    """2×3; of several outputs all, or how many there are."""
    texts = [shape_text(shape) for shape in shapes]
    if len(texts) <= _MOST_SHAPES:
        return ", ".join(texts)
    return f"{len(texts)} × {texts[0]}" if len(set(texts)) == 1 else f"{len(texts)} tensors: {texts[0]}, …"

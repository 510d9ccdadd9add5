"""Pictures of graphs for the page: which boxes there are while some modules are open, and where everything is.

graphs of the trials ─► RecordedTree (kept) ─► fold ─► sized ─► arrange (levels are kept) ─► one binary answer
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from endoscope.errors import NotARecording
from endoscope.layout.compose import Layout, Memory, arrange
from endoscope.layout.folding import Box, Folded, fold
from endoscope.layout.opening import opened_at_first
from endoscope.layout.pins import Pin
from endoscope.layout.recorded import Recorded, RecordedTree
from endoscope.layout.sizes import sized
from endoscope.layout.spine import alone
from endoscope.layout.tree import Tree
from endoscope.server import wire
from endoscope.server.answers import to_json

EVERYTHING = "*"  # instead of a list of all modules
_KEPT = 4  # graphs; each with its modules as they were laid out
_VALUE_LETTERS = 8  # kept free beside the shape, while colours show a statistic
IS_OPEN, IS_CHIP, IS_SHARED, IS_WIDE = 1, 2, 4, 8


class Drawn(Protocol):
    """What can be opened and closed in a graph, whatever it is a graph of."""

    tree: Tree
    records: list[list[int]]  # part -> positions of its tensors
    part_of: list[int]  # the other way

    @property
    def has_history(self) -> bool: ...
    def box_texts(self, box: Box) -> tuple[str, str]: ...
    def face(self, module: int) -> int: ...


@dataclass(slots=True)
class Drawable:
    """A graph that somebody looks at."""

    tree: Drawn
    memory: Memory = field(default_factory=dict)


class Pictures:
    """The graphs that were asked for last. May be shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Drawable] = OrderedDict()

    def drawable(
        self, graphs: Mapping[str, Mapping[str, Any]], types: Mapping[str, str], layout: wire.Layout
    ) -> Drawable:
        """Kept by the names of its graphs; names and groups of the user's own make another one."""
        key = to_json([list(graphs), layout["renames"], layout["groups"], types])
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = _read(graphs, types, layout)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return found


def _read(graphs: Mapping[str, Mapping[str, Any]], types: Mapping[str, str], layout: wire.Layout) -> Drawable:
    try:
        union = Recorded.merged(graphs.values())
        return Drawable(RecordedTree(union, types, layout["renames"], layout["groups"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise NotARecording(
            f"The graph {', '.join(graphs)} cannot be drawn: its file is damaged, or no graph ({error!r}). "
            "`endoscope check` says more about this recording."
        ) from error


def picture(drawable: Drawable, open_: Iterable[str] | None, pins: Mapping[str, Pin]) -> bytes:
    """The answer: see HTTP_API.md. `open_` None: what a reader should see first."""
    tree = drawable.tree
    opened = _opened(tree, open_)
    folded = fold(tree.tree, opened)
    texts = [tree.box_texts(box) for box in folded.boxes]
    placed = {number: pins[key] for number, key in enumerate(_keys(tree, folded)) if key in pins} if pins else {}
    wide = alone(folded) if tree.has_history else [False] * len(folded.boxes)
    strips = [_has_strip(tree, box, is_wide) for box, is_wide in zip(folded.boxes, wide, strict=True)]
    layout = arrange(sized(folded, texts, strips, placed, _VALUE_LETTERS, wide), drawable.memory)
    return _packed(tree, folded, layout, texts, sorted(opened), wide)


def _opened(tree: Drawn, asked: Iterable[str] | None) -> set[str]:
    if asked is None:
        return opened_at_first(tree.tree)
    found = set(asked)
    return {module.address for module in tree.tree.modules[1:]} if EVERYTHING in found else found


def _keys(tree: Drawn, folded: Folded) -> list[str]:
    """As pins name boxes: "n:" and a node, or "g:" and a module."""
    parts, modules = tree.tree.graph.parts, tree.tree.modules
    return [
        f"n:{parts[box.part].name}" if box.part >= 0 else f"g:{modules[box.modules[0]].address}" for box in folded.boxes
    ]


def _has_strip(tree: Drawn, box: Box, is_wide: bool) -> bool:
    """Whether a box holds several tensors, which are shown as cells. A wide module shows its history in their place."""
    if box.open or box.is_chip:
        return False
    return not is_wide if box.part < 0 else len(tree.records[box.part]) > 1


def _packed(
    tree: Drawn, folded: Folded, layout: Layout, texts: Sequence[tuple[str, str]], opened: list[str],
    wide: Sequence[bool],
) -> bytes:  # fmt: skip
    boxes = folded.boxes
    addresses = {tree.tree.modules[box.modules[0]].address: None for box in boxes if box.modules}
    place = {address: number for number, address in enumerate(addresses)}
    starts, points = [0], array("f")
    for path in layout.paths:
        points.extend(path)
        starts.append(len(points))
    head = wire.PictureHead(
        boxes=len(boxes), edges=len(folded.edges), tensors=len(tree.part_of), points=len(points),
        width=layout.total_width, height=layout.total_height, opened=opened, addresses=list(addresses),
        labels=[label for label, _ in texts], details=[detail for _, detail in texts],
    )  # fmt: skip
    numbers: list[Iterable[int]] = [
        (box.parent for box in boxes),
        (_record(tree, box) for box in boxes),
        (place[tree.tree.modules[box.modules[0]].address] if box.modules else -1 for box in boxes),
        (
            IS_OPEN * box.open | IS_CHIP * box.is_chip | IS_SHARED * box.is_shared | IS_WIDE * is_wide
            for box, is_wide in zip(boxes, wide, strict=True)
        ),
        (len(box.modules) for box in boxes),
        (sum(tree.tree.size[module] for module in box.modules) for box in boxes),
        (folded.box_of[part] for part in tree.part_of),
        (source for source, _ in folded.edges),
        (target for _, target in folded.edges),
        map(int, layout.back),
        starts,
    ]
    described = to_json(head).encode()
    described += b" " * (-(4 + len(described)) % 4)
    floats = [layout.x, layout.y, layout.width, layout.height, layout.entry]
    pieces = [len(described).to_bytes(4, "little"), described]
    pieces += [array("i", values).tobytes() for values in numbers]
    pieces += [array("f", values).tobytes() for values in floats]
    return b"".join([*pieces, points.tobytes()])


def _record(tree: Drawn, box: Box) -> int:
    """The tensor that stands for a box; -1 for an open one."""
    if box.open:
        return -1
    return tree.records[box.part if box.part >= 0 else tree.face(box.modules[0])][0]

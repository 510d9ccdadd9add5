"""Which boxes there are if some modules are open: nodes, closed modules, stacks of equal ones, chips.

Tree + open modules ─► boxes ─► stacks (stacks.py) ─► chips beside their readers ─► Folded
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from endoscope.layout.stacks import find_stacks, kind_of
from endoscope.layout.tree import STORED, Tree


@dataclass(slots=True)
class Box:
    """A node, a closed module, several equal ones, or an open one."""

    parent: int  # the open box around; -1 at the top
    depth: int
    part: int = -1  # the node; -1 for modules
    modules: tuple[int, ...] = ()  # the module; several for a stack
    open: bool = False
    is_chip: bool = False
    is_shared: bool = False  # the same tensor stands beside other readers, too


@dataclass(frozen=True, slots=True)
class Folded:
    """What is to be laid out. Every box stands after the one around it, otherwise in the order of execution."""

    tree: Tree
    boxes: list[Box]
    edges: list[tuple[int, int]]
    box_of: list[int]  # part -> its box; -1 for parameters that stand nowhere
    chips: frozenset[int] = field(default_factory=frozenset)


def fold(tree: Tree, open_: Container[str]) -> Folded:
    """The boxes while the modules with these addresses are open, and all around them."""
    return _Folding(tree, open_).folded()


class _Folding:
    def __init__(self, tree: Tree, open_: Container[str]) -> None:
        self.tree = tree
        self.open = open_
        self.parts = tree.graph.parts
        self.boxes: list[Box] = []
        self.children: dict[int, list[int]] = {-1: []}
        self.box_of = [-1] * len(self.parts)
        self.edges: dict[tuple[int, int], None] = {}

    def folded(self) -> Folded:
        self._visit(0, -1, 0)
        self._lift()
        closed = [box.modules if not box.open else () for box in self.boxes]
        kinds = [kind_of(self.tree, modules[0]) if modules else None for modules in closed]
        merged = find_stacks(kinds, self.children, self.edges)
        if merged:
            self._merge(merged)
        self._chips()
        return self._in_order()

    def _visit(self, module: int, box: int, depth: int) -> None:
        """The content of an open module."""
        here, tree = self.tree.modules[module], self.tree
        inside = [(tree.order[part], -1, part) for part in here.parts if self.parts[part].kind not in STORED]
        inside += [(tree.begin[inner], inner, -1) for inner in here.modules]
        inside.sort()
        for _, inner, part in inside:
            number = len(self.boxes)
            self.children[box].append(number)
            if part >= 0:
                self.boxes.append(Box(box, depth, part=part))
                self.box_of[part] = number
                continue
            is_open = tree.modules[inner].address in self.open
            self.boxes.append(Box(box, depth, modules=(inner,), open=is_open))
            if is_open:
                self.children[number] = []
                self._visit(inner, number, depth + 1)
            else:
                for hidden in tree.inside(inner):
                    self.box_of[hidden] = number

    def _lift(self) -> None:
        """Edges between what is visible, without those of parameters."""
        box_of, edges = self.box_of, self.edges
        for source, target in self.tree.graph.edges:
            one, other = box_of[source], box_of[target]
            if one != other and one >= 0 and other >= 0 and self.parts[source].kind not in STORED:
                edges[one, other] = None

    def _merge(self, stacks: list[list[int]]) -> None:
        """One box in the place of several."""
        stand_in = list(range(len(self.boxes)))
        for stack in stacks:
            first = self.boxes[stack[0]]
            first.modules = tuple(self.boxes[box].modules[0] for box in stack)
            gone = set(stack[1:])
            self.children[first.parent] = [box for box in self.children[first.parent] if box not in gone]
            for box in stack[1:]:
                stand_in[box] = stack[0]
        self.box_of = [stand_in[box] if box >= 0 else -1 for box in self.box_of]
        lifted = {(stand_in[one], stand_in[other]): None for one, other in self.edges}
        self.edges = {edge: None for edge in lifted if edge[0] != edge[1]}

    def _chips(self) -> None:
        """A stored tensor stands at the left of every box that reads it, unless both are inside of one closed box."""
        readers: dict[int, dict[int, None]] = {}
        for source, target in self.tree.graph.edges:
            if self.parts[source].kind in STORED and self.box_of[target] >= 0:
                if self.box_of[target] != self.box_of[source] and self.parts[target].kind not in STORED:
                    readers.setdefault(source, {})[self.box_of[target]] = None
        for part, stored in enumerate(self.parts):
            if stored.kind not in STORED:
                continue
            hidden = self.box_of[part]
            beside = readers.get(part, {})
            for reader in beside:
                self._add_chip(part, reader, is_shared=hidden >= 0 or len(beside) > 1)
            if not beside and hidden < 0:
                self._add_alone(part)

    def _add_chip(self, part: int, reader: int, is_shared: bool) -> None:
        around = self.boxes[reader]
        number = len(self.boxes)
        self.boxes.append(Box(around.parent, around.depth, part=part, is_chip=True, is_shared=is_shared))
        siblings = self.children[around.parent]
        siblings.insert(siblings.index(reader), number)
        self.edges[number, reader] = None
        if self.box_of[part] < 0:
            self.box_of[part] = number

    def _add_alone(self, part: int) -> None:
        """A parameter that nobody reads stands where it is defined."""
        module = self.tree.home[part]
        box = next((n for n, box in enumerate(self.boxes) if box.open and box.modules == (module,)), -1)
        number = len(self.boxes)
        self.boxes.append(Box(box, self.boxes[box].depth + 1 if box >= 0 else 0, part=part))
        self.children[box].append(number)
        self.box_of[part] = number

    def _in_order(self) -> Folded:
        """Numbered anew, each box after the one around it."""
        order: list[int] = []
        waiting = self.children[-1][::-1]
        while waiting:
            order.append(waiting.pop())
            waiting += reversed(self.children.get(order[-1], ()))
        number = [-1] * len(self.boxes)
        for new, old in enumerate(order):
            number[old] = new
        boxes = [self.boxes[old] for old in order]
        for box in boxes:
            box.parent = number[box.parent] if box.parent >= 0 else -1
        edges = [(number[one], number[other]) for one, other in self.edges]
        box_of = [number[box] if box >= 0 else -1 for box in self.box_of]
        return Folded(self.tree, boxes, edges, box_of, frozenset(n for n, box in enumerate(boxes) if box.is_chip))

"""Modules in modules, and the nodes in them: what can be opened and closed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

STORED = frozenset({"parameter", "buffer", "constant"})  # they stand beside their readers
_AT_THE_TOP = frozenset({"input", "target", "output", "loss"})  # whichever module made them
_ENDS = frozenset({"output", "loss"})
_UNREAD = "/unread"  # marks the group of what leads to no output


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a graph. Parts stand in the order of execution."""

    name: str
    kind: str  # of schema.ops.Kind, or a word of a recording
    path: tuple[str, ...] = ()  # the modules around, outermost first
    form: Hashable = ""  # what two parts have in common that can stand for each other


class Graph(NamedTuple):
    """What is folded and laid out."""

    parts: Sequence[Part]
    edges: Sequence[tuple[int, int]]
    uncalled: Container[str] = ()  # modules that only hold others (`ModuleList`)


@dataclass(slots=True)
class Module:
    """A box that can be opened."""

    number: int  # 0 is the whole
    address: str
    parent: int  # -1 for the whole
    modules: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)


class Tree:
    """The modules of a graph. What would be a box around a single thing is left out."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.order = self._orders()
        self.modules = [Module(0, "", -1)]
        self.home = [0] * len(graph.parts)  # part -> module
        self._grow(self._paths())
        self._sort()

    @cached_property
    def size(self) -> list[int]:
        """How many parts are inside of each module, at any depth."""
        size = [len(module.parts) for module in self.modules]
        for module in reversed(self.modules[1:]):
            size[module.parent] += size[module.number]
        return size

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Address -> module."""
        return {module.address: module.number for module in self.modules}

    @cached_property
    def shapes(self) -> list[int]:
        """A number for each module that is the same for equal ones: forms, nesting and edges inside."""
        return _shapes(self)

    def around(self, part: int) -> list[str]:
        """Addresses of the modules around a part, outermost first."""
        found = []
        module = self.home[part]
        while module > 0:
            found.append(self.modules[module].address)
            module = self.modules[module].parent
        return found[::-1]

    def inside(self, module: int) -> list[int]:
        """All parts in a module, at any depth."""
        found: list[int] = []
        waiting = [module]
        while waiting:
            here = self.modules[waiting.pop()]
            found += here.parts
            waiting += here.modules
        return found

    def is_layer(self, module: int) -> bool:
        """A module like Linear: its parameters, and what it returns."""
        here = self.modules[module]
        plain = [part for part in here.parts if self.graph.parts[part].kind not in STORED]
        return not here.modules and len(plain) < 2

    # ---- building --------------------------------------------------------------------------------------------------

    def _orders(self) -> list[float]:
        """When each part runs; parameters and buffers stand before their first reader."""
        parts, order = self.graph.parts, [float(number) for number in range(len(self.graph.parts))]
        first: dict[int, int] = {}
        for source, target in self.graph.edges:
            if parts[source].kind in STORED and target < first.get(source, len(parts)):
                first[source] = target
        for source, target in first.items():
            order[source] = target - 0.5
        return order

    def _paths(self) -> list[tuple[str, ...]]:
        """The modules around each part that become boxes."""
        parts = self.graph.parts
        scattered = self._scattered()
        paths = []
        for part in parts:
            path = () if part.kind in _AT_THE_TOP else part.path
            paths.append(tuple(address for address in path if address not in scattered) if scattered else path)
        for number in self._unread():
            if paths[number]:
                paths[number] = (*paths[number], paths[number][-1] + _UNREAD)
        return paths

    def _scattered(self) -> set[str]:
        """Modules that only hold others, and between whose first and last node something else runs."""
        running = [n for n, part in enumerate(self.graph.parts) if part.kind not in STORED | _AT_THE_TOP]
        inside: dict[str, list[int]] = {}
        for number in running:
            for address in self.graph.parts[number].path:
                if address in self.graph.uncalled:
                    inside.setdefault(address, []).append(number)
        return {
            address
            for address, own in inside.items()
            if bisect_right(running, own[-1]) - bisect_left(running, own[0]) > len(own)
        }

    def _unread(self) -> list[int]:
        """Parts that lead to no output, such as the checks of a mask."""
        parts = self.graph.parts
        leads = [part.kind in _ENDS for part in parts]
        if not any(leads):
            return []
        sources: dict[int, list[int]] = {}
        for source, target in self.graph.edges:
            sources.setdefault(target, []).append(source)
        waiting = [number for number, is_end in enumerate(leads) if is_end]
        while waiting:
            for source in sources.get(waiting.pop(), ()):
                if not leads[source]:
                    leads[source] = True
                    waiting.append(source)
        return [n for n, part in enumerate(parts) if not leads[n] and part.kind not in STORED | _AT_THE_TOP]

    def _grow(self, paths: list[tuple[str, ...]]) -> None:
        root = _Branch("")
        known: dict[tuple[str, ...], _Branch] = {(): root}
        for number, path in enumerate(paths):
            branch = known.get(path)
            if branch is None:
                branch = root
                for address in path:
                    branch = branch.branches.setdefault(address, _Branch(address))
                known[path] = branch
            branch.parts.append(number)
        root.simplify()
        self._number(root, 0)

    def _number(self, root: _Branch, number: int) -> None:
        waiting = [(root, number)]
        while waiting:
            branch, number = waiting.pop()
            module = self.modules[number]
            module.parts = branch.parts
            for part in branch.parts:
                self.home[part] = number
            for inner in branch.branches.values():
                added = Module(len(self.modules), inner.address, number)
                self.modules.append(added)
                module.modules.append(added.number)
                waiting.append((inner, added.number))

    def _sort(self) -> None:
        """Children in the order of execution; `begin` is when a module runs first."""
        parts, order = self.graph.parts, self.order
        self.begin = [float("inf")] * len(self.modules)
        for module in reversed(self.modules):
            module.parts.sort(key=order.__getitem__)
            module.modules.sort(key=self.begin.__getitem__)
            plain = [part for part in module.parts if parts[part].kind not in STORED] or module.parts
            firsts = [order[part] for part in plain[:1]] + [self.begin[inner] for inner in module.modules[:1]]
            self.begin[module.number] = min(firsts, default=0.0)


class _Branch:
    """A module while the tree grows."""

    __slots__ = ("address", "branches", "parts")

    def __init__(self, address: str) -> None:
        self.address = address
        self.branches: dict[str, _Branch] = {}
        self.parts: list[int] = []

    def simplify(self) -> None:
        """A lone part moves up, and a lone inner box takes the place of the outer one."""
        kept: dict[str, _Branch] = {}
        for inner in self.branches.values():
            inner.simplify()
            if len(inner.branches) == 1 and not inner.parts:
                inner = next(iter(inner.branches.values()))
            if not inner.branches and len(inner.parts) == 1:
                self.parts += inner.parts
            else:
                kept[inner.address] = inner
        self.branches = kept


def _shapes(tree: Tree) -> list[int]:
    """Equal modules get equal numbers. Innermost first: what is inside is known by its own number."""
    graph, modules = tree.graph, tree.modules
    child = list(tree.home)  # part -> what stands for it in the module that is looked at
    inner_edges: list[list[tuple[int, int]]] = [[] for _ in modules]
    depth = [0] * len(modules)
    for module in modules[1:]:
        depth[module.number] = depth[module.parent] + 1
    for source, target in graph.edges:
        one, other = child[source], child[target]
        while one != other:
            if depth[one] >= depth[other]:
                one = modules[one].parent
            else:
                other = modules[other].parent
        inner_edges[one].append((source, target))
    known: dict[Hashable, int] = {}
    shapes = [0] * len(modules)
    place = list(range(len(graph.parts)))  # part -> its place in the module that is looked at
    for module in reversed(modules):
        shapes[module.number] = known.setdefault(_form(tree, module, inner_edges, shapes, place), len(known))
    return shapes


def _form(
    tree: Tree, module: Module, inner_edges: list[list[tuple[int, int]]], shapes: list[int], place: list[int]
) -> Hashable:
    """Forms of parts, numbers of modules, and edges by places counted through all that is inside."""
    parts = tree.graph.parts
    members = tree.inside(module.number) if module.number else []
    members.sort(key=tree.order.__getitem__)
    for number, part in enumerate(members):
        place[part] = number
    own = tuple((parts[part].kind, parts[part].form, place[part]) for part in module.parts)
    inner = tuple(shapes[number] for number in module.modules)
    edges = tuple(sorted((place[source], place[target]) for source, target in inner_edges[module.number]))
    return own, inner, edges

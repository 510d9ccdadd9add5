"""The operations of a trace as parts: one for each operation, or, rolled, one for each layer with its passes inside."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from endoscope.layout.folding import Box
from endoscope.layout.names import box_label, last_computed, relative, with_type
from endoscope.layout.tree import STORED, Graph, Part, Tree


class Traced(NamedTuple):
    """One node of a trace. Nodes stand in the order of execution."""

    label: str
    layer: str  # the label without the pass
    kind: str
    calls: tuple[str, ...] = ()  # of modules around it, outermost first: encoder:1, encoder.2:1
    returned: tuple[str, ...] = ()  # calls of modules whose result it is
    shape: str = ""
    form: Hashable = ""  # what two operations have in common that can stand for each other


class TracedTree:
    """What can be opened and closed in the graph of a trace, and how it is called.

    A module that is called several times is a box for each call: `cell:2`. Rolled, calls that run the same layers are
    one box; a module without loops that is used at several places, such as the one `relu` of a block, stays several.
    """

    has_history = False

    def __init__(
        self, nodes: Sequence[Traced], edges: Iterable[tuple[int, int]], types: Mapping[str, str], *, rolled: bool
    ) -> None:
        """`types`: classes of modules, by address."""
        self.nodes = nodes
        self.types = types
        self.records, self.part_of = _gathered([node.layer if rolled else node.label for node in nodes])
        self._calls = _Calls(nodes, rolled)
        of_parts = {(self.part_of[source], self.part_of[target]): None for source, target in edges}
        links = [edge for edge in of_parts if edge[0] != edge[1]]
        paths = self._paths(links)
        parts = [self._part(own, path) for own, path in zip(self.records, paths, strict=True)]
        self.tree = Tree(Graph(parts, links, self._calls.uncalled))
        self._returns = {
            self._calls.key(call): self.part_of[number] for number, node in enumerate(nodes) for call in node.returned
        }

    def _part(self, own: Sequence[int], path: tuple[str, ...]) -> Part:
        first = self.nodes[own[0]]
        return Part(first.label, first.kind, path, (first.form, first.shape, len(own)))

    def _paths(self, links: Iterable[tuple[int, int]]) -> list[tuple[str, ...]]:
        """The boxes around every part; a stored tensor stands in the innermost one that holds all its readers."""
        paths = [_common([self._calls.path(self.nodes[n].calls) for n in own]) for own in self.records]
        readers: dict[int, list[tuple[str, ...]]] = {}
        for source, target in links:
            if self.nodes[self.records[source][0]].kind in STORED:
                readers.setdefault(source, []).append(paths[target])
        for part, found in readers.items():
            paths[part] = _common(found)
        return paths

    # ---- text ------------------------------------------------------------------------------------------------------

    def part_label(self, part: int) -> str:
        """The name as it reads inside of the box around it."""
        node = self.nodes[self.records[part][0]]
        if node.kind in STORED:
            return relative(node.label, self._address(self.tree.home[part]))
        return node.layer if len(self.records[part]) > 1 else node.label

    def part_detail(self, part: int) -> str:
        """Its shape, and how often it runs."""
        own = self.records[part]
        several = [f"×{len(own)}"] if len(own) > 1 else []
        return " · ".join([text for text in (self.nodes[own[0]].shape, *several) if text])

    def module_label(self, module: int) -> str:
        """The address as it reads inside of the box around it, with the call, and the class if it is only a number."""
        here = self.tree.modules[module]
        _, slash, inner = here.address.rpartition("/")
        if slash:
            return inner
        name = relative(here.address, self._address(here.parent))
        return with_type(name, self.module_type(module))

    def module_type(self, module: int) -> str:
        """Its class; empty for what only holds others."""
        return self.types.get(self._address(module), "")

    def box_texts(self, box: Box) -> tuple[str, str]:
        """Both lines."""
        if box.part >= 0:
            return self.part_label(box.part), self.part_detail(box.part)
        label = box_label(self.tree, box, self.module_label)
        return label, self.nodes[self.records[self.face(box.modules[0])][0]].shape

    def face(self, module: int) -> int:
        """The part that stands for a closed module: what it returns, else what is computed last."""
        tree = self.tree
        inside = tree.inside(module)
        returned = self._returns.get(tree.modules[module].address)
        if returned is not None and tree.graph.parts[returned].kind not in STORED and returned in inside:
            return returned
        return last_computed(tree, inside)

    def _address(self, module: int) -> str:
        """Of the module itself, without the call and without what was grouped in it."""
        return self.tree.modules[module].address.partition("/")[0].partition(":")[0] if module > 0 else ""


class _Calls:
    """Which calls of modules are boxes of their own, and what these are called."""

    def __init__(self, nodes: Sequence[Traced], rolled: bool) -> None:
        layers: dict[str, dict[str, None]] = {}
        for node in nodes:
            for call in node.calls if node.kind not in STORED else ():
                layers.setdefault(call, {})[node.layer] = None
        firsts: dict[Hashable, str] = {}
        self._stand_in: dict[str, str] = {}
        for call, own in layers.items():
            same = (call.rpartition(":")[0], frozenset(own)) if rolled else call
            self._stand_in[call] = firsts.setdefault(same, call)
        self._several: dict[str, int] = {}
        for call in set(self._stand_in.values()):
            address = call.rpartition(":")[0]
            self._several[address] = self._several.get(address, 0) + 1
        self.uncalled: set[str] = set()
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def key(self, call: str) -> str:
        """`encoder`, or `cell:2` if it is a box for each of several calls."""
        stand_in = self._stand_in.get(call, call)
        address = stand_in.rpartition(":")[0]
        return stand_in if self._several.get(address, 0) > 1 else address

    def path(self, calls: tuple[str, ...]) -> tuple[str, ...]:
        """Boxes around a node; between `encoder` and `encoder.layers.0` also `encoder.layers`, which nobody calls."""
        known = self._known.get(calls)
        if known is None:
            known = self._known[calls] = tuple(self._path(calls))
        return known

    def _path(self, calls: tuple[str, ...]) -> list[str]:
        path: list[str] = []
        around, call_of_it = "", ""
        for call in calls:
            address = call.rpartition(":")[0]
            inner = address.removeprefix(f"{around}.").split(".") if _is_in(address, around) else []
            for count in range(1, len(inner)):
                held = ".".join([*([around] if around else []), *inner[:count]]) + call_of_it
                self.uncalled.add(held)
                path.append(held)
            path.append(self.key(call))
            around, call_of_it = address, path[-1][len(address) :]
        return path


def _is_in(address: str, around: str) -> bool:
    return not around or address.startswith(f"{around}.")


def _gathered(names: Sequence[str]) -> tuple[list[list[int]], list[int]]:
    """The nodes of each part, which all have one name, and the part of each node."""
    known: dict[str, int] = {}
    records: list[list[int]] = []
    part_of = []
    for number, name in enumerate(names):
        part = known.setdefault(name, len(records))
        if part == len(records):
            records.append([])
        records[part].append(number)
        part_of.append(part)
    return records, part_of


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all of them begin with."""
    shortest = min(paths, key=len)
    for length in range(len(shortest), 0, -1):
        if all(path[:length] == shortest[:length] for path in paths):
            return shortest[:length]
    return ()

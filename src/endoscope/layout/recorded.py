"""A recorded graph as parts: one for each name, with its roles and passes inside."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from endoscope.layout.folding import Box
from endoscope.layout.names import box_label, last_computed, relative, shape_text, with_type
from endoscope.layout.tree import STORED, Graph, Part, Tree

Node = Mapping[str, Any]  # as a recording keeps it


@dataclass(frozen=True, slots=True)
class Recorded:
    """Several recorded graphs as one."""

    nodes: list[Node]  # each tensor once, whichever graphs it is in
    edges: list[tuple[int, int]]

    @classmethod
    def merged(cls, graphs: Iterable[Mapping[str, Any]]) -> Recorded:
        """Steps of different types have different graphs; their union keeps every box in its place.

        The page puts graphs together in the same order (frontend/src/model/union.ts), so tensors have the same numbers.
        """
        place: dict[tuple[str, str, int], int] = {}
        nodes: list[Node] = []
        edges: dict[tuple[int, int], None] = {}
        for graph in graphs:
            here = []
            for node in graph["nodes"]:
                key = node["node"], node["role"], node["pass"]
                at = place.get(key)
                if at is None:
                    at = place[key] = len(nodes)
                    nodes.append(node)
                here.append(at)
            for source, target, *_ in graph["edges"]:
                edges[here[source], here[target]] = None
        return cls(nodes, list(edges))


class RecordedTree:
    """What can be opened and closed in a recorded graph, and how it is called."""

    has_history = True  # of every tensor there is a number for every step

    def __init__(
        self,
        recorded: Recorded,
        types: Mapping[str, str] | None = None,
        renames: Mapping[str, str] | None = None,
        prefixes: Sequence[str] = (),
    ) -> None:
        """`types`: classes of modules; `renames`: names of the user's own; `prefixes`: of names to be grouped."""
        self.recorded = recorded
        self.types = types or {}
        self._faces: dict[int, int] = {}
        self.renames = renames or {}
        apart = _called_apart(recorded)
        self.records, self.part_of = _gather(recorded, apart)  # part -> positions of its tensors, and the other way
        longest_first = sorted(filter(None, prefixes), key=len, reverse=True)
        parts = [self._part(own, longest_first, apart) for own in self.records]
        edges = {(self.part_of[source], self.part_of[target]): None for source, target in _past_results(recorded)}
        self.tree = Tree(Graph(parts, [edge for edge in edges if edge[0] != edge[1]], _uncalled(recorded, parts)))

    def _part(self, own: Sequence[int], prefixes: Sequence[str], apart: Container[str]) -> Part:
        nodes = [self.recorded.nodes[number] for number in own]
        name, module = nodes[0]["node"], _home(nodes)
        path = addresses(module)
        if name in apart:
            path = path[:-1]  # its calls stand where they happen, not together in one box
        prefix = next((text for text in prefixes if name.startswith(text)), None)
        if prefix is not None:
            path = (*path, f"{module}/{prefix}…")
        return Part(name, nodes[0]["kind"], path, (nodes[0].get("type"), shape_text(nodes[0].get("shape")), len(own)))

    # ---- text ------------------------------------------------------------------------------------------------------

    def part_label(self, part: int) -> str:
        """The name as it reads inside of the box around it."""
        first = self.recorded.nodes[self.records[part][0]]
        name = first["node"]
        if name in self.renames:
            return self.renames[name]
        around = self._module_of(self.tree.modules[self.tree.home[part]].address)
        if around and name == around:
            return "output"
        call = f":{first['pass']}" if first["pass"] > 1 else ""
        return with_type(relative(name, around), first.get("type") or "") + call

    def part_detail(self, part: int) -> str:
        """Its shape, and how many tensors it stands for."""
        nodes = [self.recorded.nodes[number] for number in self.records[part]]
        roles, passes = len({node["role"] for node in nodes}), len({node["pass"] for node in nodes})
        shape = shape_text(nodes[0].get("shape"))
        several = [f"{roles} roles"] if roles > 1 else []
        several += [f"×{passes}"] if passes > 1 else []
        return " · ".join([*([shape] if shape else []), *several])

    def module_label(self, module: int) -> str:
        """The address as it reads inside of the box around it, with the class if it is only a number."""
        here = self.tree.modules[module]
        if here.address in self.renames:
            return self.renames[here.address]
        _, slash, inner = here.address.rpartition("/")
        if slash:
            return inner
        around = self._module_of(self.tree.modules[here.parent].address)
        return with_type(relative(here.address, around), self.types.get(here.address, ""))

    def box_texts(self, box: Box) -> tuple[str, str]:
        """Both lines."""
        if box.part >= 0:
            return self.part_label(box.part), self.part_detail(box.part)
        label = box_label(self.tree, box, self.module_label)
        face = self.records[self.face(box.modules[0])][0]
        return label, shape_text(self.recorded.nodes[face].get("shape"))

    def face(self, module: int) -> int:
        """The part that stands for a closed module: what it returns, else what is computed last."""
        known = self._faces.get(module)
        if known is None:
            known = self._faces[module] = self._face(module)
        return known

    def _face(self, module: int) -> int:
        tree = self.tree
        address = tree.modules[module].address
        inside = tree.inside(module)
        returned = next((part for part in inside if tree.graph.parts[part].name == address), None)
        if returned is not None:
            return returned
        return last_computed(tree, inside)

    @staticmethod
    def _module_of(address: str) -> str:
        """Groups of the user's own, and of what nobody reads, belong to a module."""
        return address.partition("/")[0]


def addresses(module: str) -> tuple[str, ...]:
    """`a.b.c` -> a, a.b, a.b.c."""
    pieces = module.split(".") if module else []
    return tuple(".".join(pieces[: n + 1]) for n in range(len(pieces)))


def _gather(recorded: Recorded, apart: Container[str]) -> tuple[list[list[int]], list[int]]:
    """The tensors of each part: all of one name, or those of one pass."""
    known: dict[tuple[str, int], int] = {}
    records: list[list[int]] = []
    part_of: list[int] = []
    for number, node in enumerate(recorded.nodes):
        key = node["node"], node["pass"] if node["node"] in apart else 0
        at = known.setdefault(key, len(records))
        if at == len(records):
            records.append([])
        records[at].append(number)
        part_of.append(at)
    order = sorted(range(len(records)), key=lambda part: _moment(records[part], recorded))
    place = {old: new for new, old in enumerate(order)}
    return [records[old] for old in order], [place[old] for old in part_of]


def _moment(own: Sequence[int], recorded: Recorded) -> int:
    """When a part runs: at its first tensor; what a module returns is complete at the last tensor of its first call."""
    first = recorded.nodes[own[0]]
    if first["node"] != first["module"]:
        return own[0]
    return max(number for number in own if recorded.nodes[number]["pass"] == first["pass"])


def _called_apart(recorded: Recorded) -> set[str]:
    """Modules without weights that are called at several places, like the one `relu` of a block.

    Merged by name they would make a loop where there is none. In a real loop the passes read the same.
    """
    holders = {address for node in recorded.nodes if node["kind"] in STORED for address in addresses(node["module"])}
    passes: dict[str, dict[int, set[str]]] = {}
    for node in recorded.nodes:
        if node["kind"] == "computed" and node["node"] == node["module"] and node["module"] not in holders:
            passes.setdefault(node["node"], {})[node["pass"]] = set()
    several = {name: found for name, found in passes.items() if len(found) > 1}
    for source, target in recorded.edges:
        name = recorded.nodes[target]["node"]
        if name in several:
            several[name].get(recorded.nodes[target]["pass"], set()).add(recorded.nodes[source]["node"])
    return {
        name
        for name, found in several.items()
        if len({frozenset(sources) for sources in found.values()}) == len(found) and all(found.values())
    }


def _past_results(recorded: Recorded) -> Iterator[tuple[int, int]]:
    """Edges, where what a module reads of its own result in the same call comes from where that came from.

    A model that returns its cache of keys reads them itself; an edge from the result back into it would look like a
    loop. The outputs of the whole are results, too.
    """
    nodes = recorded.nodes
    sources: dict[int, list[int]] = {}
    for source, target in recorded.edges:
        sources.setdefault(target, []).append(source)
    for source, target in recorded.edges:
        waiting, seen = [source], {source}
        while waiting:
            here = waiting.pop()
            if not _is_result_of(nodes[here], nodes[target]):
                yield here, target
                continue
            fresh = [above for above in sources.get(here, ()) if above not in seen]
            seen.update(fresh)
            waiting += fresh


def _is_result_of(node: Node, reader: Node) -> bool:
    """Whether a node is what the module around its reader returns, from the call in which it is read."""
    if node["kind"] == "output":
        return reader["kind"] not in ("output", "loss")
    address = node["node"]
    if node["kind"] != "computed" or address != node["module"] or node["pass"] != reader["pass"]:
        return False
    return str(reader["node"]).startswith(f"{address}.") and bool(reader["kind"] == "computed")


def _home(nodes: Sequence[Node]) -> str:
    """Where a name lives: its module, or for a tag the module that was running; what all its tensors share."""
    homes = [node["module"] or (node.get("modules") or [""])[-1] for node in nodes]
    common = homes[0].split(".")
    for home in homes[1:]:
        pieces = home.split(".")
        length = next((n for n, pair in enumerate(zip(common, pieces, strict=False)) if pair[0] != pair[1]), None)
        common = common[: min(len(common), len(pieces)) if length is None else length]
    return ".".join(common)


def _uncalled(recorded: Recorded, parts: Sequence[Part]) -> frozenset[str]:
    """Modules around others that were never running themselves."""
    called = {address for node in recorded.nodes for address in node.get("modules") or ()}
    return frozenset(address for part in parts for address in part.path if "/" not in address) - called

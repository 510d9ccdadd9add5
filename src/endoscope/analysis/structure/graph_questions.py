"""What can be asked of a graph, whatever its nodes are: operations of a trace, or records of a file.

    key ─► _lookup ─► numbers ─► sweep over parents ─► numbers ─► _give ─► nodes as the user knows them

Numbers count from 0, every parent stands before its children, so each question is one sweep and nothing recurses.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeAlias, TypeVar

from endoscope.analysis.selecting.no_match import nothing_matches, part_without_match
from endoscope.analysis.selecting.patterns import Pattern, Selectable, Selector, nearest, parse
from endoscope.analysis.structure.contract import Links
from endoscope.analysis.structure.paths import count_paths, shortest_paths
from endoscope.analysis.structure.reach import Parents, ascend, children_of, descend, distances
from endoscope.analysis.structure.structure_hash import structure_hash
from endoscope.errors import BadArgument, EndoscopeError, LookupFailed, MissingDependencyError
from endoscope.schema.graph import GraphEdge, GraphNode
from endoscope.schema.ops import Kind

Item = TypeVar("Item", bound=Selectable)
#: A label, a module address or a pattern; a position; a node; or several of these.
Key: TypeAlias = "str | int | Selectable | Iterable[Key]"


class Questions(ABC, Generic[Item]):
    """Questions about a graph; see `docs/reference/graph.md`."""

    def __init__(self, name: str, parents: Parents, cache: dict[str, Any]) -> None:
        self.name = name
        self._parents = parents
        self._cache = cache  # what was worked out before

    # ---- what a kind of graph has to say ---------------------------------------------------------

    @abstractmethod
    def _lookup(self, key: object) -> list[int] | None:
        """Numbers of the nodes behind a label, a position or a node; None if there is none."""

    @abstractmethod
    def _give(self, numbers: Sequence[int]) -> Sequence[Item]:
        """Nodes as the user knows them."""

    @abstractmethod
    def _calls(self, number: int) -> tuple[str, ...]:
        """Calls of modules around a node, outermost first."""

    @abstractmethod
    def _make_records(self) -> list[GraphNode]: ...

    @abstractmethod
    def _make_links(self) -> Links: ...

    @abstractmethod
    def contract(self, nodes: Key) -> Self:
        """A graph of these nodes only, with an edge where a path leads through no other of them."""

    # ---- neighbours ------------------------------------------------------------------------------

    @property
    def nodes(self) -> Sequence[Item]:
        """All nodes, in order of execution."""
        return self._give(range(len(self._parents)))

    @property
    def edges(self) -> tuple[GraphEdge[Item], ...]:
        """All edges, by the node that reads."""
        nodes = list(self.nodes)
        return tuple(
            GraphEdge(nodes[source], nodes[target], uses)
            for target, own in enumerate(self._links)
            for source, uses in own
        )

    def parents(self, key: Key) -> Sequence[Item]:
        """What a node reads directly."""
        return self._sorted({parent for node in self._numbers(key) for parent in self._parents[node]})

    def children(self, key: Key) -> Sequence[Item]:
        """What reads a node directly."""
        return self._sorted({child for node in self._numbers(key) for child in self._children[node]})

    def siblings(self, key: Key) -> Sequence[Item]:
        """Nodes that share a parent with it."""
        found: set[int] = set()
        for node in self._numbers(key):
            found.update(c for parent in self._parents[node] for c in self._children[parent] if c != node)
        return self._sorted(found)

    def ancestors(self, key: Key) -> Sequence[Item]:
        """Everything that a node depends on."""
        above = [parent for node in self._numbers(key) for parent in self._parents[node]]
        return self._marked(ascend(self._parents, above))

    def descendants(self, key: Key) -> Sequence[Item]:
        """Everything that depends on a node."""
        below = [child for node in self._numbers(key) for child in self._children[node]]
        return self._marked(descend(self._parents, below))

    # ---- paths -----------------------------------------------------------------------------------

    def paths(self, start: Key, end: Key, *, limit: int = 100) -> list[Sequence[Item]]:
        """Paths from `start` down to `end`, shortest first, at most `limit`."""
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise BadArgument(f"limit={limit!r}: use a whole number from 1 on. path_count() says how many paths exist.")
        found = shortest_paths(self._parents, self._children, self._numbers(start), self._numbers(end))
        return [self._give(path) for path in itertools.islice(found, limit)]

    def path_count(self, start: Key, end: Key) -> int:
        """How many paths there are, exactly."""
        return count_paths(self._parents, self._numbers(start), self._numbers(end))

    def distance(self, start: Key, end: Key, *, longest: bool = False) -> int | None:
        """Fewest (or most) steps from `start` down to `end`; None if no path leads there."""
        steps = distances(self._parents, self._numbers(start))[longest]
        found = [length for node in self._numbers(end) if (length := steps[node]) is not None]
        return (max if longest else min)(found, default=None)

    # ---- selection -------------------------------------------------------------------------------

    def select(self, pattern: str) -> Sequence[Item]:
        """Nodes that a pattern selects; raises if a part of it cannot match anything here."""
        selector = parse(pattern)
        numbers = self._matching(selector)
        if not numbers and (isinstance(selector, Pattern) or part_without_match(selector, self.nodes)):
            raise nothing_matches([selector], self.nodes, self.name)
        return self._give(numbers)

    def ops_of(self, module: str) -> Sequence[Item]:
        """Operations that ran inside a module, however deep, or inside one call of it (`encoder:2`)."""
        if module == "":
            return self._give([n for n, kind in enumerate(self._kinds()) if kind in _MADE])
        around = [self._calls(number) for number in range(len(self._parents))]
        known = dict.fromkeys(name for calls in around for call in calls for name in (call.rpartition(":")[0], call))
        if module not in known:
            close = ", ".join(repr(name) for name in nearest(str(module), known)) or "none, as no module was called"
            raise LookupFailed(f"No module of {self.name} that ran is called {module!r}. Nearest: {close}.")
        inside = [n for n, kind in enumerate(self._kinds()) if kind in _MADE]
        return self._give([n for n in inside if any(c == module or c.rpartition(":")[0] == module for c in around[n])])

    # ---- as a whole ------------------------------------------------------------------------------

    @property
    def hash(self) -> str:
        """Equal for equal architectures."""
        if "hash" not in self._cache:
            self._cache["hash"] = structure_hash(self._records, self._links)
        return str(self._cache["hash"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; edges name nodes by their position."""
        return {
            "name": self.name,
            "hash": self.hash,
            "nodes": [_plain_node(node) for node in self._records],
            "edges": [
                {"source": source, "target": target, "uses": [list(use) for use in uses]}
                for target, own in enumerate(self._links)
                for source, uses in own
            ],
        }

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph` of labels, with what is known of nodes and edges as attributes."""
        try:
            import networkx  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingDependencyError("to_networkx() needs networkx. Type: pip install networkx") from error
        graph = networkx.DiGraph(name=self.name)
        labels = [node.label for node in self._records]
        for node in self._records:
            graph.add_node(node.label, type=node.type, kind=node.kind, shapes=node.shapes, modules=node.modules)
        for target, own in enumerate(self._links):
            for source, uses in own:
                graph.add_edge(labels[source], labels[target], uses=uses)
        return graph

    def __len__(self) -> int:
        return len(self._parents)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Item]:
        return iter(self.nodes)

    def __contains__(self, key: object) -> bool:
        try:
            return bool(self._lookup(key))
        except EndoscopeError:
            return False

    def __repr__(self) -> str:
        count = sum(map(len, self._parents))
        return f"<Graph of {self.name}: {len(self)} nodes, {count} edges>"

    # ---- parts -----------------------------------------------------------------------------------

    @property
    def _children(self) -> Sequence[Sequence[int]]:
        if "children" not in self._cache:
            self._cache["children"] = children_of(self._parents)
        found: Sequence[Sequence[int]] = self._cache["children"]
        return found

    @property
    def _links(self) -> Links:
        if "links" not in self._cache:
            self._cache["links"] = self._make_links()
        found: Links = self._cache["links"]
        return found

    @property
    def _records(self) -> list[GraphNode]:
        if "records" not in self._cache:
            self._cache["records"] = self._make_records()
        found: list[GraphNode] = self._cache["records"]
        return found

    def _kinds(self) -> Iterable[str]:
        return (node.kind for node in self.nodes)

    def _marked(self, marks: bytearray) -> Sequence[Item]:
        return self._give([number for number, mark in enumerate(marks) if mark])

    def _sorted(self, numbers: Iterable[int]) -> Sequence[Item]:
        return self._give(sorted(numbers))

    # ---- keys ------------------------------------------------------------------------------------

    def _numbers(self, key: Key) -> list[int]:
        """Nodes behind one key, a pattern, or several of both."""
        found = self._lookup(key)
        if found is not None:
            return found
        if isinstance(key, str):
            selector = parse(key)
            if _is_name(selector):
                raise self._unknown(key)
            return self._matching(selector) or self._raise_nothing(selector)
        if isinstance(key, Iterable):
            return sorted({number for one in key for number in self._numbers(one)})
        raise self._unknown(key)

    def _chosen(self, nodes: Key) -> list[int]:
        """Nodes for a contraction: text is a pattern first, so that a module means all that it returned."""
        if isinstance(nodes, str):
            selector = parse(nodes)
            found = self._matching(selector) or self._lookup(nodes)
            return sorted(found) if found else self._raise_nothing(selector)
        found = self._lookup(nodes)
        if found is not None:
            return sorted(found)
        if not isinstance(nodes, Iterable):
            raise self._unknown(nodes)
        return sorted({number for one in nodes for number in self._chosen(one)})

    def _matching(self, selector: Selector) -> list[int]:
        marks = selector.mark(self.nodes, self._parents)
        return [number for number, mark in enumerate(marks) if mark]

    def _raise_nothing(self, selector: Selector) -> list[int]:
        raise nothing_matches([selector], self.nodes, self.name)

    def _unknown(self, key: Key) -> LookupFailed:
        if not isinstance(key, str):
            return LookupFailed(f"There is no node {key!r}: use a label, a module address, a position or an operation.")
        keys = (name for node in self.nodes for name in node.keys)
        close = ", ".join(repr(name) for name in nearest(key, keys))
        return LookupFailed(f"No node of {self.name} is called {key!r}. Nearest: {close}.")


_MADE = (Kind.COMPUTED, Kind.GENERATED)


def _is_name(selector: Selector) -> bool:
    return isinstance(selector, Pattern) and not selector.field and not set("*?") & set(selector.body)


def _plain_node(node: GraphNode) -> dict[str, Any]:
    source = node.source
    return {
        "number": node.number,
        "label": node.label,
        "type": str(node.type),
        "kind": str(node.kind),
        "keys": list(node.keys),
        "shapes": [list(shape) for shape in node.shapes],
        "calls": list(node.calls),
        "source": None if source is None else [source.file, source.line, source.function],
        "settings": node.settings,
    }

"""The dependency graph as plain data: of a recording, of the page that shows it, of a trace read back from JSON.

Needs no torch. `trace.graph` answers the same questions (`graph_questions.py`) with operations instead of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from endoscope.analysis.structure.contract import Links, contract_links
from endoscope.analysis.structure.graph_questions import Questions
from endoscope.errors import BadArgument
from endoscope.schema.graph import GraphNode, Use
from endoscope.schema.ops import SourceLine


class Graph(Questions[GraphNode]):
    """Nodes in order of execution, and what each of them reads."""

    def __init__(self, nodes: Iterable[GraphNode], edges: Iterable[tuple[int, int, Iterable[Use]]], name: str) -> None:
        """Edges are position of the source, position of the target, and how the target uses it."""
        self._all = tuple(nodes)
        links = _by_target(len(self._all), edges)
        super().__init__(name, [tuple(source for source, _ in own) for own in links], {"links": links})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Graph:
        """Back from `to_dict()`."""
        nodes = [_node(entry) for entry in data["nodes"]]
        edges = [(e["source"], e["target"], [(str(a), int(o)) for a, o in e["uses"]]) for e in data["edges"]]
        return cls(nodes, edges, str(data["name"]))

    def contract(self, nodes: Any) -> Graph:
        chosen = self._chosen(nodes)
        links = contract_links(self._links, chosen)
        edges = [(source, target, uses) for target, own in enumerate(links) for source, uses in own]
        return Graph([self._all[number] for number in chosen], edges, self.name)

    def _lookup(self, key: Any) -> list[int] | None:
        if isinstance(key, GraphNode):
            key = key.label
        if isinstance(key, int) and not isinstance(key, bool):
            return [key % len(self)] if -len(self) <= key < len(self) else None
        if not isinstance(key, str):
            return None
        if "keys" not in self._cache:
            keys: dict[str, list[int]] = {}
            for number, node in enumerate(self._all):
                for name in dict.fromkeys((node.label, *node.keys)):
                    keys.setdefault(name, []).append(number)
            self._cache["keys"] = keys
        found: list[int] | None = self._cache["keys"].get(key)
        return found

    def _give(self, numbers: Sequence[int]) -> Sequence[GraphNode]:
        return tuple([self._all[number] for number in numbers])

    def _calls(self, number: int) -> tuple[str, ...]:
        return self._all[number].calls

    def _make_records(self) -> list[GraphNode]:
        return list(self._all)

    def _make_links(self) -> Links:
        raise AssertionError("given to the constructor")


def _by_target(count: int, edges: Iterable[tuple[int, int, Iterable[Use]]]) -> list[list[tuple[int, tuple[Use, ...]]]]:
    links: list[list[tuple[int, tuple[Use, ...]]]] = [[] for _ in range(count)]
    for source, target, uses in edges:
        if not 0 <= source < target < count:
            raise BadArgument(
                f"The edge {source} -> {target} does not fit {count} nodes: nodes stand in order of execution, so "
                "every edge leads from a smaller position to a larger one. Sort the nodes first."
            )
        links[target].append((source, tuple(uses)))
    return links


def _node(entry: dict[str, Any]) -> GraphNode:
    source = entry["source"]
    return GraphNode(
        number=entry["number"],
        label=entry["label"],
        type=entry["type"],
        kind=entry["kind"],
        keys=tuple(entry["keys"]),
        shapes=tuple(tuple(shape) for shape in entry["shapes"]),
        calls=tuple(entry["calls"]),
        source=None if source is None else SourceLine(*source),
        settings=entry["settings"],
    )

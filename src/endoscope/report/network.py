"""The dependency graph of a trial by names: graphs of all types laid over each other, passes and roles put together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from endoscope.errors import EndoscopeError
from endoscope.query import bulk
from endoscope.query.recording import Recording

_MOST_GRAPHS = 4  # of those that occur most often
_HELD = ("parameter", "buffer")


@dataclass(slots=True)
class Part:
    """One node by its name."""

    name: str
    kind: str
    type: str  # plain name of the function that made it
    modules: tuple[str, ...]  # around it, the outermost first
    shape: tuple[int, ...]
    position: int  # in order of execution
    passes: set[int] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Network:
    """Nodes and edges; parameters and buffers are told with what reads them."""

    parts: dict[str, Part]
    edges: dict[str, dict[str, None]]  # source -> targets
    reader: dict[str, str]  # parameter or buffer -> the first node that reads it
    types: dict[str, str]  # address of a module -> its class

    def place_of(self, name: str) -> str:
        """The node that stands for a name in a drawing; empty if there is none."""
        name = self.reader.get(name, name)
        return name if name in self.parts else ""


def read_network(recording: Recording) -> Network:
    """What is known of the graph; empty if no step has one."""
    counts = Counter(step.graph for step in recording.steps if step.graph)
    parts: dict[str, Part] = {}
    edges: dict[str, dict[str, None]] = {}
    for graph_hash, _ in counts.most_common(_MOST_GRAPHS):
        try:
            graph = bulk.graph(recording, graph_hash)
            _add(graph, parts, edges)
        except (EndoscopeError, KeyError, TypeError, ValueError, IndexError):
            continue  # damaged, or without a graph: the rest of the report does not need it
    reader = {name: next(iter(edges.get(name, {})), "") for name, part in parts.items() if part.kind in _HELD}
    reader = {name: target for name, target in reader.items() if target and parts[target].kind not in _HELD}
    drawn = {name: part for name, part in parts.items() if part.kind not in _HELD}
    between = {
        source: {target: None for target in targets if target in drawn}
        for source, targets in edges.items()
        if source in drawn
    }
    types = {str(entry["address"]): str(entry["type"]) for entry in _modules(recording)}
    return Network(drawn, between, reader, types)


def _modules(recording: Recording) -> list[dict[str, object]]:
    found = recording.modules.get("modules", [])
    return [entry for entry in found if isinstance(entry, dict) and {"address", "type"} <= set(entry)]


def _add(graph: dict[str, object], parts: dict[str, Part], edges: dict[str, dict[str, None]]) -> None:
    nodes = graph["nodes"]
    assert isinstance(nodes, list)
    for position, node in enumerate(nodes):
        name = str(node["node"])
        if name not in parts:
            modules = tuple(map(str, node.get("modules", ())))
            shape = tuple(node.get("shape", ()))
            parts[name] = Part(name, str(node["kind"]), str(node.get("type", "")), modules, shape, position)
        parts[name].passes.add(int(node["pass"]))
        parts[name].roles.add(str(node["role"]))
    for source, target, *_ in graph["edges"]:  # type: ignore[attr-defined]
        one, other = str(nodes[source]["node"]), str(nodes[target]["node"])
        if one != other:
            edges.setdefault(one, {})[other] = None

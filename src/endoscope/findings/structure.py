"""What is known of the graph: in which order tensors are made, by what, and from which others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from endoscope.errors import EndoscopeError
from endoscope.query import bulk
from endoscope.query.recording import Recording

Place = tuple[str, str, int]  # node, role, pass
_MOST_GRAPHS = 16  # of the structures that occur most often

#: Nodes that hand on what they get, under another name.
PASSED_ON = frozenset(("output", "dropout", "identity", "view", "reshape", "flatten", "squeeze", "unsqueeze"))


class Structure:
    """The graphs of a recording, laid over each other."""

    def __init__(self, recording: Recording) -> None:
        self.position: dict[Place, int] = {}
        self.type: dict[Place, str] = {}  # plain name of the function that made it
        self.parents: dict[Place, list[Place]] = {}
        self.children: dict[Place, list[Place]] = {}
        self.remarks: list[dict[str, Any]] = []  # facts about single operations: recording/structure/remarks.py
        counts: dict[str, int] = {}
        for step in recording.steps:
            counts[step.graph] = counts.get(step.graph, 0) + 1
        for graph_hash in sorted(counts, key=lambda name: -counts[name])[:_MOST_GRAPHS]:
            try:
                self._add(bulk.graph(recording, graph_hash))
            except (EndoscopeError, KeyError, TypeError, ValueError, IndexError):
                continue  # damaged, or of a recording without graphs: everything else can still be checked

    def _add(self, graph: dict[str, Any]) -> None:
        places = [(node["node"], node["role"], node["pass"]) for node in graph["nodes"]]
        for number, (place, node) in enumerate(zip(places, graph["nodes"], strict=True)):
            self.position.setdefault(place, number)
            self.type.setdefault(place, node["type"])
        self.remarks += [one for one in graph.get("remarks", ()) if one not in self.remarks]
        for source, target, *_ in graph["edges"]:
            _append(self.parents, places[target], places[source])
            _append(self.children, places[source], places[target])

    def depth(self, place: Place, default: int = 0) -> int:
        """Order of execution; a parameter stands where it is first read."""
        read = [self.position[child] for child in self.children.get(place, ())]
        if self.type.get(place) in ("parameter", "buffer") and read:
            return min(read)
        return self.position.get(place, default)

    def below(self, starts: Iterable[Place]) -> set[Place]:
        """Everything that depends on one of these, with these."""
        return _reach(self.children, starts)

    def above(self, starts: Iterable[Place]) -> set[Place]:
        """Everything that one of these depends on, with these."""
        return _reach(self.parents, starts)

    def readers(self, place: Place) -> list[Place]:
        """What computes something from it, looked for beyond nodes that are only other names for it."""
        found: list[Place] = []
        waiting, seen = [place], {place}
        while waiting:
            here = waiting.pop()
            for child in self.children.get(here, ()):
                if child in seen:
                    continue
                seen.add(child)
                same = self.type.get(child) == self.type.get(place) and self.parents[child] == [here]
                (waiting if same or self.type.get(child) in PASSED_ON else found).append(child)
        return found


def _append(lists: dict[Place, list[Place]], key: Place, item: Place) -> None:
    known = lists.setdefault(key, [])
    if item not in known:
        known.append(item)


def _reach(links: dict[Place, list[Place]], starts: Iterable[Place]) -> set[Place]:
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        for other in links.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen

"""The dependency graph of a step of several ranks: of pipeline stages, each rank has a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

JOINT = "+"  # between the hashes of the graphs that one is put together from


def joined(hashes: Iterable[str]) -> str:
    """The name of a graph that is put together from others; the same structure on all ranks is one graph."""
    return JOINT.join(dict.fromkeys(one for one in hashes if one))


def put_together(
    name: str,
    find: Callable[[str], dict[str, Any] | None],
    shapes: Mapping[tuple[str, str, int], tuple[int, ...]],
) -> dict[str, Any] | None:
    """Nodes of the same node, role and pass are one; it has the shape of the whole, or none if that is not known."""
    places: dict[tuple[str, str, int], int] = {}
    nodes: list[dict[str, Any]] = []
    edges: dict[tuple[int, int], list[str]] = {}
    for part in name.split(JOINT):
        found = find(part)
        if found is None:
            return None
        mine: list[int] = []
        for node in found.get("nodes") or ():
            described = node if isinstance(node, dict) else {"node": str(node)}
            about = (str(described.get("node")), str(described.get("role", "")), int(described.get("pass", 1)))
            if about not in places:
                places[about] = len(nodes)
                shape = shapes.get(about)
                nodes.append({**described, "shape": None if shape is None else list(shape)})
            mine.append(places[about])
        for start, end, uses in found.get("edges") or ():
            known = edges.setdefault((mine[start], mine[end]), [])
            known += [use for use in uses if use not in known]
    return {"hash": name, "nodes": nodes, "edges": [[start, end, uses] for (start, end), uses in edges.items()]}

"""Draw modules from a certain depth on as one node each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from endoscope.analysis.picture import ENDS, Box, Edge, Look, Node, Picture, merge_edges, occupied, paths_of


def close(picture: Picture, depth: int) -> Picture:
    """Modules at this depth (1 for those that the model itself calls) become one node with totals."""
    paths = paths_of(picture)
    members: dict[int, list[Node]] = {}
    for node in picture.nodes:
        if len(paths[node.box]) >= depth:
            members.setdefault(paths[node.box][depth - 1], []).append(node)
    first_key = max((node.key for node in picture.nodes), default=0) + 1
    key_of = {box: key for key, box in enumerate(members, first_key)}
    stand_in = {node.key: key_of[box] for box, group in members.items() for node in group}
    outer = [e for e in picture.edges if stand_in.get(e.source, e.source) != stand_in.get(e.target, e.target)]
    leaving = {edge.source for edge in outer if not edge.control}
    closed = {key_of[box]: _closed(key_of[box], picture.boxes[box], group, leaving) for box, group in members.items()}
    nodes = tuple(_in_place(picture.nodes, stand_in, closed))
    loops = [e for e in picture.edges if e.source == e.target and e.source not in stand_in]
    edges = _redirected([*outer, *loops], picture.by_key, stand_in, closed, nodes)
    return occupied(replace(picture, nodes=nodes, edges=edges))


def _closed(key: int, box: Box, group: list[Node], leaving: set[int]) -> Node:
    shown = [node for node in group if node.key in leaving] or group
    operations = [node for node in group if node.look not in ENDS]
    weights = {weight.name: weight for node in group for weight in node.weights}
    return Node(
        key=key,
        label=box.name,
        layer=box.address,
        look=Look.MODULE,
        type=box.type,
        pass_=box.pass_,
        passes=box.passes if box.rolled else 1,
        shape=shown[-1].shape,
        bytes=shown[-1].bytes,
        box=box.parent,
        whole=box.name,
        weights=tuple(weights.values()),
        dashed=all(node.dashed for node in operations),
        decides=any(node.decides for node in group),
        rolled=box.rolled,
        operations=sum(node.operations * node.drawn_passes for node in operations),
        inner_bytes=sum((node.inner_bytes or node.bytes) * node.drawn_passes for node in operations),
    )


def _in_place(nodes: tuple[Node, ...], stand_in: Mapping[int, int], closed: Mapping[int, Node]) -> Iterator[Node]:
    """Each closed module where its first operation was."""
    done: set[int] = set()
    for node in nodes:
        key = stand_in.get(node.key)
        if key is None:
            yield node
        elif key not in done:
            done.add(key)
            yield closed[key]


def _redirected(
    edges: list[Edge],
    before: Mapping[int, Node],
    stand_in: Mapping[int, int],
    closed: Mapping[int, Node],
    nodes: tuple[Node, ...],
) -> tuple[Edge, ...]:
    """Edges between what is drawn; a closed module has no arguments and no numbered outputs."""
    plain = (
        replace(
            edge,
            argument="" if stand_in.get(edge.target) in closed else edge.argument,
            output="" if stand_in.get(edge.source) in closed else edge.output,
        )
        for edge in edges
    )

    def passes(edge: Edge) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return edge.leaves or before[edge.source].every_pass, edge.enters or before[edge.target].every_pass

    return merge_edges(plain, stand_in, passes, {node.key: node.drawn_passes for node in nodes})

"""Draw equal blocks that follow each other once, marked ×12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from endoscope.analysis.picture import ENDS, NOWHERE, Box, Edge, Node, Passes, Picture, merge_edges, occupied
from endoscope.analysis.picture_repeats import LARGE, Group, Repeats, facts_of


def fold(picture: Picture) -> Picture:
    """Fold from the outside inwards, until nothing repeats."""
    large = len(picture.nodes) > LARGE
    while groups := Repeats(picture, large).groups():
        picture = _Folding(picture, groups).picture()
    return picture


class _Folding:
    """Draws the first unit of every group, and leaves the others out."""

    def __init__(self, picture: Picture, groups: list[Group]) -> None:
        self.before = picture
        self.groups = groups
        self.boxes = dict(picture.boxes)
        self.nodes = picture.by_key
        self.stand_in: dict[int, int] = {}  # node that is left out -> the one that is drawn
        self.unit_of: dict[int, tuple[int, int]] = {}  # node -> number of its group, and of its unit from 1

    def picture(self) -> Picture:
        new_box = max(self.boxes, default=-1) + 1
        for number, group in enumerate(self.groups):
            self._number(number, group)
            self._frame(group, new_box + number)
        self._merge_twins()
        kept = tuple(self.nodes[node.key] for node in self.before.nodes if node.key not in self.stand_in)
        links = (link for number in range(len(self.groups)) for link in self._links(number))
        edges = self._in_order([*self._inner_edges(), *self._outer_edges(kept), *links])
        return occupied(replace(self.before, nodes=kept, edges=edges, boxes=self.boxes))

    # ---- nodes and boxes -------------------------------------------------------------------------------------------

    def _number(self, number: int, group: Group) -> None:
        rows = [group.nodes(unit) for unit in range(len(group.units))]
        for unit, row in enumerate(rows, 1):
            for original, node in zip(rows[0], row, strict=True):
                self.unit_of[node] = (number, unit)
                if unit > 1:
                    self.stand_in[node] = original
        for original, last in zip(rows[0], rows[-1], strict=True):
            self.nodes[original] = self._for_all(self.nodes[original], self.nodes[last])

    def _for_all(self, first: Node, last: Node) -> Node:
        """The first of several nodes, without what is not true of the last."""
        again = first.layer == last.layer  # the same layer in another pass
        return replace(
            first,
            label=first.layer if again else first.label,
            whole=first.whole.partition(":")[0] if again else first.whole,
            dashed=first.dashed and last.dashed,
        )

    def _frame(self, group: Group, new: int) -> None:
        """Mark what is drawn: the box, the node, or a new box around the items."""
        first, last, times = group.units[0], group.units[-1], len(group.units)
        if len(first) > 1:
            self.boxes[new] = Box(new, group.parent, "", "", times=times)
            for item in first:
                if item.box != NOWHERE:
                    self.boxes[item.box] = replace(self.boxes[item.box], parent=new)
                else:
                    self.nodes[item.nodes[0]] = replace(self.nodes[item.nodes[0]], box=new)
        elif first[0].box != NOWHERE:
            box, end = self.boxes[first[0].box], self.boxes[last[0].box]
            self.boxes[box.key] = replace(box, times=times * box.times, last=end.name)
        else:
            node, final = self.nodes[first[0].nodes[0]], self.nodes[last[0].nodes[0]]
            self.nodes[node.key] = replace(node, times=times * node.times, last=final.whole or final.label)

    def _merge_twins(self) -> None:
        """Inputs and outputs of which every unit has its own are drawn once, too."""
        first: dict[Hashable, int] = {}
        twins: dict[int, int] = {}
        for key, neighbours in self._neighbours_of_ends().items():
            original = first.setdefault((facts_of(self.nodes[key]), tuple(neighbours)), key)
            if original != key:
                twins[key] = original
        last = {original: self.nodes[key].label for key, original in twins.items()}  # the later one wins
        for original, more in Counter(twins.values()).items():
            node = self.nodes[original]
            times = (more + 1) * node.times
            self.nodes[original] = replace(node, times=times, last=last[original], note="")
        self.stand_in |= twins

    def _neighbours_of_ends(self) -> dict[int, list[Hashable]]:
        """Nodes that compute nothing and touch a folded unit -> how they are connected, units not told apart."""
        found: dict[int, list[Hashable]] = {}
        touching: set[int] = set()
        for edge in self.before.edges:
            for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
                if self.nodes[end].look in ENDS and end not in self.unit_of:
                    way = (self.stand_in.get(other, other), end == edge.source, edge.argument, edge.output, edge.mark)
                    found.setdefault(end, []).append(way)
                    if other in self.unit_of:
                        touching.add(end)
        return {end: ways for end, ways in found.items() if end in touching}

    # ---- edges -----------------------------------------------------------------------------------------------------

    def _in_order(self, edges: list[Edge]) -> tuple[Edge, ...]:
        """As before: the order of the edges into a node is that of its arguments, and the next fold compares it."""
        place: dict[tuple[int, int], int] = {}
        for number, edge in enumerate(self.before.edges):
            ends = self.stand_in.get(edge.source, edge.source), self.stand_in.get(edge.target, edge.target)
            place.setdefault(ends, number)
        return tuple(sorted(edges, key=lambda edge: place[edge.source, edge.target]))

    def _within(self, edge: Edge) -> bool:
        """Both ends are in one group."""
        source, target = self.unit_of.get(edge.source), self.unit_of.get(edge.target)
        return source is not None and target is not None and source[0] == target[0]

    def _inner_edges(self) -> list[Edge]:
        """Those of the units that are drawn."""
        return [
            edge
            for edge in self.before.edges
            if self._within(edge) and self.unit_of[edge.source][1] == self.unit_of[edge.target][1] == 1
        ]

    def _outer_edges(self, kept: tuple[Node, ...]) -> tuple[Edge, ...]:
        counts = {
            node.key: len(self.groups[self.unit_of[node.key][0]].units)
            if node.key in self.unit_of
            else node.drawn_passes
            for node in kept
        }
        outer = (edge for edge in self.before.edges if not self._within(edge))
        return merge_edges(outer, self.stand_in, self._passes, counts)

    def _passes(self, edge: Edge) -> tuple[Passes, Passes]:
        """Which units an edge leaves and enters; where there are none, the passes that it had before."""
        source, target = self.unit_of.get(edge.source), self.unit_of.get(edge.target)
        return (
            (source[1],) if source else edge.leaves or self.nodes[edge.source].every_pass,
            (target[1],) if target else edge.enters or self.nodes[edge.target].every_pass,
        )

    def _links(self, number: int) -> list[Edge]:
        """What one unit hands to the next; nothing if it is plain, the one value that the last hands to the outside."""
        group = self.groups[number]
        end, count = group.nodes(-1), len(group.units)
        end_of = dict(zip(group.nodes(0), end, strict=True))
        handed = [
            edge
            for edge in self.before.edges
            if self.unit_of.get(edge.source) == (number, 1) and self.unit_of.get(edge.target) == (number, 2)
        ]
        leaving = {edge.source for edge in self.before.edges if edge.source in set(end) and not self._within(edge)}
        givers = {end_of[edge.source] for edge in handed}
        if len(givers) == 1 and givers <= leaving:
            return []
        return [
            replace(
                edge,
                target=self.stand_in[edge.target],
                mark="",
                again=True,
                leaves=(),
                enters=tuple(range(2, count + 1)),
            )
            for edge in handed
        ]

"""Draw equal blocks that follow each other once, marked ×12.

Inside every box the operations and inner boxes stand in a row. Each gets a token that says all about its inner
structure. Where the row of tokens repeats itself (`ABABAB`), the repeats are candidates; they are taken if the values
that flow into them correspond, too: from the repeat before, from the same place outside, or from an input of their
own. What is left out is exactly what the reader would expect.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from endoscope.analysis.picture import (
    ENDS,
    NOWHERE,
    Box,
    Edge,
    Look,
    Node,
    Picture,
    merge_edges,
    occupied,
    paths_of,
)

LARGE = 2000  # nodes; above this, anything that repeats is folded
_UNROLLED = 200  # nodes; up to this, steps of a loop are drawn one by one
_WORTH = 6  # nodes that a fold must save
_LONGEST_UNIT = 64  # items that repeat together


@dataclass(frozen=True, slots=True)
class Item:
    """One step inside a box: a node, or an inner box with all that is in it."""

    nodes: tuple[int, ...]  # in order
    box: int = NOWHERE  # the inner box


@dataclass(frozen=True, slots=True)
class Group:
    """Equal stretches of items, of which only the first will be drawn."""

    parent: int
    units: tuple[tuple[Item, ...], ...]

    def nodes(self, unit: int) -> list[int]:
        return [node for item in self.units[unit] for node in item.nodes]


def fold(picture: Picture) -> Picture:
    """Fold from the outside inwards, until nothing repeats."""
    large = len(picture.nodes) > LARGE
    while groups := _Search(picture, large).groups():
        picture = _apply(picture, groups)
    return picture


class _Search:
    """Finds what can be folded at the outermost level where anything can."""

    def __init__(self, picture: Picture, large: bool) -> None:
        self.picture = picture
        self.large = large
        self.node = picture.by_key
        self.paths = paths_of(picture)
        self.items = self._items()
        self.incoming: dict[int, list[Edge]] = {}
        self.outgoing: dict[int, list[Edge]] = {}
        for edge in picture.edges:
            self.incoming.setdefault(edge.target, []).append(edge)
            self.outgoing.setdefault(edge.source, []).append(edge)
        self.names: dict[Hashable, int] = {}
        self.tokens = self._box_tokens()

    def _items(self) -> dict[int, list[Item]]:
        """Box -> its items in order."""
        inner: dict[int, dict[tuple[bool, int], list[int]]] = {}
        for node in self.picture.nodes:
            path = (NOWHERE, *self.paths[node.box])
            for outer, box in zip(path, path[1:], strict=False):
                inner.setdefault(outer, {}).setdefault((True, box), []).append(node.key)
            inner.setdefault(node.box, {})[False, node.key] = [node.key]
        return {
            box: [Item(tuple(nodes), key if is_box else NOWHERE) for (is_box, key), nodes in found.items()]
            for box, found in inner.items()
        }

    # ---- tokens ----------------------------------------------------------------------------------------------------

    def _name(self, structure: Hashable) -> int:
        return self.names.setdefault(structure, len(self.names))

    def _box_tokens(self) -> dict[int, int]:
        tokens: dict[int, int] = {}
        for box in sorted(self.items, key=lambda key: -len(self.paths.get(key, self._path(key)))):
            if box != NOWHERE:
                tokens[box] = 0
                tokens[box] = self._name(self._structure(box, tokens))
        return tokens

    def _path(self, box: int) -> tuple[int, ...]:
        path = []
        while box != NOWHERE:
            path.append(box)
            box = self.picture.boxes[box].parent
        return tuple(path)

    def _structure(self, box: int, tokens: dict[int, int]) -> Hashable:
        frame, items = self.picture.boxes[box], self.items[box]
        order = {node: n for n, node in enumerate(node for item in items for node in item.nodes)}
        inner = tuple(
            (order[edge.source], n, edge.argument, edge.mark)
            for node, n in order.items()
            for edge in self.incoming.get(node, ())
            if edge.source in order
        )
        return frame.type, frame.times, frame.passes * frame.rolled, self._row(items, tokens), inner

    def _row(self, items: Sequence[Item], tokens: dict[int, int]) -> tuple[int, ...]:
        return tuple(
            tokens[item.box] if item.box != NOWHERE else self._name(_facts(self.node[item.nodes[0]])) for item in items
        )

    # ---- repeats ---------------------------------------------------------------------------------------------------

    def groups(self) -> list[Group]:
        found: list[Group] = []
        boxes = [NOWHERE]
        while boxes:
            box = boxes.pop()
            items = self.items.get(box, [])
            here = self._repeats(items)
            found += [replace(group, parent=box) for group in here]
            folded = {item for group in here for unit in group.units for item in unit}
            boxes += [item.box for item in items if item.box != NOWHERE and item not in folded]
        return found

    def _repeats(self, items: list[Item]) -> list[Group]:
        row = self._row(items, self.tokens)
        runs = _runs(row)
        found, start = [], 0
        while start < len(items):
            best: Group | None = None
            for period, run in enumerate(runs, 1):
                if run[start] < period or (best and run[start] + period <= _size(best)):
                    continue
                group = self._group(items, start, period, run[start])
                if group and (best is None or _size(group) > _size(best)):
                    best = group
            if best is None:
                start += 1
                continue
            found.append(best)
            start = items.index(best.units[-1][-1], start) + 1
        return found

    def _group(self, items: list[Item], start: int, period: int, run: int) -> Group | None:
        """The fold that begins here, or a few items later if a module stands there."""
        shift = next((s for s in range(period) if self._is_module(items[start + s])), -1)
        if shift < 0 and not self.large:
            return None  # operations that belong to no module
        if shift < 0 or (run - shift) // period != run // period:
            shift = 0
        units = [
            tuple(items[start + shift + n * period : start + shift + (n + 1) * period])
            for n in range((run - shift) // period + 1)
        ]
        group = Group(NOWHERE, tuple(units[: self._corresponding(units)]))
        return group if self._worth(group) and self._alike_outside(group) else None

    def _is_module(self, item: Item) -> bool:
        if item.box != NOWHERE:
            return not self.picture.boxes[item.box].function
        node = self.node[item.nodes[0]]
        return bool(node.whole or node.weights)

    def _worth(self, group: Group) -> bool:
        saved = (len(group.units) - 1) * len(group.nodes(0))
        if len(group.units) < 2 or saved < _WORTH:
            return False
        if all(self.node[node].look in ENDS for node in group.nodes(0)):
            return False
        modules = [item for item in group.units[0] if self._is_module(item)]
        if not modules:
            return self.large
        place = group.units[0].index(modules[0])
        again = self._address(group.units[0][place]) == self._address(group.units[1][place])
        return not again or len(self.picture.nodes) > _UNROLLED

    def _address(self, item: Item) -> str:
        if item.box != NOWHERE:
            return self.picture.boxes[item.box].address
        node = self.node[item.nodes[0]]
        return node.whole.partition(":")[0] or node.layer

    # ---- do the values correspond? ---------------------------------------------------------------------------------

    def _corresponding(self, units: Sequence[tuple[Item, ...]]) -> int:
        """How many of the units, from the first, read corresponding values."""
        rows = [[node for item in unit for node in item.nodes] for unit in units]
        place = {node: (u, n) for u, row in enumerate(rows) for n, node in enumerate(row)}
        for unit in range(1, len(rows)):
            for before, after in zip(rows[unit - 1], rows[unit], strict=True):
                if not self._same_sources(before, after, place):
                    return unit
        return len(rows)

    def _same_sources(self, before: int, after: int, place: dict[int, tuple[int, int]]) -> bool:
        first, second = self.incoming.get(before, []), self.incoming.get(after, [])
        return len(first) == len(second) and all(
            a.argument == b.argument and self._corresponds(a.source, b.source, place)
            for a, b in zip(first, second, strict=True)
        )

    def _corresponds(self, before: int, after: int, place: dict[int, tuple[int, int]]) -> bool:
        if before == after:
            return True
        if after not in place:
            one, other = self.node[before], self.node[after]
            return before not in place and one.look in ENDS and _facts(one) == _facts(other)
        unit, position = place[after]
        if unit == 0:
            return before not in place
        return place.get(before) == (unit - 1, position)

    def _alike_outside(self, group: Group) -> bool:
        """Repeats that stand side by side must go the same way: heads may be folded, query and key may not."""
        unit_of = {node: unit for unit in range(len(group.units)) for node in group.nodes(unit)}
        ways: list[set[Hashable]] = [set() for _ in group.units]
        for unit, found in enumerate(ways):
            for position, node in enumerate(group.nodes(unit)):
                for edge in self.outgoing.get(node, ()):
                    if edge.target not in unit_of:
                        end = self.node[edge.target]
                        place = _facts(end) if end.look in ENDS else edge.target
                        found.add((position, place, edge.argument.partition("[")[0]))
                    elif unit_of[edge.target] != unit:
                        return True  # one after the other
        return all(found == ways[0] for found in ways)


def _size(group: Group) -> int:
    return sum(map(len, group.units))


def _facts(node: Node) -> Hashable:
    return (
        node.look, node.type, node.shape, tuple(w.shape for w in node.weights), tuple(b.shape for b in node.buffers),
        node.settings, node.decides, node.operations, node.passes * node.rolled, node.times,
        bool(node.whole),
    )  # fmt: skip


def _runs(row: Sequence[int]) -> list[list[int]]:
    """For every period: how many tokens from here on equal the one a period later."""
    runs = []
    for period in range(1, min(_LONGEST_UNIT, len(row) // 2) + 1):
        run = [0] * len(row)
        for n in range(len(row) - period - 1, -1, -1):
            if row[n] == row[n + period]:
                run[n] = run[n + 1] + 1
        runs.append(run)
    return runs


# ---- drawing the first of each -----------------------------------------------------------------------------------------


def _apply(picture: Picture, groups: list[Group]) -> Picture:
    boxes, nodes = dict(picture.boxes), picture.by_key
    stand_in: dict[int, int] = {}
    unit_of: dict[int, tuple[int, int]] = {}  # node -> group, unit from 1
    new = max(boxes, default=-1) + 1
    for number, group in enumerate(groups):
        first = group.nodes(0)
        for unit in range(len(group.units)):
            for original, node in zip(first, group.nodes(unit), strict=True):
                unit_of[node] = (number, unit + 1)
                if unit:
                    stand_in[node] = original
                    if nodes[original].dashed and not nodes[node].dashed:
                        nodes[original] = replace(nodes[original], dashed=False)
        _frame(group, boxes, nodes, new + number)
    twins = _twins(picture, stand_in, unit_of)
    stand_in |= twins
    kept = tuple(nodes[node.key] for node in picture.nodes if node.key not in stand_in)
    kept = _name_twins(kept, twins, picture)
    counts = {node.key: _count(node, unit_of, groups) for node in kept}
    inner = tuple(e for e in picture.edges if _same_group(e, unit_of) and unit_of[e.source] == unit_of[e.target])
    outer = [e for e in picture.edges if not _same_group(e, unit_of)]
    merged = merge_edges(outer, stand_in, _passes(unit_of, picture.by_key), counts)
    drawn = tuple(edge for edge in inner if edge.source not in stand_in)
    links = tuple(link for number, group in enumerate(groups) for link in _links(picture, group, number, unit_of))
    return occupied(replace(picture, nodes=kept, edges=drawn + merged + links, boxes=boxes))


def _links(picture: Picture, group: Group, number: int, unit_of: dict[int, tuple[int, int]]) -> list[Edge]:
    """What one unit hands to the next, unless it is plain: the one value that the last unit hands to the outside."""
    first, second = group.nodes(0), group.nodes(1)
    place = {node: n for n, node in enumerate(first)} | {node: n for n, node in enumerate(second)}
    last = set(group.nodes(-1))
    handed = [
        replace(e, source=e.source, target=first[place[e.target]], enters=tuple(range(2, len(group.units) + 1)))
        for e in picture.edges
        if unit_of.get(e.source) == (number, 1) and unit_of.get(e.target) == (number, 2)
    ]
    leaving = {e.source for e in picture.edges if e.source in last and unit_of.get(e.target, (-1,))[0] != number}
    outputs = {group.nodes(-1)[place[e.source]] for e in handed}
    if len(outputs) == 1 and outputs <= leaving:
        return []
    return [replace(e, again=True, leaves=(), mark="") for e in handed]


def _same_group(edge: Edge, unit_of: dict[int, tuple[int, int]]) -> bool:
    return edge.source in unit_of and edge.target in unit_of and unit_of[edge.source][0] == unit_of[edge.target][0]


def _count(node: Node, unit_of: dict[int, tuple[int, int]], groups: list[Group]) -> int:
    if node.key in unit_of:
        return len(groups[unit_of[node.key][0]].units)
    return node.passes if node.rolled else 1


def _passes(
    unit_of: dict[int, tuple[int, int]], nodes: dict[int, Node]
) -> Callable[[Edge], tuple[tuple[int, ...], tuple[int, ...]]]:
    """Which units an edge leaves and enters; where there are none, the passes that it had before."""

    def every(node: int) -> tuple[int, ...]:
        return tuple(range(1, (nodes[node].passes if nodes[node].rolled else 1) + 1))

    def passes(edge: Edge) -> tuple[tuple[int, ...], tuple[int, ...]]:
        source, target = unit_of.get(edge.source), unit_of.get(edge.target)
        leaves = (source[1],) if source else edge.leaves or every(edge.source)
        enters = (target[1],) if target else edge.enters or every(edge.target)
        return leaves, enters

    return passes


def _frame(group: Group, boxes: dict[int, Box], nodes: dict[int, Node], new: int) -> None:
    """Mark what is drawn: the box, the node, or a new box around the items."""
    first, last = group.units[0], group.units[-1]
    times = len(group.units)
    if len(first) == 1 and first[0].box != NOWHERE:
        key = first[0].box
        boxes[key] = replace(boxes[key], times=times * boxes[key].times, last=boxes[last[0].box].name)
        return
    if len(first) == 1:
        node, end = first[0].nodes[0], last[0].nodes[0]
        nodes[node] = replace(nodes[node], times=times, last=nodes[end].whole or nodes[end].label)
        return
    boxes[new] = Box(new, group.parent, "", "", times=times)
    for item in first:
        if item.box != NOWHERE:
            boxes[item.box] = replace(boxes[item.box], parent=new)
        else:
            node = item.nodes[0]
            nodes[node] = replace(nodes[node], box=new)


def _twins(picture: Picture, stand_in: dict[int, int], unit_of: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Inputs and outputs of which every repeat had its own: all but the first -> the first."""
    neighbours: dict[int, list[Hashable]] = {}
    folded: set[int] = set()
    for edge in picture.edges:
        for end, other, outwards in ((edge.source, edge.target, True), (edge.target, edge.source, False)):
            neighbours.setdefault(end, []).append(
                (stand_in.get(other, other), outwards, edge.argument, edge.output, edge.mark)
            )
            if other in unit_of:
                folded.add(end)
    first: dict[Hashable, int] = {}
    twins: dict[int, int] = {}
    for node in picture.nodes:
        if node.look in ENDS and node.key in folded and node.key not in unit_of:
            alike = (_facts(node), tuple(neighbours[node.key]))
            original = first.setdefault(alike, node.key)
            if original != node.key:
                twins[node.key] = original
    return twins


def _name_twins(nodes: tuple[Node, ...], twins: dict[int, int], picture: Picture) -> tuple[Node, ...]:
    by_key = picture.by_key
    last = {original: by_key[node] for node, original in twins.items()}  # the later one wins
    many: dict[int, int] = {}
    for original in twins.values():
        many[original] = many.get(original, 1) + 1
    return tuple(
        replace(node, times=many[node.key], last=last[node.key].label, note="") if node.key in last else node
        for node in nodes
    )


assert Look.MODULE not in ENDS  # closed modules can be folded

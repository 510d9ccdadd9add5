"""Find equal blocks that follow each other.

Inside every box the operations and inner boxes stand in a row. Each gets a token that says all about its inner
structure. Where the row of tokens repeats itself (`ABABAB`), the repeats are candidates. They are taken if the values
that flow into them correspond, too: from the repeat before, from the same place outside, or from an input of their
own. What is left out is then exactly what the reader would expect.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from endoscope.analysis.picture import ENDS, NOWHERE, Edge, Node, Picture, path_of, paths_of

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


class Repeats:
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
            for outer, box in itertools.pairwise(path):
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
        inner_first = sorted(self.items.keys() - {NOWHERE}, key=lambda box: -len(path_of(self.picture.boxes, box)))
        for box in inner_first:
            tokens[box] = self._name(self._structure(box, tokens))
        return tokens

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
            tokens[item.box] if item.box != NOWHERE else self._name(facts_of(self.node[item.nodes[0]]))
            for item in items
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
            return before not in place and one.look in ENDS and facts_of(one) == facts_of(other)
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
                        place = facts_of(end) if end.look in ENDS else edge.target
                        found.add((position, place, edge.argument.partition("[")[0]))
                    elif unit_of[edge.target] != unit:
                        return True  # one after the other
        return all(found == ways[0] for found in ways)


def _size(group: Group) -> int:
    return sum(map(len, group.units))


def facts_of(node: Node) -> Hashable:
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

"""The layout of modules in modules: innermost first, remembered by all that it depends on.

Scene ─► ways (levels that each edge crosses) ─► ports ─► one level after the other ─► places and whole paths
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from endoscope.layout.level import Edge, Level, Path, Placed, Port
from endoscope.layout.pins import Pin, apply_pins
from endoscope.layout.routes import place

MOST_ENTRIES = 4  # of a module; more are merged
_MOST_REMEMBERED = 20_000
_SAME = 1e-6


class Frame(NamedTuple):
    """Room between the border of an open module and what is in it."""

    before: float = 22.0  # along the flow; the title stands there
    after: float = 10.0
    left: float = 10.0
    right: float = 10.0


@dataclass(frozen=True, slots=True)
class Scene:
    """Boxes in boxes, before they have places: the box around comes first, and otherwise the order of execution."""

    parent: Sequence[int]  # the open box around; -1 at the top
    open: Sequence[bool]
    width: Sequence[float]  # of open boxes the least width
    height: Sequence[float]
    edges: Sequence[tuple[int, int]]  # between boxes that are not open
    chips: frozenset[int] = frozenset()  # each has one reader, beside which it stands
    low: frozenset[int] = frozenset()  # boxes that stand directly above what they lead to
    pins: Mapping[int, Pin] = field(default_factory=dict)  # box -> where somebody put it


@dataclass(frozen=True, slots=True)
class Layout:
    """Upper left corner and size of every box, and the path of every edge."""

    x: list[float]
    y: list[float]
    width: list[float]
    height: list[float]
    paths: list[Path]
    back: list[bool]  # edges against the flow
    entry: list[float]  # x at which edges enter each box: it stays in place when the box is opened
    total_width: float
    total_height: float


Memory = dict[Level, Placed]


def arrange(scene: Scene, memory: Memory | None = None, frame: Frame | None = None) -> Layout:
    """Lay out a scene. The same `memory`, handed in again, saves the modules that stay as they are."""
    memory = {} if memory is None else memory
    if len(memory) > _MOST_REMEMBERED:
        memory.clear()
    return _Composition(scene, memory, frame or Frame()).layout()


class _Inside:
    """The inside of one open box, or of the whole picture."""

    def __init__(self) -> None:
        self.boxes: list[int] = []
        self.edges: dict[Edge, int] = {}
        self.loops: dict[Edge, int] = {}
        self.feeds: dict[int, set[int]] = {}  # box from which an edge comes in -> places of the boxes that it feeds
        self.exits: dict[Port, int] = {}  # what is read outside -> number of its exit
        self.entry_of: dict[int, int] = {}  # box from which an edge comes in -> number of the entry
        self.entries: list[tuple[int, ...]] = []  # the places that each entry feeds
        self.inlets: list[tuple[Port, ...]] = []

    def number_entries(self) -> None:
        """One entry per distinct set of boxes that is fed; all in one if that would be many."""
        groups = {source: tuple(sorted(places)) for source, places in self.feeds.items()}
        self.entries = sorted(set(groups.values()), key=lambda places: (places[0], -len(places), places))
        if len(self.entries) > MOST_ENTRIES:
            self.entries = [tuple(sorted({place for group in self.entries for place in group}))]
            self.entry_of = dict.fromkeys(groups, 0)
            return
        number = {group: n for n, group in enumerate(self.entries)}
        self.entry_of = {source: number[group] for source, group in groups.items()}


class _Way(NamedTuple):
    """An edge, cut at the borders that it crosses."""

    source: int
    climb: list[int]  # boxes from which it leads to the border of the box around, innermost first
    exits: list[int]  # and the number of the exit there
    upper: int  # the boxes between which it runs in the level that holds both
    lower: int
    descend: list[int]  # boxes that it reaches from the border, outermost first


class _Composition:
    def __init__(self, scene: Scene, memory: Memory, frame: Frame) -> None:
        self.scene = scene
        self.memory = memory
        self.frame = frame
        count = len(scene.parent)
        self.place = [0] * count
        self.depth = [0] * count
        self.inside: dict[int, _Inside] = {-1: _Inside()}
        for box, parent in enumerate(scene.parent):
            self.depth[box] = self.depth[parent] + 1 if parent >= 0 else 0
            if scene.open[box]:
                self.inside[box] = _Inside()
            siblings = self.inside[parent].boxes
            self.place[box] = len(siblings)
            siblings.append(box)
        self.reader: dict[int, int] = {}
        self.ways = [self._way(source, target) for source, target in scene.edges]
        for inside in self.inside.values():
            inside.number_entries()
        self.middle = [self._middle(way) for way in self.ways]
        self.width, self.height = list(scene.width), list(scene.height)
        self.placed: dict[int, Placed] = {}

    # ---- edges through borders -------------------------------------------------------------------------------------

    def _way(self, source: int, target: int) -> _Way:
        parent, depth = self.scene.parent, self.depth
        upper, lower = source, target
        climb, descend = [], []
        while parent[upper] != parent[lower]:
            if depth[upper] >= depth[lower]:
                climb.append(upper)
                upper = parent[upper]
            else:
                descend.append(lower)
                lower = parent[lower]
        descend.reverse()
        outlets: list[int] = []
        exit_ = 0
        for box in climb:
            exits = self.inside[parent[box]].exits
            exit_ = exits.setdefault(Port(self.place[box], exit_), len(exits))
            outlets.append(exit_)
        for box in descend:
            self.inside[parent[box]].feeds.setdefault(source, set()).add(self.place[box])
        if source in self.scene.chips and not climb and not descend:
            self.reader[source] = target
        return _Way(source, climb, outlets, upper, lower, descend)

    def _middle(self, way: _Way) -> tuple[int, bool]:
        """Number of the edge in the level that holds both ends, and whether it leads back."""
        inside = self.inside[self.scene.parent[way.upper]]
        upper, lower = self.place[way.upper], self.place[way.lower]
        exit_ = way.exits[-1] if way.exits else 0
        entry = self.inside[way.lower].entry_of[way.source] if way.descend else 0
        leads_back = upper > lower and way.source not in self.reader
        known = inside.loops if leads_back else inside.edges
        return known.setdefault(Edge(upper, lower, exit_, entry), len(known)), leads_back

    # ---- levels ----------------------------------------------------------------------------------------------------

    def layout(self) -> Layout:
        """Innermost levels first: the size of an open box is that of what is in it."""
        frame, scene = self.frame, self.scene
        for box in range(len(scene.parent) - 1, -1, -1):
            if scene.open[box]:
                inner = self._settle(box, max(0.0, scene.width[box] - frame.left - frame.right))
                self.width[box] = inner.width + frame.left + frame.right
                self.height[box] = max(scene.height[box], inner.height + frame.before + frame.after)
        whole = self._settle(-1, 0.0)
        x, y = [0.0] * len(scene.parent), [0.0] * len(scene.parent)
        for box, parent in enumerate(scene.parent):
            placed = self.placed[parent]
            x[box], y[box] = placed.x[self.place[box]], placed.y[self.place[box]]
            if parent >= 0:
                x[box] += x[parent] + frame.left
                y[box] += y[parent] + frame.before
        paths = [self._path(way, *middle, x, y) for way, middle in zip(self.ways, self.middle, strict=True)]
        back = [leads_back for _, leads_back in self.middle]
        entry = [left + (self._ports_at(box, "entries") or (self.width[box] / 2,))[0] for box, left in enumerate(x)]
        return Layout(x, y, self.width, self.height, paths, back, entry, whole.width, whole.height)

    def _settle(self, box: int, least_width: float) -> Placed:
        inside = self.inside[box]
        inside.inlets = [self._ports(inside, number) for number in range(len(inside.entries))]
        reader = [self.place[self.reader[b]] if b in self.reader else -1 for b in inside.boxes]
        low = self.scene.low
        level = Level(
            widths=tuple([self.width[b] for b in inside.boxes]),
            heights=tuple([self.height[b] for b in inside.boxes]),
            entries=tuple([self._ports_at(b, "entries") for b in inside.boxes]),
            exits=tuple([self._ports_at(b, "exits") for b in inside.boxes]),
            edges=tuple(inside.edges),
            loops=tuple(inside.loops),
            inlets=tuple(inside.inlets),
            outlets=tuple(inside.exits),
            reader=tuple(reader),
            low=tuple([number for number, b in enumerate(inside.boxes) if b in low]) if low else (),
            least_width=least_width,
        )
        found = self.memory.get(level)
        if found is None:
            found = self.memory[level] = place(level)
        pins = {self.place[b]: pin for b, pin in self.scene.pins.items() if self.scene.parent[b] == box}
        self.placed[box] = found = apply_pins(level, found, pins) if pins else found
        return found

    def _ports(self, inside: _Inside, number: int) -> tuple[Port, ...]:
        """The ports of boxes that one entry of a module feeds."""
        found: dict[Port, None] = {}
        for place_ in inside.entries[number]:
            deeper = self.inside.get(inside.boxes[place_])
            if deeper is None:
                found[Port(place_)] = None
                continue
            for source, entry in inside.entry_of.items():
                if entry == number and source in deeper.entry_of:
                    found[Port(place_, deeper.entry_of[source])] = None
        return tuple(found)

    def _ports_at(self, box: int, side: str) -> tuple[float, ...]:
        placed = self.placed.get(box)
        if placed is None:
            return (self.width[box] / 2,)
        return tuple([x + self.frame.left for x in getattr(placed, side)])

    # ---- paths -----------------------------------------------------------------------------------------------------

    def _path(self, way: _Way, number: int, leads_back: bool, x: list[float], y: list[float]) -> Path:
        """The pieces of all levels, one after the other."""
        parent, frame = self.scene.parent, self.frame
        path: Path = []

        def add(level: int, piece: Path) -> None:
            left = x[level] + frame.left if level >= 0 else 0.0
            top = y[level] + frame.before if level >= 0 else 0.0
            for k in range(2 if path else 0, len(piece), 2):
                px, py = piece[k] + left, piece[k + 1] + top
                if path and abs(path[-2] - px) < _SAME and abs(path[-1] - py) < _SAME:
                    continue
                if len(path) >= 4 and abs(path[-2] - px) < _SAME and abs(path[-4] - px) < _SAME:
                    path[-1] = py  # straight on
                else:
                    path.append(px)
                    path.append(py)

        for box, exit_ in zip(way.climb, way.exits, strict=True):
            add(parent[box], self.placed[parent[box]].outlets[exit_])
        level = parent[way.upper]
        placed = self.placed[level]
        add(level, (placed.loops if leads_back else placed.edges)[number])
        for box in way.descend:
            level = parent[box]
            inside = self.inside[level]
            entry = inside.entry_of[way.source]
            deeper = self.inside.get(box)
            port = Port(self.place[box], deeper.entry_of[way.source] if deeper else 0)
            add(level, self.placed[level].inlets[entry][inside.inlets[entry].index(port)])
        return path

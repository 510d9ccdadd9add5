"""Places for what is in a picture, found by `endoscope.layout`, whatever the direction of the arrows.

Picture ─► Scene (nodes, frames, and a box for each text beside an edge) ─► Layout ─► turned into the direction
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from endoscope.analysis.picture import NOWHERE, Edge, Look, Node, Picture
from endoscope.analysis.picture_code import is_box
from endoscope.analysis.picture_text import Line, box_line, edge_lines, node_lines
from endoscope.layout.compose import Frame, Layout, Scene, arrange
from endoscope.layout.letters import text_width

NODE_SIZE, EDGE_SIZE, COUNT_SIZE = 10.0, 8.0, 13.0  # of letters
_LINE = 1.25  # height of a line over that of its letters
_OVAL = 1.3  # how much wider an oval is than the text in it
_HIGH_OVAL = 1.35
_TITLE, _PAD = 20.0, 9.0
LOOP = 16.0  # how far an arrow from a node to itself leads away
_MODULE_RIM = 3.0  # of the second outline of closed modules

Point = tuple[float, float]


@dataclass(slots=True)
class Item:
    """One rectangle: a node, a frame, or what is written beside an edge."""

    node: Node | None = None
    box: int = NOWHERE
    lines: Sequence[Line] = ()
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    loop_room: float = 0.0  # on both sides, for an arrow from a node to itself


@dataclass(slots=True)
class Route:
    """An edge: the points of its path, and where it is written on."""

    edge: Edge
    points: list[Point]
    label: Item | None = None
    is_chip: bool = False  # drawn as a straight line


@dataclass(frozen=True, slots=True)
class Places:
    """Frames come before what is in them."""

    items: list[Item]
    routes: list[Route]
    width: float
    height: float
    turned: bool = field(default=False)  # edges run sideways, so their curves have horizontal ends


def lay_out(picture: Picture, direction: str) -> Places:
    """`direction` says where the arrows point."""
    return _Arrangement(picture, direction).places()


class _Arrangement:
    def __init__(self, picture: Picture, direction: str) -> None:
        self.picture = picture
        self.direction = direction
        self.sideways = direction in ("left", "right")
        self.items: list[Item] = []
        self.parent: list[int] = []
        self.item_of: dict[int, int] = {}  # node -> its item
        self.texts = {number: lines for number, edge in enumerate(picture.edges) if (lines := edge_lines(edge))}
        self.labels: dict[int, int] = {}  # edge -> the item of its text
        self.chips: frozenset[int] = frozenset()
        self._collect()

    # ---- boxes -----------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Frames and nodes in the order of execution, and the texts of edges just before what they lead to."""
        children = self._children()
        rank = {key: number for number, key in enumerate(self._depth_first(children))}
        into: dict[int, list[int]] = {}
        for number in self.texts:
            edge = self.picture.edges[number]
            if rank[edge.source] < rank[edge.target]:
                into.setdefault(edge.target, []).append(number)
        nodes = self.picture.by_key
        waiting: list[tuple[bool, int, int]] = [(*child, -1) for child in reversed(children.get(NOWHERE, []))]
        while waiting:
            is_frame, key, parent = waiting.pop()
            if is_frame:
                number = self._add(self._frame(key), parent)
                waiting += [(*child, number) for child in reversed(children.get(key, []))]
                continue
            for edge_number in into.get(key, ()):
                self.labels[edge_number] = self._add(_text_item(self.texts[edge_number]), parent)
            self.item_of[key] = self._add(self._node(nodes[key]), parent)

    def _children(self) -> dict[int, list[tuple[bool, int]]]:
        """Frame -> the frames and nodes in it, in order of their first node."""
        children: dict[int, list[tuple[bool, int]]] = {}
        known: set[int] = set()
        for node in self.picture.nodes:
            box = node.box
            while box != NOWHERE and box not in known:
                known.add(box)
                around = self.picture.boxes[box].parent
                children.setdefault(around, []).append((True, box))
                box = around
            children.setdefault(node.box, []).append((False, node.key))
        return children

    @staticmethod
    def _depth_first(children: dict[int, list[tuple[bool, int]]]) -> list[int]:
        """Nodes as they will stand."""
        order = []
        waiting = children.get(NOWHERE, [])[::-1]
        while waiting:
            is_frame, key = waiting.pop()
            if is_frame:
                waiting += reversed(children.get(key, []))
            else:
                order.append(key)
        return order

    def _add(self, item: Item, parent: int) -> int:
        self.items.append(item)
        self.parent.append(parent)
        return len(self.items) - 1

    def _frame(self, key: int) -> Item:
        box = self.picture.boxes[key]
        line = box_line(box, self.picture.address_around(box.parent))
        width = line_width(line, NODE_SIZE) + 2 * _PAD
        return Item(box=key, lines=[line] if line else [], width=width)

    def _node(self, node: Node) -> Item:
        lines = node_lines(node, self.picture.address_around(node.box))
        width = max(line_width(line, NODE_SIZE) for line in lines)
        height = sum(line_height(line, NODE_SIZE) for line in lines)
        if is_box(node):
            rim = _MODULE_RIM if node.look is Look.MODULE else 0.0
            return Item(node, lines=lines, width=width + 12 + 2 * rim, height=height + 6 + 2 * rim)
        return Item(node, lines=lines, width=width * _OVAL + 10, height=height * _HIGH_OVAL + 4)

    # ---- layout ----------------------------------------------------------------------------------------------------

    def places(self) -> Places:
        edges, pieces = self._edges()
        self._leave_room_for_loops()
        self.chips = frozenset(self._chips())
        scene = Scene(
            parent=self.parent,
            open=[item.box != NOWHERE for item in self.items],
            width=[item.height if self.sideways else item.width for item in self.items],
            height=[item.width if self.sideways else item.height for item in self.items],
            edges=edges,
            chips=self.chips,
            low=frozenset(self.labels.values()),
        )
        layout = arrange(scene, frame=self._room())
        self._put(layout)
        routes = [self._route(number, pieces[number], layout) for number in range(len(self.picture.edges))]
        whole = layout.total_width, layout.total_height
        width, height = whole[::-1] if self.sideways else whole
        texts = [route.label for route in routes if route.label is not None]
        width = max([width, *(text.x + text.width for text in texts)])
        height = max([height, *(text.y + text.height for text in texts)])
        return Places(self.items, routes, width, height, self.sideways)

    def _edges(self) -> tuple[list[tuple[int, int]], list[list[int]]]:
        """Between items; an edge with a text is two, to the text and on from there."""
        edges: dict[tuple[int, int], int] = {}
        pieces = []
        for number, edge in enumerate(self.picture.edges):
            stops = [self.item_of[edge.source], self.labels.get(number, -1), self.item_of[edge.target]]
            stops = [stop for stop in stops if stop >= 0] if edge.source != edge.target else []
            pieces.append([edges.setdefault(pair, len(edges)) for pair in pairwise(stops)])
        return list(edges), pieces

    def _leave_room_for_loops(self) -> None:
        for number, edge in enumerate(self.picture.edges):
            if edge.source == edge.target:
                item = self.items[self.item_of[edge.source]]
                text = _text_item(self.texts[number]) if number in self.texts else Item()
                room = LOOP + (text.height if self.sideways else text.width)
                item.loop_room = max(item.loop_room, room)
        for item in self.items:
            if self.sideways:
                item.height += 2 * item.loop_room
            else:
                item.width += 2 * item.loop_room

    def _chips(self) -> list[int]:
        """Buffers and constants with a single reader, which stands in the same frame, stand beside it."""
        readers: dict[int, list[int]] = {}
        for number, edge in enumerate(self.picture.edges):
            readers.setdefault(edge.source, []).append(number)
        nodes = self.picture.by_key
        found = []
        for key, numbers in readers.items():
            node, reader = nodes[key], nodes[self.picture.edges[numbers[0]].target]
            alone = len(numbers) == 1 and numbers[0] not in self.labels and node.box == reader.box
            if alone and node.look in (Look.BUFFER, Look.CONSTANT):
                found.append(self.item_of[key])
        return found

    def _room(self) -> Frame:
        """Titles are always at the top of the picture."""
        if self.sideways:
            return Frame(_PAD, _PAD, _TITLE, _PAD)
        return Frame(_PAD, _TITLE, _PAD, _PAD) if self.direction == "up" else Frame(_TITLE, _PAD, _PAD, _PAD)

    # ---- turned into the direction ---------------------------------------------------------------------------------

    def _put(self, layout: Layout) -> None:
        for number, item in enumerate(self.items):
            x, y, width, height = layout.x[number], layout.y[number], layout.width[number], layout.height[number]
            if self.direction in ("up", "left"):
                y = layout.total_height - y - height
            item.x, item.y, item.width, item.height = (y, x, height, width) if self.sideways else (x, y, width, height)

    def _point(self, x: float, y: float, layout: Layout) -> Point:
        if self.direction in ("up", "left"):
            y = layout.total_height - y
        return (y, x) if self.sideways else (x, y)

    def _route(self, number: int, pieces: list[int], layout: Layout) -> Route:
        edge = self.picture.edges[number]
        if not pieces:
            return self._loop(number)
        points: list[Point] = []
        for piece in pieces:
            path = layout.paths[piece]
            points += [self._point(path[k], path[k + 1], layout) for k in range(0, len(path), 2)]
        label = self.items[self.labels[number]] if number in self.labels else None
        if label is None and number in self.texts:
            label = _text_item(self.texts[number])
            # In the middle of its lane, which is the longest piece.
            (x1, y1), (x2, y2) = max(pairwise(points), key=lambda pair: _distance(*pair))
            label.x, label.y = (x1 + x2 - label.width) / 2, (y1 + y2 - label.height) / 2
        return Route(edge, points, label, self.item_of[edge.source] in self.chips)

    def _loop(self, number: int) -> Route:
        """From a node to itself, beside it."""
        edge = self.picture.edges[number]
        item = self.items[self.item_of[edge.source]]
        label = _text_item(self.texts[number]) if number in self.texts else None
        if self.sideways:
            y = item.y + item.height - item.loop_room
            points = [(item.x + item.width * share, y) for share in (0.65, 0.35)]
        else:
            x = item.x + item.width - item.loop_room
            points = [(x, item.y + item.height * share) for share in (0.65, 0.35)]
        if label is not None:
            middle = (points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2
            label.x = middle[0] - label.width / 2 if self.sideways else middle[0] + LOOP
            label.y = middle[1] + LOOP if self.sideways else middle[1] - label.height / 2
        return Route(edge, points, label)


def _distance(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _text_item(lines: list[Line]) -> Item:
    width = max(line_width(line, EDGE_SIZE) for line in lines) + 6
    return Item(lines=lines, width=width, height=sum(line_height(line, EDGE_SIZE) for line in lines) + 2)


def line_width(line: Line, size: float) -> float:
    """Of a line as it is drawn."""
    gaps = text_width(" ", size) * 1.6 * (len(line) - 1)
    return gaps + sum(text_width(s.text, COUNT_SIZE if s.is_count else size, s.bold) for s in line)


def line_height(line: Line, size: float) -> float:
    """With the room below it."""
    return _LINE * (COUNT_SIZE if any(span.is_count for span in line) else size)

"""What a drawing of a graph shows, as plain data: nodes, edges, boxes around them.

    trace ─► Picture ─► zoom ─► absorb ─► roll ─► close ─► fold ─► DOT
                        (picture_zoom)  (…_roll) (…_close) (…_fold, …_repeats)  (dot)

Every step takes a picture and gives a simpler one, so each can be left out, and each is tested on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

NOWHERE = -1  # the box of what stands outside every box


class Look(StrEnum):
    """What a node stands for."""

    INPUT = "input"
    OUTPUT = "output"
    OPERATION = "operation"
    MODULE = "module"  # a closed module: many operations in one node
    BUFFER = "buffer"
    CONSTANT = "constant"  # a tensor that was there before
    ENTRANCE = "entrance"  # something outside the part that is drawn, from which values come
    EXIT = "exit"  # something outside the part that is drawn, to which values go


#: Nodes that compute nothing in the part that is drawn.
ENDS = frozenset({Look.INPUT, Look.OUTPUT, Look.BUFFER, Look.CONSTANT, Look.ENTRANCE, Look.EXIT})


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter or buffer that is told in the node of the operation that uses it."""

    name: str
    shape: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Node:
    """One thing to draw. Nodes of a picture stand in the order of execution."""

    key: int
    label: str
    layer: str  # the label without the pass
    look: Look = Look.OPERATION
    type: str = ""  # function of an operation, class of a module
    pass_: int = 1
    passes: int = 1  # of its layer in the trace; of the node itself once the picture is rolled
    shape: str = ""
    bytes: int = 0
    box: int = NOWHERE
    note: str = ""  # path of an input or output
    whole: str = ""  # address of the module of which this is everything, with the pass if there are several
    weights: tuple[Weight, ...] = ()
    buffers: tuple[Weight, ...] = ()
    settings: str = ""  # arguments that are no tensors, where they tell one layer from another
    dashed: bool = False  # no input leads to it
    decides: bool = False  # its value steered an `if` or the like
    rolled: bool = False  # stands for all passes
    operations: int = 1  # how many it stands for
    inner_bytes: int = 0  # of all values inside a closed module
    times: int = 1  # how many equal ones in a row it stands for
    last: str = ""  # label of the last of them

    @property
    def drawn_passes(self) -> int:
        """How many passes this node stands for."""
        return self.passes if self.rolled else 1

    @property
    def every_pass(self) -> tuple[int, ...]:
        return tuple(range(1, self.drawn_passes + 1))


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that flows, or (`control`) a decision that was followed."""

    source: int
    target: int
    argument: str = ""  # where it matters: "arg 1", "mask"
    output: str = ""  # which of several outputs of the source: "[1]"
    mark: str = ""  # IF, THEN, ...
    control: bool = False
    again: bool = False  # goes to the next of several equal blocks, of which only one is drawn
    leaves: tuple[int, ...] = ()  # passes of the source that send this; empty for all
    enters: tuple[int, ...] = ()  # passes of the target that receive this; empty for all


@dataclass(frozen=True, slots=True)
class Box:
    """A frame around nodes: one call of a module or of a custom function."""

    key: int
    parent: int
    address: str
    type: str
    pass_: int = 1
    passes: int = 1  # calls of this module in the trace
    function: bool = False
    rolled: bool = False
    times: int = 1  # how many equal ones it stands for
    last: str = ""  # address of the last of them

    @property
    def name(self) -> str:
        """Its address, with the pass where there are several and they are drawn one by one."""
        return self.address if self.rolled or self.passes == 1 else f"{self.address}:{self.pass_}"


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is to be drawn."""

    title: str
    facts: tuple[str, ...]  # lines below the title
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    boxes: Mapping[int, Box]

    @property
    def by_key(self) -> dict[int, Node]:
        return {node.key: node for node in self.nodes}

    def address_around(self, box: int) -> str:
        """Address of the nearest box that has one."""
        while box != NOWHERE:
            if self.boxes[box].address and not self.boxes[box].function:
                return self.boxes[box].address
            box = self.boxes[box].parent
        return ""

    def with_fact(self, fact: str) -> Picture:
        return replace(self, facts=(*self.facts, fact))


def path_of(boxes: Mapping[int, Box], box: int) -> tuple[int, ...]:
    """The boxes around, outermost first, with the box itself."""
    path = []
    while box != NOWHERE:
        path.append(box)
        box = boxes[box].parent
    return tuple(reversed(path))


def paths_of(picture: Picture) -> dict[int, tuple[int, ...]]:
    """`path_of` for every box that holds a node."""
    return {box: path_of(picture.boxes, box) for box in {node.box for node in picture.nodes}}


def common_box(boxes: Mapping[int, Box], inner: Iterable[int]) -> int:
    """The innermost box that holds all of the given ones."""
    common: tuple[int, ...] | None = None
    for box in set(inner):
        path = path_of(boxes, box)
        if common is None:
            common = path
        else:
            shared = 0
            while shared < min(len(common), len(path)) and common[shared] == path[shared]:
                shared += 1
            common = common[:shared]
    return common[-1] if common else NOWHERE


def occupied(picture: Picture) -> Picture:
    """The picture without boxes that hold nothing."""
    used = {box for path in paths_of(picture).values() for box in path}
    return replace(picture, boxes={key: box for key, box in picture.boxes.items() if key in used})


Passes = tuple[int, ...]
Ends = Callable[[Edge], tuple[Passes, Passes]]


def merge_edges(
    edges: Iterable[Edge], stand_in: Mapping[int, int], passes: Ends, counts: Mapping[int, int]
) -> tuple[Edge, ...]:
    """Redirect edges to the nodes that stand in for others, and make one of those that became equal.

    `passes` says for an edge in which passes it leaves and enters; where the union of these is all that `counts`
    (node -> how many there are) allows, nothing has to be written beside the edge.
    """
    found: dict[Edge, tuple[set[int], set[int], set[str]]] = {}
    for edge in edges:
        source, target = stand_in.get(edge.source, edge.source), stand_in.get(edge.target, edge.target)
        argument = edge.argument.partition("[")[0]  # members of one list are not told apart
        bare = Edge(source, target, argument, edge.output, edge.mark, edge.control, edge.again)
        known = found.setdefault(bare, (set(), set(), set()))
        leaves, enters = passes(edge)
        known[0].update(leaves)
        known[1].update(enters)
        known[2].add(edge.argument)
    return tuple(
        replace(
            edge,
            argument=next(iter(arguments)) if len(arguments) == 1 else f"{edge.argument}[…]",
            leaves=_unless_all(leaves, counts.get(edge.source, 1)),
            enters=_unless_all(enters, counts.get(edge.target, 1)),
        )
        for edge, (leaves, enters, arguments) in found.items()
    )


def _unless_all(passes: set[int], count: int) -> Passes:
    return () if len(passes) >= count else tuple(sorted(passes))


def range_text(numbers: Iterable[int]) -> str:
    """1, 2, 3, 5 -> `1-3, 5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def size_text(count: float) -> str:
    """1.6 KB."""
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"

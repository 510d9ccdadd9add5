"""From a trace to the plain data of a picture: every operation, where it stands, and what flows where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from endoscope.analysis.picture import NOWHERE, Box, Edge, Look, Node, Picture, Weight, common_box, size_text
from endoscope.analysis.structure.reach import ascend
from endoscope.capture.data.arguments import ATOMS, tensor_places
from endoscope.capture.data.nodes import Meta, slots_of
from endoscope.capture.drawing.marks import branch_edges, mark_tests, tests_of
from endoscope.capture.views.op import Op
from endoscope.capture.views.trace_views import TraceViews
from endoscope.schema.ops import Kind

_LOOKS = {
    Kind.INPUT: Look.INPUT,
    Kind.OUTPUT: Look.OUTPUT,
    Kind.BUFFER: Look.BUFFER,
    Kind.CONSTANT: Look.CONSTANT,
    Kind.COMPUTED: Look.OPERATION,
    Kind.GENERATED: Look.OPERATION,
}
_MOST_SHAPES = 3  # of an operation with several outputs

#: Operations whose tensor arguments may change places.
COMMUTATIVE = frozenset(
    """add mul multiply eq ne not_equal maximum minimum fmax fmin max min logical_and logical_or logical_xor and or xor
    bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 hypot gcd lcm dot inner isclose allclose equal
    broadcast_tensors meshgrid""".split()
)


def picture_of(trace: TraceViews) -> Picture:
    """Everything that the trace holds; nothing is left out but orphans and unused parameters."""
    return _Scene(trace).picture()


class _Scene:
    """Built once per drawing."""

    def __init__(self, trace: TraceViews) -> None:
        self.trace = trace
        self.graph = trace.graph_data
        self.tests = tests_of(trace)
        self.deciding = {node for test in self.tests for node in test.steering}
        self.boxes = _boxes(trace)
        self.weights: dict[int, Weight] = {}

    def picture(self) -> Picture:
        drawn = self._drawn()
        nodes = {op.node: self._node(op) for op in drawn}
        edges = [edge for op in drawn for edge in self._edges(op, nodes)]
        nodes |= self._sources(nodes, edges)
        order = _in_order(nodes, edges)
        edges = [*mark_tests(edges, self.tests), *branch_edges(self.tests, nodes)]
        return Picture(self.trace.name, self._facts(order), order, tuple(edges), self.boxes)

    def _drawn(self) -> list[Op]:
        """All operations, and orphans that decided something."""
        steered = ascend(self.graph.parents, self.deciding)
        extra = [node for node in self.graph.orphans if steered[node]]
        return [self.trace.op_at(node) for node in sorted([*self.graph.ops, *extra])]

    # ---- nodes -----------------------------------------------------------------------------------------------------

    def _node(self, op: Op) -> Node:
        raw, kind, look, metas = op._raw, op.kind, _LOOKS[op.kind], op.metas
        weights = tuple(self._weight(p) for p in self.graph.parents[op.node] if self._is(p, Kind.PARAMETER))
        made = look is Look.OPERATION
        return Node(
            key=op.node,
            label=op.label,
            layer=op.layer,
            look=look,
            type=str(raw.facts.type),
            pass_=op.pass_,
            passes=op.passes,
            shape=shapes_text(metas),
            bytes=sum(meta.bytes for meta in metas),
            box=self._box(raw.call) if made else NOWHERE,
            note=op.path if kind in (Kind.INPUT, Kind.OUTPUT) and op.path not in op.label else "",
            weights=weights,
            settings=_settings(raw.args, raw.kwargs) if weights else "",
            dashed=made and not self.graph.from_input[op.node],
            decides=op.node in self.deciding,
        )

    def _is(self, node: int, kind: Kind) -> bool:
        return self.graph.kinds[node] is kind

    def _box(self, call: int) -> int:
        """The innermost frame around a call; the target itself has none."""
        entries = self.trace.record.calls.entries
        while call >= 0 and call not in self.boxes:
            call = entries[call].parent
        return call if call >= 0 else NOWHERE

    def _weight(self, node: int) -> Weight:
        if node not in self.weights:
            op = self.trace.op_at(node)
            meta = op.metas[0]
            self.weights[node] = Weight(op.label, shape_text(meta.shape), meta.numel, meta.bytes)
        return self.weights[node]

    def _sources(self, nodes: dict[int, Node], edges: list[Edge]) -> dict[int, Node]:
        """Buffers and constants that somebody reads, in the innermost frame that holds all readers."""
        readers: dict[int, list[int]] = {}
        for edge in edges:
            if edge.source not in nodes:
                readers.setdefault(edge.source, []).append(nodes[edge.target].box)
        found = {}
        for node, boxes in readers.items():
            op = self.trace.op_at(node)
            found[node] = Node(
                key=node, label=op.label, layer=op.label, look=_LOOKS[op.kind], type=str(op.kind),
                shape=shapes_text(op.metas), bytes=op.bytes, box=common_box(self.boxes, boxes),
            )  # fmt: skip
        return found

    # ---- edges -----------------------------------------------------------------------------------------------------

    def _edges(self, op: Op, nodes: dict[int, Node]) -> Iterator[Edge]:
        """What flows into an operation, by argument; parameters are told in the node instead."""
        places: dict[tuple[int, str], list[str]] = {}
        for place, slot in self._reads(op):
            source = self.trace.record.slot_node[slot]
            if not self._is(source, Kind.PARAMETER):
                places.setdefault((source, self._which_output(source, slot)), []).append(place)
        for parent in self.graph.parents[op.node]:  # what was read without being an argument
            if not self._is(parent, Kind.PARAMETER) and all(source != parent for source, _ in places):
                places[parent, ""] = []
        matters = self._order_matters(op, places)
        for (source, output), found in places.items():
            argument = ", ".join([found[0], *(p.removeprefix("arg ") for p in found[1:])]) if found and matters else ""
            yield Edge(source, op.node, argument, output)

    def _reads(self, op: Op) -> Iterator[tuple[str, int]]:
        raw = op._raw
        made = op.kind in (Kind.COMPUTED, Kind.GENERATED)
        places = list(tensor_places(raw.args, raw.kwargs, "arg {}")) if made else []
        for number, read in enumerate(raw.reads):
            for slot in slots_of(read):
                yield (places[number] if number < len(places) else ""), slot

    def _which_output(self, source: int, slot: int) -> str:
        raw = self.trace.raw(source)
        position = slot - raw.slot
        return f"[{position}]" if raw.outputs > 1 and position < raw.outputs else ""

    def _order_matters(self, op: Op, places: dict[tuple[int, str], list[str]]) -> bool:
        distinct = {place for found in places.values() for place in found}
        if len(distinct) < 2 or op.kind is Kind.OUTPUT:
            return False
        raw = op._raw
        return raw.facts.type not in COMMUTATIVE or bool(raw.kwargs and "alpha" in raw.kwargs)

    # ---- corner ----------------------------------------------------------------------------------------------------

    def _facts(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        own = [node for node in nodes if node.look not in (Look.BUFFER, Look.CONSTANT)]
        tensors = sum(len(self.trace.op_at(node.key).slots) for node in own)
        metas = [self.trace.values.meta(p.slots[0]) for p in self.trace.parameters]
        return totals_text(tensors, sum(n.bytes for n in own), sum(m.numel for m in metas), sum(m.bytes for m in metas))


def totals_text(tensors: int, tensor_bytes: int, params: int, param_bytes: int) -> tuple[str, ...]:
    return (
        f"{tensors:,} tensor{'s' * (tensors != 1)} total ({size_text(tensor_bytes)})",
        f"{params:,} params total ({size_text(param_bytes)})",
    )


def _boxes(trace: TraceViews) -> dict[int, Box]:
    """Calls of modules and custom functions, by number of the call."""
    calls, passes = trace.record.calls, trace.graph_data.passes_of_calls
    counts: dict[Any, int] = {}
    for entry in calls.entries:
        key = entry.module if entry.is_function else id(entry.module)
        counts[key] = counts.get(key, 0) + 1
    boxes: dict[int, Box] = {}
    around = {-1: NOWHERE}
    for number, entry in enumerate(calls.entries):
        parent = around[entry.parent]
        address = entry.module if entry.is_function else calls.address(entry)
        if not address:
            around[number] = parent
            continue
        around[number] = number
        boxes[number] = Box(
            key=number,
            parent=parent,
            address=str(address),
            type="function" if entry.is_function else entry.type,
            pass_=passes[number],
            passes=counts[entry.module if entry.is_function else id(entry.module)],
            function=entry.is_function,
        )
    return boxes


def _in_order(nodes: dict[int, Node], edges: list[Edge]) -> tuple[Node, ...]:
    """Order of execution; buffers and constants just before their first reader."""
    place: dict[int, tuple[int, int]] = {key: (key, 1) for key in nodes}
    sources = {key for key, node in nodes.items() if node.look in (Look.BUFFER, Look.CONSTANT)}
    for edge in reversed(edges):  # the first reader comes last
        if edge.source in sources:
            place[edge.source] = (edge.target, 0)
    return tuple(nodes[key] for key in sorted(nodes, key=place.__getitem__))


# ---- text ----------------------------------------------------------------------------------------------------------


def shape_text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) if len(shape) else "scalar"


def shapes_text(metas: Sequence[Meta]) -> str:
    """5x5; several outputs with commas between, many of them shortened."""
    shapes = [shape_text(meta.shape) for meta in metas]
    if len(shapes) <= _MOST_SHAPES:
        return ", ".join(shapes)
    return f"{len(shapes)} × {shapes[0]}" if len(set(shapes)) == 1 else f"{len(shapes)} tensors: {shapes[0]}, …"


def _settings(args: Any, kwargs: Any) -> str:
    """Arguments that are no tensors, as text: two convolutions of equal shape may differ in their dilation."""
    plain = [a for a in args if a.__class__ in ATOMS or _plain(a)]
    named = {k: a for k, a in (kwargs or {}).items() if a.__class__ in ATOMS or _plain(a)}
    return f"{plain}{named}" if plain or named else ""


def _plain(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(item.__class__ in ATOMS for item in value)

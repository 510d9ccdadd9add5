"""What repeats in a trace, as the user sees it: loops in time, and what is only used again.

graph.recurrence (analysis/recurrence) ─► positions ─► Loop of Layers of Ops
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from endoscope.analysis.recurrence.tied import tied_parameters
from endoscope.capture.views.modules import Layer, changes_text
from endoscope.capture.views.op import Op, op_at
from endoscope.capture.views.trace_data import TraceData
from endoscope.schema.ops import SourceLine

_MOST_NAMED = 12  # layers


@dataclass(frozen=True, slots=True)
class Loop:
    """Layers that run again on what they made before."""

    layers: tuple[Layer, ...]  # in the order of their first pass
    passes: int  # each time it is entered; of the layer that runs most often
    parent: Loop | None  # the loop around it

    @property
    def depth(self) -> int:
        """How many loops there are around it."""
        return 0 if self.parent is None else 1 + self.parent.depth

    @property
    def ops(self) -> tuple[Op, ...]:
        """All its operations, pass after pass."""
        return tuple(sorted([op for layer in self.layers for op in layer.ops], key=lambda op: op.node))

    @property
    def source(self) -> SourceLine | None:
        """The line of its first operation."""
        return self.layers[0].ops[0].source

    def __repr__(self) -> str:
        return f"<Loop (x{self.passes}): {layers_text(self.layers)}>"

    def __str__(self) -> str:
        around = f", {self.depth} deep" if self.depth else ""
        where = f" at {self.source}" if self.source else ""
        return f"loop of {self.passes} passes{around}{where}: {layers_text(self.layers)}"


def layers_text(layers: Sequence[Layer]) -> str:
    """linear_1_1, mul_1_2 (args[1]: 1, 2, 3), …"""
    parts = []
    for layer in layers[:_MOST_NAMED]:
        changes = changes_text(layer)
        parts.append(f"{layer.label} ({changes})" if changes else layer.label)
    more = len(layers) - len(parts)
    return ", ".join(parts) + (f", … {more} more" if more else "")


def loops_of(trace: TraceData) -> tuple[Loop, ...]:
    graph = trace.graph_data
    told, layer_of = graph.recurrence.loops, graph.names.layer
    layers = _layers(trace, {layer_of[op] for loop in told for op in loop.body})
    loops: list[Loop] = []
    for loop in told:
        parts = dict.fromkeys(layer_of[op] for op in loop.body)
        parent = loops[loop.parent] if loop.parent is not None else None
        loops.append(Loop(tuple([layers[part] for part in parts]), loop.passes, parent))
    return tuple(loops)


def reused_in(trace: TraceData) -> list[Layer]:
    """Layers that run several times but in no loop, then parameters that several layers compute with."""
    graph = trace.graph_data
    recurrence, layer_of = graph.recurrence, graph.names.layer
    again = {layer_of[op] for op, key in enumerate(recurrence.keys) if key in recurrence.reused}
    found = list(_layers(trace, again).values())
    for parameter, ops in tied_parameters(recurrence.facts, layer_of).items():
        readers = tuple([op_at(trace, graph.ops[op]) for op in ops])
        found.append(Layer(trace.labels[parameter][0], readers))
    return found


def _layers(trace: TraceData, wanted: Iterable[int]) -> Mapping[int, Layer]:
    """By number, in the order of their first pass."""
    graph = trace.graph_data
    ops: dict[int, list[Op]] = {number: [] for number in sorted(wanted)}
    for node, number in zip(graph.ops, graph.names.layer, strict=True):
        if number in ops:
            ops[number].append(op_at(trace, node))
    return {number: Layer(graph.names.label[number], tuple(passes)) for number, passes in ops.items()}

"""What a trace is made of, by number: the record, what was derived from it, and the look-ups.

`op.py` and the other views show it with operations in the place of numbers; `result.Trace` is the whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from endoscope.analysis.branching.branches import Decision
from endoscope.analysis.structure.reach import children_of
from endoscope.capture.data.arguments import map_arguments
from endoscope.capture.data.nodes import Node, slots_of
from endoscope.capture.data.record import Record, Values
from endoscope.capture.views.asked import conditions_by_node, decisions_by_node, left_for_python
from endoscope.capture.views.assemble import Graph, assemble
from endoscope.capture.views.lookup import Keys
from endoscope.schema.ops import Kind, Notice

if TYPE_CHECKING:
    from endoscope.capture.record.recorder import Recorder
    from endoscope.capture.record.values import TensorStore

T = TypeVar("T")


class sealed_property(Generic[T]):
    """Computed once the traced code has ended, anew before: a running trace can be looked at, too."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, trace: Any, owner: Any = None) -> T:
        if trace is None:
            return self  # type: ignore[return-value]
        found = self.function(trace)
        if trace.sealed:
            trace.__dict__[self.name] = found
        return found


class TraceData:
    """Everything by node number (order of execution) and slot number (order of creation)."""

    def __init__(self, record: Record, values: Values, name: str) -> None:
        self.record = record
        self.name = name  # class of the target, or name of the function
        self.sealed = False  # nothing more will be recorded
        self.learned: Set[int] | None = None  # constants and inputs that can learn
        self.values = values
        self.views: dict[int, weakref.ref[Any]] = {}  # node -> the operation that stands for it, while it is used

    @sealed_property
    def graph_data(self) -> Graph:
        return assemble(self.record, self.record.learned() if self.learned is None else self.learned)

    @sealed_property
    def labels(self) -> dict[int, tuple[str, str, int]]:
        """Node -> label, layer, pass."""
        graph, names = self.graph_data, self.graph_data.names
        found: dict[int, tuple[str, str, int]] = {}
        for node, layer, pass_ in zip(graph.ops, names.layer, names.pass_, strict=True):
            label = names.label[layer]
            found[node] = (f"{label}:{pass_}" if names.passes[layer] > 1 else label, label, pass_)
        counts: dict[str, int] = {}
        orphans = {node: "orphan_" + self.raw(node).facts.type for node in graph.orphans}
        sources = {n: source.name or str(source.kind) for n, source in self.record.sources.items() if n not in found}
        for node, stem in (orphans | sources).items():
            counts[stem] = number = counts.get(stem, 0) + 1
            named = node in self.record.sources and self.record.sources[node].name
            label = stem if named and number == 1 else f"{stem}_{number}"
            found[node] = (label, label, 1)
        return found

    @sealed_property
    def children(self) -> list[list[int]]:
        return children_of(self.graph_data.parents)

    @sealed_property
    def keys(self) -> Keys:
        return Keys(self.graph_data, self.labels, self.record)

    @sealed_property
    def caches(self) -> dict[str, Any]:
        """What graphs have worked out; a graph itself, kept here, would hold the trace in a circle."""
        return {}

    @property
    def recorder(self) -> Recorder:
        """What holds functions, modules and tensors themselves; says what to type where a trace has none."""
        found: Recorder = self.record.live(self).record
        return found

    @property
    def store(self) -> TensorStore:
        """The values as such a recorder holds them."""
        found: TensorStore = self.record.live(self).values
        return found

    def raw(self, node: int) -> Node:
        """The node as it was recorded."""
        return self.record.nodes[node]

    def of_kind(self, kind: Kind) -> list[int]:
        """The sources of one kind."""
        return [node for node, source in self.record.sources.items() if source.kind is kind]

    @sealed_property
    def decisions_by_node(self) -> list[Decision[int]]:
        if self.record.decisions is not None:
            return self.record.decisions
        return decisions_by_node(self.record, self.graph_data) if self.record.departures else []

    @sealed_property
    def conditions_by_node(self) -> list[int]:
        """Nodes whose value decided an `if`, `while` or the like."""
        numbers = any(not left.control for left in self.record.departures)
        return conditions_by_node(self.record, self.decisions_by_node if numbers else [])

    @sealed_property
    def warnings(self) -> tuple[Notice, ...]:
        """What could not be seen."""
        numbers = any(not left.control for left in self.record.departures)
        left = left_for_python(self.record, self.graph_data, self.decisions_by_node) if numbers else []
        return (*self.record.notices, *left)

    def returned_sequence(self, node: int) -> bool:
        """The function returned a list or tuple, even if only one tensor was in it."""
        return node in self.record.sequences

    def arguments_with(self, node: int, make: Callable[[tuple[int, ...]], Any]) -> tuple[Any, Any]:
        """Arguments of a call with each tensor replaced by `make(shape)`."""
        raw = self.raw(node)
        reads = list(raw.reads)

        def replace(tensor: Any) -> Any:
            slots = slots_of(reads.pop(0)) if reads else ()
            shape = self.values.shape_of(tensor)
            if shape is None and slots:
                shape = tuple(self.values.meta(slots[0]).shape)
            return None if shape is None else make(shape)

        return map_arguments(tuple(raw.args), replace), map_arguments(raw.kwargs or {}, replace)

    def seal(self) -> None:
        """The traced code has ended: from now on what is derived is kept."""
        self.sealed = True
        self.views.clear()
        self.learned = self.record.learned()  # now: later such a tensor may be gone or frozen

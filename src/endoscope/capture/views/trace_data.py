"""What a trace is made of, by number: the recorder, what was derived from it, and the look-ups.

`op.py` and the other views show it with operations in the place of numbers; `result.Trace` is the whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Set
from typing import Any, Generic, TypeVar

import torch

from endoscope.analysis.branching.branches import Decision
from endoscope.analysis.structure.reach import children_of
from endoscope.capture.record.leaves import map_arguments
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.records import Meta, Node, meta_of, slots_of
from endoscope.capture.views.asked import conditions_by_node, decisions_by_node, left_for_python
from endoscope.capture.views.assemble import Graph, assemble
from endoscope.capture.views.facts import learned_tensors
from endoscope.capture.views.lookup import Keys
from endoscope.capture.views.values import TensorStore
from endoscope.schema.ops import Kind, Notice

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

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder = recorder
        self.name = name  # class of the target, or name of the function
        self.sealed = False  # nothing more will be recorded
        self.learned: Set[int] | None = None  # constants and inputs that can learn; see `learned_tensors`
        self.values = TensorStore(recorder)
        self.views: dict[int, weakref.ref[Any]] = {}  # node -> the operation that stands for it, while it is used

    @sealed_property
    def graph_data(self) -> Graph:
        return assemble(self.recorder, learned_tensors(self.recorder) if self.learned is None else self.learned)

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
        sources = {n: source.name or str(source.kind) for n, source in self.recorder.sources.items() if n not in found}
        for node, stem in (orphans | sources).items():
            counts[stem] = number = counts.get(stem, 0) + 1
            named = node in self.recorder.sources and self.recorder.sources[node].name
            label = stem if named and number == 1 else f"{stem}_{number}"
            found[node] = (label, label, 1)
        return found

    @sealed_property
    def children(self) -> list[list[int]]:
        return children_of(self.graph_data.parents)

    @sealed_property
    def keys(self) -> Keys:
        return Keys(self.graph_data, self.labels, self.recorder)

    @sealed_property
    def caches(self) -> dict[str, Any]:
        """What graphs have worked out; a graph itself, kept here, would hold the trace in a circle."""
        return {}

    def raw(self, node: int) -> Node:
        """The node as it was recorded."""
        return self.recorder.nodes[node]

    def of_kind(self, kind: Kind) -> list[int]:
        """The sources of one kind."""
        return [node for node, source in self.recorder.sources.items() if source.kind is kind]

    @sealed_property
    def decisions_by_node(self) -> list[Decision[int]]:
        return decisions_by_node(self.recorder, self.graph_data) if self.recorder.departures else []

    @sealed_property
    def conditions_by_node(self) -> list[int]:
        """Nodes whose value decided an `if`, `while` or the like."""
        numbers = any(not left.control for left in self.recorder.departures)
        return conditions_by_node(self.recorder, self.decisions_by_node if numbers else [])

    @sealed_property
    def warnings(self) -> tuple[Notice, ...]:
        """What could not be seen."""
        numbers = any(not left.control for left in self.recorder.departures)
        left = left_for_python(self.recorder, self.graph_data, self.decisions_by_node) if numbers else []
        return (*self.recorder.notices, *left)

    def returned_sequence(self, node: int) -> bool:
        """The function returned a list or tuple, even if only one tensor was in it."""
        return node in self.recorder.sequences

    def arguments_with(self, node: int, make: Callable[[Meta], Any]) -> tuple[Any, Any]:
        """Arguments of a call with each tensor replaced by `make(meta)`."""
        raw = self.raw(node)
        reads = list(raw.reads)

        def replace(tensor: Any) -> Any:
            slots = slots_of(reads.pop(0)) if reads else ()
            if isinstance(tensor, torch.Tensor):
                return make(meta_of(tensor))
            return make(self.values.meta(slots[0])) if slots else None

        return map_arguments(tuple(raw.args), replace), map_arguments(raw.kwargs or {}, replace)

    def seal(self) -> None:
        """The traced code has ended: from now on what is derived is kept."""
        self.sealed = True
        self.views.clear()
        self.learned = learned_tensors(self.recorder)  # now: later such a tensor may be gone or frozen

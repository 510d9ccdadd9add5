"""The less common facts about an operation, in four groups. `docs/reference/metadata.md` maps the paper's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from endoscope.analysis.structure.reach import ascend, descend, distances, reverse
from endoscope.capture.data.arguments import TENSOR, map_arguments
from endoscope.capture.data.calls import OUTSIDE, Call
from endoscope.capture.data.functions import RUNNING_STATISTICS, Role
from endoscope.capture.data.nodes import Meta, Node, slots_of
from endoscope.capture.views.assemble import Graph
from endoscope.capture.views.trace_data import TraceData
from endoscope.schema.ops import Kind

Op = TypeVar("Op")


@dataclass(frozen=True, slots=True, repr=False)
class _Group(Generic[Op]):
    """Facts about one node; other operations are given as `op_at(node)`."""

    _trace: TraceData
    _node: int
    _op_at: Callable[[int], Op]

    @property
    def _raw(self) -> Node:
        return self._trace.raw(self._node)

    @property
    def _graph(self) -> Graph:
        return self._trace.graph_data

    def _ops(self, nodes: Iterable[int]) -> tuple[Op, ...]:
        return tuple(map(self._op_at, nodes))


class FunctionCall(_Group[Op]):
    """How an operation was called."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The function's own name: `add_` where `op.type` says `add`."""
        return self._raw.facts.name

    @property
    def func(self) -> Any:
        """The function itself; a file holds only its name, see `endoscope.load(path, model=...)`."""
        return None if self._raw.func is None else self._trace.recorder.nodes[self._node].func

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments; tensors as the operations that made them."""
        return self._arguments()[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._arguments()[1]

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        reads, slot_node = list(self._raw.reads), self._trace.record.slot_node

        def operation(_: Any) -> Any:
            slots = slots_of(reads.pop(0)) if reads else ()
            return self._op_at(slot_node[slots[-1]]) if slots else TENSOR

        return map_arguments(tuple(self._raw.args), operation), map_arguments(self._raw.kwargs or {}, operation)

    @property
    def plain_args(self) -> tuple[Any, ...]:
        """Positional arguments that are no tensors."""
        return tuple(a for a in self._raw.args if not _holds_tensor(a))

    @property
    def plain_kwargs(self) -> dict[str, Any]:
        return {k: a for k, a in (self._raw.kwargs or {}).items() if not _holds_tensor(a)}

    @property
    def in_place(self) -> bool:
        """It overwrote a tensor that existed before."""
        raw = self._raw
        if (raw.kwargs or {}).get("out") is not None:
            return True
        return raw.facts.role == Role.WRITE and raw.facts.name not in RUNNING_STATISTICS

    @property
    def random_state(self) -> Any:
        """State of the random generator before the call, for operations that draw from it."""
        return self._trace.values.random_state(self._node)

    @property
    def grad_fn(self) -> str | None:
        """Name of the backward function."""
        return self._trace.values.meta(self._raw.slot).grad_fn if self._raw.outputs else None

    @property
    def several_outputs(self) -> bool:
        return self._trace.returned_sequence(self._node)

    @property
    def autocast(self) -> tuple[tuple[str, Any], ...]:
        return self._raw.context or ()

    @property
    def grad_enabled(self) -> bool:
        return self._raw.grad


def _holds_tensor(value: Any) -> bool:
    found: list[Any] = []
    map_arguments(value, found.append)
    return bool(found)


class Relations(_Group[Op]):
    """Where an operation stands in the graph."""

    __slots__ = ()

    def _marked(self, marks: bytearray) -> list[int]:
        return [n for n, mark in enumerate(marks) if mark and n != self._node]

    def _above(self) -> list[int]:
        return self._marked(ascend(self._graph.parents, [self._node]))

    def _below(self) -> list[int]:
        return self._marked(descend(self._graph.parents, [self._node]))

    def _of_kind(self, nodes: Iterable[int], kind: Kind) -> tuple[Op, ...]:
        return self._ops(node for node in nodes if self._graph.kinds[node] is kind)

    @property
    def ancestors(self) -> tuple[Op, ...]:
        return self._ops(self._above())

    @property
    def descendants(self) -> tuple[Op, ...]:
        return self._ops(self._below())

    @property
    def origins(self) -> tuple[Op, ...]:
        """Ancestors that have no parents themselves."""
        return self._ops(node for node in self._above() if not self._graph.parents[node])

    @property
    def siblings(self) -> tuple[Op, ...]:
        """Operations that share a parent."""
        parents, children = self._graph.parents, self._trace.children
        return self._others(child for parent in parents[self._node] for child in children[parent])

    @property
    def spouses(self) -> tuple[Op, ...]:
        """Operations that share a child."""
        parents, children = self._graph.parents, self._trace.children
        return self._others(parent for child in children[self._node] for parent in parents[child])

    def _others(self, nodes: Iterable[int]) -> tuple[Op, ...]:
        return self._ops(dict.fromkeys(node for node in nodes if node != self._node))

    @property
    def from_input(self) -> bool:
        return bool(self._graph.from_input[self._node])

    @property
    def to_output(self) -> bool:
        return bool(self._graph.to_output[self._node])

    @property
    def outputs(self) -> tuple[Op, ...]:
        """Outputs of the target that depend on it."""
        return self._of_kind(self._below(), Kind.OUTPUT)

    @property
    def distance_from_input(self) -> tuple[int, int] | None:
        """Fewest and most operations between an input and this one; None if no input leads here."""
        return _span(self._graph.parents, self._trace.of_kind(Kind.INPUT), self._node)

    @property
    def distance_to_output(self) -> tuple[int, int] | None:
        last = len(self._graph.parents) - 1
        outputs = [last - node for node in self._trace.of_kind(Kind.OUTPUT)]
        return _span(reverse(self._graph.parents), outputs, last - self._node)

    @property
    def generated_parents(self) -> tuple[Op, ...]:
        return self._of_kind(self._graph.parents[self._node], Kind.GENERATED)

    @property
    def generated_ancestors(self) -> tuple[Op, ...]:
        return self._of_kind(self._above(), Kind.GENERATED)

    @property
    def ends_inside(self) -> bool:
        """Nothing uses it and it is no output."""
        return not self._trace.children[self._node] and self._graph.kinds[self._node] is not Kind.OUTPUT

    @property
    def is_condition(self) -> bool:
        """Its value decided an `if`, `while` or the like."""
        return self._node in self._trace.conditions_by_node

    @property
    def in_condition(self) -> bool:
        """It only serves to compute such a value."""
        above = ascend(self._graph.parents, self._trace.conditions_by_node)
        return self.is_condition or (not self.to_output and bool(above[self._node]))


def _span(parents: Any, starts: list[int], node: int) -> tuple[int, int] | None:
    nearest, farthest = distances(parents, starts)
    low, high = nearest[node], farthest[node]
    return None if low is None or high is None else (low, high)


class Place(_Group[Op]):
    """Where an operation stands in the modules."""

    __slots__ = ()

    @property
    def modules(self) -> tuple[str, ...]:
        """Like `op.modules`, with the pass of each module: `encoder.2:1`."""
        around = self._trace.record.calls.modules_around(self._raw.call)
        return tuple(f"{address}:{pass_}" for address, pass_ in around)

    @property
    def module(self) -> str | None:
        """The innermost module, None outside every module."""
        around = self._trace.record.calls.path(self._raw.call)
        return around[-1] if around else None

    @property
    def entered(self) -> tuple[str, ...]:
        """Module calls that took its value as an argument: `encoder.2:1`."""
        own = set(self._raw.returned)
        return self._calls(lambda call: not own.isdisjoint(call.entered))

    @property
    def left(self) -> tuple[str, ...]:
        """Module calls that returned its value."""
        own = set(self._raw.returned)
        return self._calls(lambda call: any(not own.isdisjoint(slots_of(read)) for read in call.returned))

    def _calls(self, concerns: Callable[[Call], bool]) -> tuple[str, ...]:
        calls = self._trace.record.calls
        return tuple(f"{address}:{pass_}" for address, pass_, call in calls.module_calls() if concerns(call))

    @property
    def is_module_output(self) -> bool:
        return bool(self.left)

    @property
    def is_whole_module(self) -> bool:
        """It is all that its innermost module does; a counter on the side, as in batch norm, does not count."""
        calls, own = self._trace.record.calls, self._raw.call
        if own == OUTSIDE or calls.entries[own].is_function or not calls.path(own):
            return False
        first, last = calls.entries[own].first_node, calls.entries[own].last_node
        inside = range(first, first if last is None else last)
        sources, orphans = self._trace.record.sources, set(self._graph.orphans)
        return [node for node in inside if node not in sources and node not in orphans] == [self._node]


class ParameterUse(_Group[Op]):
    """Parameters that an operation reads directly."""

    __slots__ = ()

    @property
    def _nodes(self) -> list[int]:
        return [node for node in self._graph.parents[self._node] if self._graph.kinds[node] is Kind.PARAMETER]

    @property
    def _metas(self) -> list[Meta]:
        return [self._trace.values.meta(self._trace.raw(node).slot) for node in self._nodes]

    @property
    def ops(self) -> tuple[Op, ...]:
        return self._ops(self._nodes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._trace.labels[node][0] for node in self._nodes)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(meta.shape) for meta in self._metas)

    @property
    def count(self) -> int:
        """How many numbers."""
        return sum(meta.numel for meta in self._metas)

    @property
    def bytes(self) -> int:
        return sum(meta.bytes for meta in self._metas)

    def __len__(self) -> int:
        return len(self._nodes)

"""The less common facts about an operation, in four groups. `docs/reference/metadata.md` maps the paper's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from endoscope.analysis.reach import ascend, descend, distances, reverse
from endoscope.capture.calls import Call
from endoscope.capture.functions import RUNNING_STATISTICS, Role
from endoscope.capture.leaves import TENSOR, map_arguments
from endoscope.capture.records import slots_of
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.op import Op


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """How an operation was called."""

    op: Op

    @property
    def name(self) -> str:
        """The function's own name: `add_` where `op.type` says `add`."""
        return str(self.op._raw.facts.name)

    @property
    def func(self) -> Any:
        return self.op._raw.func

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments; tensors as the operations that made them."""
        return self._arguments()[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._arguments()[1]

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        reads, trace = list(self.op._raw.reads), self.op._trace

        def operation(_: Any) -> Any:
            read = reads.pop(0) if reads else -1
            slot = read if isinstance(read, int) else read[-1]
            return trace.op_at(trace.recorder.slot_node[slot]) if slot >= 0 else TENSOR

        return map_arguments(tuple(self.op._raw.args), operation), map_arguments(self.op._raw.kwargs or {}, operation)

    @property
    def plain_args(self) -> tuple[Any, ...]:
        """Positional arguments that are no tensors."""
        return tuple(a for a in self.op._raw.args if not _holds_tensor(a))

    @property
    def plain_kwargs(self) -> dict[str, Any]:
        return {k: a for k, a in (self.op._raw.kwargs or {}).items() if not _holds_tensor(a)}

    @property
    def in_place(self) -> bool:
        """It overwrote a tensor that existed before."""
        raw = self.op._raw
        if (raw.kwargs or {}).get("out") is not None:
            return True
        return raw.facts.role == Role.WRITE and raw.facts.name not in RUNNING_STATISTICS

    @property
    def random_state(self) -> torch.Tensor | None:
        """State of the random generator before the call, for operations that draw from it."""
        entry = self.op._trace.recorder.rng.get(self.op.node)
        return entry[1] if entry else None

    @property
    def grad_fn(self) -> str | None:
        """Name of the backward function."""
        metas = self.op.metas
        return metas[0].grad_fn if metas else None

    @property
    def several_outputs(self) -> bool:
        return self.op._trace.returned_sequence(self.op.node)

    @property
    def autocast(self) -> tuple[tuple[str, torch.dtype], ...]:
        return self.op._raw.context or ()

    @property
    def grad_enabled(self) -> bool:
        return bool(self.op._raw.grad)


def _holds_tensor(value: Any) -> bool:
    found: list[Any] = []
    map_arguments(value, found.append)
    return bool(found)


@dataclass(frozen=True, slots=True)
class Relations:
    """Where an operation stands in the graph."""

    op: Op

    def _ops(self, nodes: Any) -> tuple[Op, ...]:
        return tuple(self.op._trace.op_at(n) for n in nodes)

    def _marked(self, marks: bytearray) -> list[int]:
        return [n for n, mark in enumerate(marks) if mark and n != self.op.node]

    @property
    def ancestors(self) -> tuple[Op, ...]:
        return self._ops(self._marked(ascend(self.op._trace.graph_data.parents, [self.op.node])))

    @property
    def descendants(self) -> tuple[Op, ...]:
        return self._ops(self._marked(descend(self.op._trace.graph_data.parents, [self.op.node])))

    @property
    def origins(self) -> tuple[Op, ...]:
        """Ancestors that have no parents themselves."""
        return tuple(op for op in self.ancestors if not op.parents)

    @property
    def siblings(self) -> tuple[Op, ...]:
        """Operations that share a parent."""
        graph, children = self.op._trace.graph_data, self.op._trace.children
        found = {c: None for p in graph.parents[self.op.node] for c in children[p] if c != self.op.node}
        return self._ops(found)

    @property
    def spouses(self) -> tuple[Op, ...]:
        """Operations that share a child."""
        graph, children = self.op._trace.graph_data, self.op._trace.children
        found = {p: None for c in children[self.op.node] for p in graph.parents[c] if p != self.op.node}
        return self._ops(found)

    @property
    def from_input(self) -> bool:
        return bool(self.op._trace.graph_data.from_input[self.op.node])

    @property
    def to_output(self) -> bool:
        return bool(self.op._trace.graph_data.to_output[self.op.node])

    @property
    def outputs(self) -> tuple[Op, ...]:
        """Outputs of the target that depend on it."""
        return tuple(op for op in self.descendants if op.kind == Kind.OUTPUT)

    @property
    def distance_from_input(self) -> tuple[int, int] | None:
        """Fewest and most operations between an input and this one; None if no input leads here."""
        return self._distance(upwards=False)

    @property
    def distance_to_output(self) -> tuple[int, int] | None:
        return self._distance(upwards=True)

    def _distance(self, upwards: bool) -> tuple[int, int] | None:
        trace = self.op._trace
        parents: Any = trace.graph_data.parents
        last = len(parents) - 1
        if upwards:
            nearest, farthest = distances(reverse(parents), [last - op.node for op in trace.outputs])
            low, high = nearest[last - self.op.node], farthest[last - self.op.node]
        else:
            nearest, farthest = distances(parents, [op.node for op in trace.inputs])
            low, high = nearest[self.op.node], farthest[self.op.node]
        return None if low is None or high is None else (low, high)

    @property
    def generated_parents(self) -> tuple[Op, ...]:
        return tuple(op for op in self.op.parents if op.kind == Kind.GENERATED)

    @property
    def generated_ancestors(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ancestors if op.kind == Kind.GENERATED)

    @property
    def ends_inside(self) -> bool:
        """Nothing uses it and it is no output."""
        return not self.op.children and self.op.kind != Kind.OUTPUT

    @property
    def is_condition(self) -> bool:
        """Its value decided an `if`, `while` or the like."""
        return self.op in self.op._trace.conditions

    @property
    def in_condition(self) -> bool:
        """It only serves to compute such a value."""
        if self.is_condition:
            return True
        conditions = [op.node for op in self.op._trace.conditions]
        return (not self.to_output) and bool(ascend(self.op._trace.graph_data.parents, conditions)[self.op.node])


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation stands in the modules."""

    op: Op

    @property
    def modules(self) -> tuple[str, ...]:
        """Like `op.modules`, with the pass of each module: `encoder.2:1`."""
        calls, passes = self.op._trace.recorder.calls, self.op._trace.graph_data.passes_of_calls
        found, call = [], self.op._raw.call
        while call >= 0:
            entry = calls.entries[call]
            if not entry.is_function and calls.address(entry):
                found.append(f"{calls.address(entry)}:{passes[call]}")
            call = entry.parent
        return tuple(reversed(found))

    @property
    def module(self) -> str | None:
        """The innermost module, None outside every module."""
        return self.op.modules[-1] if self.op.modules else None

    @property
    def entered(self) -> tuple[str, ...]:
        """Module calls that took its value as an argument: `encoder.2:1`."""
        own = set(self.op.slots)
        return self._calls(lambda call: not own.isdisjoint(call.entered))

    @property
    def left(self) -> tuple[str, ...]:
        """Module calls that returned its value."""
        own = set(self.op.slots)
        return self._calls(lambda call: any(not own.isdisjoint(slots_of(read)) for read in call.returned))

    def _calls(self, concerns: Callable[[Call], bool]) -> tuple[str, ...]:
        calls = self.op._trace.recorder.calls
        return tuple(f"{address}:{pass_}" for address, pass_, call in calls.module_calls() if concerns(call))

    @property
    def is_module_output(self) -> bool:
        return bool(self.left)

    @property
    def is_whole_module(self) -> bool:
        """It is all that its innermost module does."""
        calls, own = self.op._trace.recorder.calls.entries, self.op._raw.call
        if own < 0 or calls[own].is_function or not self.op.modules:
            return False
        entry = calls[own]
        inside = range(entry.first_node, entry.last_node)
        made = [n for n in inside if n not in self.op._trace.recorder.sources]
        return made == [self.op.node]


@dataclass(frozen=True, slots=True)
class ParameterUse:
    """Parameters that an operation reads directly."""

    op: Op

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(p for p in self.op.parents if p.kind == Kind.PARAMETER)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.label for p in self.ops)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(p.shape for p in self.ops)

    @property
    def count(self) -> int:
        """How many numbers."""
        return sum(meta.numel for p in self.ops for meta in p.metas)

    @property
    def bytes(self) -> int:
        return sum(p.bytes for p in self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def __bool__(self) -> bool:
        return bool(self.ops)

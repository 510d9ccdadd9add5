"""Totals and times of a whole trace."""

from __future__ import annotations

from dataclasses import dataclass

from endoscope.capture.views.op import ops_at
from endoscope.capture.views.trace_data import TraceData
from endoscope.schema.ops import Kind


@dataclass(slots=True)
class Timing:
    """When and how long; seconds. `started` and `ended` are wall-clock times since the epoch."""

    started: float = 0.0
    ended: float = 0.0
    run: float = 0.0  # the traced code, with our recording
    ops: float = 0.0  # inside torch functions only

    @property
    def listening(self) -> float:
        """Everything that was not spent inside torch functions: Python of the model, and us."""
        return max(self.run - self.ops, 0.0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts and sizes; sizes in bytes."""

    tensors: int  # values of inputs, operations and outputs
    tensor_bytes: int
    kept: int
    kept_bytes: int
    parameter_tensors: int
    parameter_ops: int  # operations that use parameters
    parameters: int  # numbers in all parameters of the target
    parameter_bytes: int
    modules: int  # without the target itself
    flops: int  # of all operations whose count is known


def totals_of(trace: TraceData) -> Totals:
    graph, ops = trace.graph_data, ops_at(trace, trace.graph_data.ops)
    kept = [op for op in ops if op.kept]
    metas = [trace.values.meta(trace.raw(node).slot) for node in trace.of_kind(Kind.PARAMETER)]
    using = [op for op in ops if any(graph.kinds[parent] is Kind.PARAMETER for parent in graph.parents[op.node])]
    return Totals(
        tensors=sum(len(op.slots) for op in ops),
        tensor_bytes=sum(op.bytes for op in ops),
        kept=sum(len(op.slots) for op in kept),
        kept_bytes=sum(op.bytes for op in kept),
        parameter_tensors=len(metas),
        parameter_ops=len(using),
        parameters=sum(m.numel for m in metas),
        parameter_bytes=sum(m.bytes for m in metas),
        modules=sum(1 for address, _ in trace.record.calls.addresses.values() if address),
        flops=sum(op.flops or 0 for op in ops),
    )

"""Totals and times of a whole trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.capture.result import Trace


@dataclass(slots=True)
class Timing:
    """When and how long; seconds. `started` and `ended` are wall-clock times since the epoch."""

    started: float = 0.0
    ended: float = 0.0
    run: float = 0.0  # the traced code, with our listening
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

    @staticmethod
    def of(trace: Trace) -> Totals:
        ops = list(trace.ops)
        kept = [op for op in ops if op.kept]
        metas = [trace.values.meta(p.slots[0]) for p in trace.parameters]
        kinds, parents = trace.graph_data.kinds, trace.graph_data.parents
        using = [op for op in ops if any(kinds[p] is Kind.PARAMETER for p in parents[op.node])]
        return Totals(
            tensors=sum(len(op.slots) for op in ops),
            tensor_bytes=sum(op.bytes for op in ops),
            kept=sum(len(op.slots) for op in kept),
            kept_bytes=sum(op.bytes for op in kept),
            parameter_tensors=len(metas),
            parameter_ops=len(using),
            parameters=sum(m.numel for m in metas),
            parameter_bytes=sum(m.bytes for m in metas),
            modules=sum(1 for m in trace.modules if m.address),
            flops=sum(op.flops or 0 for op in ops),
        )


def size_text(count: float) -> str:
    """1.6 KB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError

"""Traces of real models, and ways to falsify what they say.

Every fault is planted in the recorder's own data, behind everything that derives from it. Values are frozen first,
so that a corrupted value is that of one operation and not also that of its views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.capture.data.nodes import Source
from endoscope.capture.record.records import SOURCE
from endoscope.capture.views.trace_data import sealed_property
from endoscope.schema.ops import Kind
from tests.models import Mlp


class NormedConvNet(nn.Module):
    """Batch norm in training mode: statistics are written on the side."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x)))
        return self.head(x.mean((2, 3)))


class InPlace(nn.Module):
    """Rows written one by one, read whole and in part; what it returns was written by several operations."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        first, last = y[0], y[2]
        first.add_(10)
        last.mul_(3)
        total = y.sum() + first.exp().sum()
        y[1] = total
        y[0].neg_()
        return total, y


def transformer() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (Mlp, (3, 5)),
    "conv": (NormedConvNet, (4, 1, 5, 5)),
    "inplace": (InPlace, (3, 4)),
    "transformer": (transformer, (2, 3, 8)),
}


def traced(name: str) -> Any:
    """A fresh trace with private values."""
    torch.manual_seed(5)
    make, shape = MODELS[name]
    return endoscope.trace(make(), torch.rand(shape)).freeze()


def refresh(trace: Any) -> None:
    """Forget everything that was derived from the recorder's data."""
    for name in [name for name in vars(trace) if isinstance(getattr(type(trace), name, None), sealed_property)]:
        del vars(trace)[name]
    trace.views.clear()


def computed(trace: Any) -> list[Any]:
    return [op for op in trace.ops if op.kind in ("computed", "generated")]


def falsify(trace: Any, op: Any, **fields: Any) -> None:
    """Replace fields of what was recorded about an operation."""
    trace.recorder.nodes[op.node] = trace.raw(op.node)._replace(**fields)
    refresh(trace)


def corrupt(trace: Any, slot: int, index: tuple[int, ...]) -> tuple[Any, Any]:
    """Change one element of one kept value; returns the wrong and the right number."""
    value = trace.recorder.kept[slot]
    right = value[index].item()
    value[index] = (not right) if value.dtype is torch.bool else right + 1 + float(value.abs().max())
    return value[index].item(), right


def drop_read(trace: Any, op: Any, position: int) -> None:
    reads = list(trace.raw(op.node).reads)
    del reads[position]
    falsify(trace, op, reads=reads)


def redirect(trace: Any, op: Any, position: int, slot: Any) -> None:
    reads = list(trace.raw(op.node).reads)
    reads[position] = slot
    falsify(trace, op, reads=reads)


def pretend_constant(trace: Any, op: Any) -> None:
    """As if the operation had not been recorded: its result comes from nowhere."""
    trace.recorder.sources[op.node] = Source(Kind.CONSTANT, "", -1)
    falsify(trace, op, facts=SOURCE[Kind.CONSTANT], func=None, args=(), kwargs=None, reads=[])


def remove(trace: Any, op: Any) -> None:
    """Take the operation out of the record; whoever read it seems to have read its first parent."""
    recorder, gone = trace.recorder, op.node
    bypass = trace.raw(gone).reads[0]
    slots = range(op.slots.start, op.slots.stop)

    def instead(read: Any) -> Any:
        return bypass if isinstance(read, int) and read in slots else read

    recorder.nodes[:] = [
        trace.raw(n)._replace(reads=[instead(r) for r in trace.raw(n).reads])
        for n in range(len(recorder.nodes))
        if n != gone
    ]
    recorder.slot_node[:] = [n - (n > gone) for n in recorder.slot_node]
    for known in (recorder.sources, recorder.rng, recorder.hidden_reads):
        moved = {n - (n > gone): value for n, value in known.items() if n != gone}
        known.clear()
        known.update(moved)
    recorder.sequences = {n - (n > gone) for n in recorder.sequences if n != gone}
    refresh(trace)

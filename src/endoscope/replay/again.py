"""Ask an operation of a trace about other values: what would it have returned, what does its backward pass give?"""

from __future__ import annotations

import torch
from torch import Tensor

from endoscope.capture.data.nodes import Read, slots_of
from endoscope.capture.views.op import Op
from endoscope.replay.operands import repeat, value_seen


def results_with(op: Op, others: dict[int, Tensor]) -> list[Tensor]:
    """What the operation returns if some of the slots that it reads hold other values."""
    values = op._trace.store

    def seen(read: Read, tensor: Tensor) -> Tensor:
        return value_seen(values, read, tensor, lambda slot, value: others.get(slot, value))

    with torch.no_grad():
        found = repeat(values.recorder, op.node, op._raw, seen, copy=torch.clone, grad=False)
    return [tensor.detach() for tensor in found]


def gradients_through(op: Op, arriving: list[Tensor | None]) -> list[tuple[int, Tensor]]:
    """What the backward pass of the operation sends to each slot that it reads, for gradients that arrive."""
    values = op._trace.store
    leaves: list[tuple[int, Tensor]] = []

    def seen(read: Read, tensor: Tensor) -> Tensor:
        value = value_seen(values, read, tensor, None).detach()
        slots = slots_of(read)
        if slots and (value.is_floating_point() or value.is_complex()):
            value = value.requires_grad_()
            leaves.append((slots[-1], value))
        return value

    with torch.enable_grad():
        found = repeat(values.recorder, op.node, op._raw, seen, copy=torch.clone, grad=True)
        pairs = [
            (out, gradient)
            for out, gradient in zip(found, arriving, strict=False)
            if gradient is not None and out.requires_grad
        ]
        if not pairs or not leaves:
            return []
        outs, gradients = zip(*pairs, strict=True)
        sent = torch.autograd.grad(outs, [leaf for _, leaf in leaves], gradients, allow_unused=True)
    return [(slot, gradient.detach()) for (slot, _), gradient in zip(leaves, sent, strict=True) if gradient is not None]

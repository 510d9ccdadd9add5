"""What the recorder writes down while the code runs; everything else is derived from it afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.data.functions import FunctionFacts, Role
from endoscope.capture.data.nodes import Meta, Position, Read
from endoscope.capture.record.regions import is_uninitialised
from endoscope.schema.ops import Kind


class TorchCall(NamedTuple):
    """A call of a torch function that has returned, before it becomes a node."""

    func: Any
    facts: FunctionFacts
    args: Any
    kwargs: Any
    reads: list[Read]
    started: int
    ended: int
    position: Position


#: Facts of nodes that are no operations.
SOURCE = {kind: FunctionFacts(kind.value, kind.value, Role.RECORD) for kind in Kind}


def grad_fn_of(tensor: Tensor) -> Any:
    """The backward function; None where torch refuses to name it (a view whose base was overwritten)."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def meta_of(tensor: Tensor) -> Meta:
    if is_uninitialised(tensor):
        return Meta(torch.Size([0]), tensor.dtype, tensor.device, tensor.requires_grad, None)
    grad_fn = grad_fn_of(tensor)
    name = None if grad_fn is None else type(grad_fn).__name__
    if tensor.is_nested:
        return Meta(_ragged_shape(tensor), tensor.dtype, tensor.device, tensor.requires_grad, name, tensor.numel())
    return Meta(tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad, name)


def _ragged_shape(tensor: Tensor) -> torch.Size:
    """Sizes of a nested tensor, -1 where they differ from part to part."""
    sizes = []
    for dim in range(tensor.dim()):
        try:
            sizes.append(int(tensor.size(dim)))
        except (RuntimeError, AttributeError):
            sizes.append(-1)
    return torch.Size(sizes)

"""What the recorder writes down while the code runs; everything else is derived from it afterwards."""

from __future__ import annotations

from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from endoscope.capture.record.aliasing import Read, slots_of
from endoscope.capture.record.functions import FunctionFacts, Role
from endoscope.capture.record.regions import is_uninitialised
from endoscope.capture.record.source import Position
from endoscope.schema.ops import Kind


class Node(NamedTuple):
    """One operation or source tensor, in the order of execution. The hot path makes it with `tuple.__new__`."""

    facts: FunctionFacts
    func: Any
    args: Any  # as given; where tensors are not held they are replaced by `TENSOR`
    kwargs: Any
    reads: list[Read]  # one per tensor argument, in order
    slot: int  # first slot
    outputs: int  # how many slots were returned
    written: int  # how many more slots were overwritten without being returned
    started: int
    ended: int
    code: CodeType | None
    instruction: int
    call: int  # index into the calls, -1 outside every module
    context: Any  # autocast settings, None without autocast
    grad: bool  # whether autograd was on
    # Where the tensor is not held and there is just one:
    shape: Any = None
    dtype: Any = None
    device: Any = None  # None: the device of its first tensor argument
    grad_fn: Any = None  # class of the backward function

    @property
    def position(self) -> Position:
        return Position(self.code, self.instruction)

    @property
    def returned(self) -> range:
        """The slots of what it returned."""
        return range(self.slot, self.slot + self.outputs)

    @property
    def results(self) -> range:
        """The slots of what it returned or overwrote."""
        return range(self.slot, self.slot + self.outputs + self.written)


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


class Draw(NamedTuple):
    """Where an operation drew its random numbers from."""

    generator: torch.Generator | None  # None for the one of the CPU
    state: Tensor | None  # before the call; None: as it is now
    vmaps: dict[int, str]  # level of each `vmap` around -> "different", "same" or "error"


class Source(NamedTuple):
    """How a tensor that no operation made came in, or went out."""

    kind: Kind
    name: str  # dotted name of a parameter or buffer, path of an input or output
    call: int


class Departure(NamedTuple):
    """A value that left torch for Python."""

    name: str
    reads: tuple[Read, ...]  # the tensors it came from
    position: Position
    call: int
    control: bool  # it can only steer control flow
    node: int  # how many nodes there were by then
    value: Any  # the number or bool that Python got; None for anything larger
    callers: tuple[tuple[CodeType, int], ...]  # the user's frames around, innermost first


class Meta(NamedTuple):
    """What is remembered of a tensor."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    grad_fn: str | None
    elements: int = -1  # said only where the shape cannot tell

    @property
    def numel(self) -> int:
        return int(self.elements) if self.elements >= 0 else self.shape.numel()

    @property
    def bytes(self) -> int:
        return self.numel * self.dtype.itemsize


__all__ = ["SOURCE", "Departure", "Draw", "Meta", "Node", "Source", "TorchCall", "grad_fn_of", "meta_of", "slots_of"]

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

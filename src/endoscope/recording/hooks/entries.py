"""What is known of one captured tensor."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from endoscope.capture.record.parts import part_of
from endoscope.capture.record.regions import version_of


class Entry:
    """One captured tensor. What most have in common stands in the class."""

    batch_dim: int | None = None  # what the user says: -1 for none; None: the size of the batch tells
    training = True
    gradients: dict[str, tuple[Tensor, int]] | None = None  # loss -> gradient and its version
    is_watched = False  # there is a hook for its gradient
    same: Entry | None = None  # an earlier one on the same tensor
    slot = -1  # number in the recorder of a traced step
    function = -1  # node there, if it is the result of a single operation
    row = -1  # where it was measured while the step ran

    def __init__(self, node: str, role: str, kind: str, tensor: Tensor, module: str, batch: int) -> None:
        self.node, self.role, self.kind, self.module = node, role, kind, module
        self.tensor: Tensor | None = tensor
        self.who = tensor  # the user's own object; `tensor` may be a copy
        self.batch = batch  # samples in the model call around
        self.version = self.seen = version_of(tensor)  # when it was captured; -1: it counts no writes; OURS: a copy
        self.pass_ = 1  # the n-th time in the step
        self.shape: tuple[int, ...] = size_of(tensor) if tensor.is_nested else part_of(tensor).shape


class End(NamedTuple):
    """One end of an edge that the user stated: a name, or a tensor."""

    label: str | tuple[str, str, int] | None  # node, role and pass of a captured tensor
    slot: int  # of a tensor, in a traced step


def dim_of(entry: Entry, dim: int | None) -> int | None:
    """The dimension along which the samples lie, if there is one."""
    shape = entry.shape
    if entry.batch_dim is not None:
        return entry.batch_dim if 0 <= entry.batch_dim < len(shape) else None
    return dim if dim is not None and entry.batch and len(shape) > dim and shape[dim] == entry.batch else None


def size_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape; sizes that differ between the samples of a nested tensor are -1."""
    return (int(tensor.size(0)), *[-1] * (tensor.dim() - 1)) if tensor.is_nested else tensor.shape

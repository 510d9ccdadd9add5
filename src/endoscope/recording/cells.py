"""Gradients of tensors whose slots are not known yet.

gather(tensors)       each gets a cell: a list that autograd itself appends to, for its hook is `list.append`
a backward pass       fills cells, and runs no line of ours
empty(loss)           what lies in the cells came in a pass of that loss
give_slot(slot, …)    the tensor is understood now, and its gradients get their place

What goes into a ReLU and nowhere else needs no cell: its gradient is that of what comes out, where that is positive. It
is computed, by the function that autograd uses, only if somebody asks. So it is not held meanwhile: memory that is held
cannot be used again by the backward pass, and other memory has to be fetched for it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor

from endoscope.recording.grad_hooks import numbers

#: A loss and what came of it in one pass.
Came = tuple[str, list[Tensor]]
#: What went into a ReLU, what came out of it, and the version of that.
Rectified = tuple[Tensor, Tensor, int]
_gradient_through_relu = torch.ops.aten.threshold_backward.default


class Cells:
    """Those of one step, by the ids of their tensors, which are held."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[Tensor, list[Tensor]]] = {}
        self._slots: dict[int, list[int]] = {}
        self._came: dict[int, list[Came]] = {}  # in earlier passes
        self._rectified: list[Rectified] = []

    def clear(self) -> None:
        self._cells.clear()
        self._rectified.clear()
        self._slots.clear()
        self._came.clear()

    def gather(
        self, tensors: list[Tensor], rectified: list[Rectified], places: list[tuple[dict[Any, Any], int]]
    ) -> bool:
        """Take the gradients of ordinary tensors; False if that cannot be. `places` gets the hooks, to be taken off.

        What came out of a ReLU is among the tensors, what went into it is not.
        """
        cells, number = self._cells, next(numbers)
        self._rectified += rectified
        for tensor in tensors:
            grad_fn = tensor.grad_fn
            if grad_fn is None:
                if tensor.requires_grad:
                    return False
            elif id(tensor) not in cells:
                cell: list[Tensor] = []
                cells[id(tensor)] = (tensor, cell)
                hooks: Any = tensor._backward_hooks
                if hooks is None:
                    hooks = tensor._backward_hooks = OrderedDict()
                    grad_fn._register_hook_dict(tensor)
                if hooks:  # what others make of the gradient is theirs, so ours, with negative numbers, are the first
                    others = list(hooks.items())
                    hooks.clear()
                    hooks[number] = cell.append
                    hooks.update(others)
                else:
                    hooks[number] = cell.append
                places.append((hooks, number))
        return True

    def cell_of(self, tensor: Tensor) -> list[Tensor] | None:
        """A new cell, for a hook of somebody else; None if the tensor has one."""
        if id(tensor) in self._cells:
            return None
        cell: list[Tensor] = []
        self._cells[id(tensor)] = (tensor, cell)
        return cell

    def has(self, tensor: Tensor) -> bool:
        return id(tensor) in self._cells or any(given is tensor for given, _, _ in self._rectified)

    def give_slot(self, slot: int, tensor: Tensor, past: bool) -> list[Came]:
        """Returns what has come so far, if that is meant, too."""
        slots = self._slots.setdefault(id(tensor), [])
        if slot in slots:
            return []
        slots.append(slot)
        if not past:
            return []
        for rectified in self._rectified:
            if rectified[0] is tensor:
                came = self._came.get(id(rectified[1]), [])
                return [(loss, _through_relu(gradients, rectified)) for loss, gradients in came]
        return self._came.get(id(tensor), [])

    def empty(self, loss: str | None) -> tuple[bool, list[tuple[int, list[Tensor]]]]:
        """Whether anything lay in them, and what of it has slots. It is thrown away if it belongs to no loss."""
        came, placed = False, []
        for identity, (_, cell) in self._cells.items():
            if cell:
                gradients = cell.copy()
                cell.clear()
                if loss is not None:
                    came = True
                    self._came.setdefault(identity, []).append((loss, gradients))
                    placed += [(slot, gradients) for slot in self._slots.get(identity, ())]
                    placed += self._before_relu(identity, gradients)
        return came, placed

    def _before_relu(self, result: int, gradients: list[Tensor]) -> list[tuple[int, list[Tensor]]]:
        """The same gradients, for what has slots of that which went into the ReLU whose result has that id."""
        placed = []
        for rectified in self._rectified:
            if id(rectified[1]) == result:
                slots = self._slots.get(id(rectified[0]), ())
                placed += [(slot, _through_relu(gradients, rectified)) for slot in slots]
        return placed


def _through_relu(gradients: list[Tensor], rectified: Rectified) -> list[Tensor]:
    _, result, version = rectified
    if result._version != version:
        raise RuntimeError("the result of a ReLU was overwritten before its gradient was looked at")
    with torch.no_grad(), torch._C.DisableTorchFunction():
        return [_gradient_through_relu(gradient, result, 0) for gradient in gradients]

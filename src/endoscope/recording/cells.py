"""Gradients of tensors whose slots are not known yet.

gather(tensors)       each gets a cell: a list that autograd itself appends to, for its hook is `list.append`
a backward pass       fills cells, and runs no line of ours
empty(loss)           what lies in the cells came in a pass of that loss
give_slot(slot, …)    the tensor is understood now, and its gradients get their place
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torch import Tensor

from endoscope.recording.grad_hooks import numbers

#: A loss and what came of it in one pass.
Came = tuple[str, list[Tensor]]


class Cells:
    """Those of one step, by the ids of their tensors, which are held."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[Tensor, list[Tensor]]] = {}
        self._slots: dict[int, list[int]] = {}
        self._came: dict[int, list[Came]] = {}  # in earlier passes

    def clear(self) -> None:
        self._cells.clear()
        self._slots.clear()
        self._came.clear()

    def gather(self, tensors: list[Tensor], places: list[tuple[dict[Any, Any], int]]) -> bool:
        """Take the gradients of ordinary tensors; False if that cannot be. `places` gets the hooks, to be taken off."""
        cells, number = self._cells, next(numbers)
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
                if hooks:  # what others make of the gradient is theirs, so ours is the first
                    others = list(hooks.items())
                    hooks.clear()
                    hooks[number] = cell.append
                    hooks.update(others)
                else:
                    hooks[number] = cell.append
                places.append((hooks, number))
        return True

    def add(self, tensor: Tensor, gradient: Tensor) -> None:
        """A gradient that came before its hook was there."""
        if id(tensor) in self._cells:
            self._cells[id(tensor)][1].append(gradient)

    def has(self, tensor: Tensor) -> bool:
        return id(tensor) in self._cells

    def give_slot(self, slot: int, tensor: Tensor, past: bool) -> list[Came]:
        """Returns what has come so far, if that is meant, too."""
        slots = self._slots.setdefault(id(tensor), [])
        if slot in slots:
            return []
        slots.append(slot)
        return self._came.get(id(tensor), []) if past else []

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
        return came, placed

"""Gradients of kept values, gathered by hooks while `backward()` runs.

Intermediate tensors get tensor hooks, which live and die with the autograd graph. Leaves (parameters, inputs) must not
carry anything of ours, so the graph node that would add to their `.grad` gets a hook instead. That node may serve other
graphs as well: a leaf's gradient counts only if the same backward pass also went through a tensor of this trace.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from endoscope.capture.patch.torch_private import backward_task as _task


class Gradients:
    """Slot -> gradient, summed over all backward passes as `.grad` is."""

    def __init__(self) -> None:
        self._of_slot: dict[int, list[torch.Tensor]] = {}
        self._passes: set[int] = set()  # backward passes that went through this trace
        self._nodes: list[Any] = []  # held, or a leaf would get a new one for its graph
        self._handles: list[Any] = []

    def watch(self, slot: int, tensor: torch.Tensor) -> None:
        if not tensor.requires_grad:
            return
        store = partial(_store, self._of_slot, self._passes, slot)
        try:
            if tensor.grad_fn is not None:
                tensor.register_hook(store)
                return
        except RuntimeError:  # a view whose base was overwritten: autograd has given it up
            return
        with torch.enable_grad():
            node = tensor.view_as(tensor).grad_fn
        accumulate = node.next_functions[0][0] if node is not None else None
        if accumulate is not None:
            self._nodes.append(accumulate)
            self._handles.append(accumulate.register_prehook(partial(_store_leaf, store, self._passes)))

    def of(self, slot: int) -> torch.Tensor | None:
        found = self._of_slot.get(slot)
        if not found:
            return None
        return found[0].detach() if len(found) == 1 else torch.stack([g.detach() for g in found]).sum(0)

    def __del__(self) -> None:
        for handle in self._handles:
            handle.remove()


def _store(of_slot: dict[int, list[torch.Tensor]], passes: set[int], slot: int, gradient: torch.Tensor) -> None:
    # The tensor itself is held, not a detached one: otherwise autograd would take it for its own `.grad` buffer.
    passes.add(_task())
    of_slot.setdefault(slot, []).append(gradient)


def _store_leaf(store: Any, passes: set[int], gradients: tuple[torch.Tensor, ...]) -> None:
    if gradients[0] is not None and _task() in passes:
        store(gradients[0])

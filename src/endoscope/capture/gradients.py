"""Gradients of kept values, gathered by tensor hooks while `backward()` runs.

Hooks on intermediate tensors live and die with the autograd graph. Hooks on leaves (parameters, inputs) would stay
behind on the user's objects, so they are taken off when the traced code ends; afterwards a leaf's gradient is its own
`.grad`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch


class Gradients:
    """Slot -> gradient, summed over all backward passes as `.grad` is."""

    def __init__(self) -> None:
        self.of_slot: dict[int, torch.Tensor] = {}
        self._on_leaves: list[Any] = []

    def watch(self, slot: int, tensor: torch.Tensor) -> None:
        if not tensor.requires_grad:
            return
        hooks = tensor._backward_hooks if tensor.is_leaf else None
        handle = tensor.register_hook(partial(_store, self.of_slot, slot))
        if tensor.is_leaf:
            self._on_leaves.append((tensor, hooks is None, handle))

    def release(self) -> None:
        for tensor, had_none, handle in reversed(self._on_leaves):
            handle.remove()
            if had_none:
                tensor._backward_hooks = None  # an empty dictionary would stay behind
        self._on_leaves.clear()


def _store(of_slot: dict[int, torch.Tensor], slot: int, gradient: torch.Tensor) -> None:
    with torch._C.DisableTorchFunction(), torch.no_grad():
        earlier = of_slot.get(slot)
        of_slot[slot] = gradient.detach() if earlier is None else earlier + gradient

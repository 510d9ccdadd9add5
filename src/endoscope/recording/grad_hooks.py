"""Hooks on the gradients of tensors, put on and taken off in every recorded step.

What `Tensor.register_hook` does, without the handle that it makes: at a small network the handles alone take longer
than everything else that is held of a step.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import Parameter

_ORDINARY = (Tensor, Parameter)
numbers = itertools.count(-1, -1)  # those that torch gives to hooks are positive


class GradHooks:
    """All hooks of one step."""

    def __init__(self) -> None:
        self.places: list[tuple[dict[Any, Any], int]] = []
        self._handles: list[Any] = []  # of tensors that have their own way

    def on_gradient(self, tensor: Tensor, call: Callable[..., None]) -> None:
        """Call with the whole gradient of each backward pass."""
        if tensor.__class__ not in _ORDINARY:
            self._handles.append(tensor.register_hook(call))
            return
        hooks = tensor._backward_hooks
        if hooks is None:
            hooks = tensor._backward_hooks = OrderedDict()
            grad_fn = tensor.grad_fn
            if grad_fn is not None:
                grad_fn._register_hook_dict(tensor)
        number = next(numbers)
        hooks[number] = call
        self.places.append((hooks, number))

    def after_accumulation(self, parameter: Tensor, call: Callable[..., None]) -> None:
        """Call with the parameter when its `.grad` is there."""
        if parameter.__class__ not in _ORDINARY:
            self._handles.append(parameter.register_post_accumulate_grad_hook(call))
            return
        hooks = parameter._post_accumulate_grad_hooks
        if hooks is None:
            hooks = parameter._post_accumulate_grad_hooks = OrderedDict()
        number = next(numbers)
        hooks[number] = call
        self.places.append((hooks, number))

    def take_off(self) -> None:
        places, self.places = self.places, []
        for hooks, number in places:
            hooks.pop(number, None)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

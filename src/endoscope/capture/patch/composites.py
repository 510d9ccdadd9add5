"""What is patched whenever a function mode of ours is on: composites open by themselves.

With any mode on, torch's own Python functions (attention, losses, encoder layers) ask `has_torch_function*`, get a yes,
hand themselves to the mode whole, as one call, and switch off their fast paths. While a mode of ours is on, that
question looks at tensor subclasses and modes of the user only. So the operations inside arrive one by one, and the
plain run's own path is taken.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from endoscope.capture.patch import patch_list
from endoscope.capture.patch.patch_list import Patch, PatchList
from endoscope.capture.patch.torch_private import TENSOR_METHODS, DeviceContext
from endoscope.capture.patch.torch_private import is_override_on as _is_override_on
from endoscope.capture.patch.torch_private import no_override as _no_override
from endoscope.capture.patch.torch_private import stack_at as _stack_at
from endoscope.capture.patch.torch_private import stack_depth as _stack_depth


class OwnMode(TorchFunctionMode):
    """What all function modes of ours have in common: they do not take each other for modes of the user."""


#: Modes that do not want to see composites whole: torch's own default device, and ours.
_HARMLESS_MODES = (DeviceContext, OwnMode)


def open_composites() -> None:
    """To be called before a mode of ours is put on the stack."""
    with patch_list.lock:
        COMPOSITES.put()


def close_composites() -> None:
    with patch_list.lock:
        COMPOSITES.take_off()


def _list_patches() -> list[Patch]:
    return [
        Patch(importlib.import_module(module), name, make)
        for module in ("torch.nn.functional", "torch.functional", "torch.overrides", TENSOR_METHODS)
        for name, make in _answers(opens_all=module != TENSOR_METHODS).items()
    ]


COMPOSITES = PatchList(_list_patches)

#: Functions of `torch._tensor` that stay one call: they print, copy or run backward, and compute nothing new.
_CLOSED = frozenset(
    """__repr__ __format__ __deepcopy__ __reduce_ex__ __hash__ backward register_hook __dir__ __len__
    register_post_accumulate_grad_hook retain_grad is_shared share_memory_ storage _typed_storage __contains__
    __array__ __cuda_array_interface__ __dlpack__ __dlpack_device__ module_load detach_ detach""".split()
)


def _foreign_mode() -> bool:
    """A mode of the user's own is on here; ours and torch's default device do not count."""
    depth = _stack_depth()
    if depth == 1:
        return not isinstance(_stack_at(0), _HARMLESS_MODES)
    return any(not isinstance(_stack_at(i), _HARMLESS_MODES) for i in range(depth))


def _is_overridden(value: Any) -> bool:
    kind = value.__class__
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return False
    handler = getattr(kind, "__torch_function__", None)
    if not _is_override_on():  # a subclass calls on from its own override
        return False
    return handler is not None and handler is not _no_override


def _answers(opens_all: bool) -> dict[str, Callable[[Any], Any]]:
    plain = (torch.Tensor, torch.nn.Parameter)
    usual = {*plain, type(None)}

    def for_one(value: Any) -> bool:
        if value.__class__ in plain and _stack_depth() == 1:  # the usual case, in one function
            return not isinstance(_stack_at(0), _HARMLESS_MODES)
        return (value.__class__ not in plain and _is_overridden(value)) or _foreign_mode()

    def for_all(values: Any) -> bool:
        return any(map(_is_overridden, values)) or _foreign_mode()

    def for_some(*values: Any) -> bool:
        if not usual.issuperset(map(type, values)) and any(map(_is_overridden, values)):
            return True
        return not isinstance(_stack_at(0), _HARMLESS_MODES) if _stack_depth() == 1 else _foreign_mode()

    def unless_closed(answer: Callable[..., bool], original: Callable[..., bool]) -> Callable[..., bool]:
        def ask(*args: Any) -> bool:
            return (original if sys._getframe(1).f_code.co_name in _CLOSED else answer)(*args)

        return ask

    answers: dict[str, Callable[..., bool]] = {
        "has_torch_function": for_all,
        "has_torch_function_unary": for_one,
        "has_torch_function_variadic": for_some,
    }
    make: Any = (lambda answer, original: answer) if opens_all else unless_closed
    return {name: functools.partial(make, answer) for name, answer in answers.items()}

"""Functions of torch that ask no mode before they run, and yet hand on the numbers of a tensor.

While something is traced they are handed to the mode of ours as torch would do it: the modes from ours upwards are off
meanwhile. Where no mode of ours is on the stack they are called as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.patch.composites import OwnMode
from endoscope.capture.patch.patch_list import Patch
from endoscope.capture.patch.torch_private import MAKE_NESTED, MAKE_SUBCLASS
from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.patch.torch_private import mode_stack as _mode_stack
from endoscope.capture.patch.torch_private import pop_mode as _pop_mode
from endoscope.capture.patch.torch_private import push_mode as _push_mode
from endoscope.capture.record.leaves import tensors_in

Function = Callable[..., Any]

#: Parameters of lazy modules have neither shape nor numbers yet.
_WITHOUT_NUMBERS = (torch.nn.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)


def unasked_functions() -> list[Patch]:
    return [
        Patch(torch.Tensor, "as_subclass", lambda original: told(original, "as_subclass")),
        Patch(torch.Tensor, "set_", lambda original: told(original, "set_")),
        Patch(torch.Tensor, "__new__", _observed_constructor),
        Patch(*MAKE_SUBCLASS, _observed_subclass),
        Patch(*MAKE_NESTED, lambda original: told(original, "nested_tensor")),
    ]


def told(original: Function, name: str) -> Function:
    """The same function under a plain name, which tells the recorder of this thread before it runs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        modes = _mode_stack()
        own = max((n for n, mode in enumerate(modes) if isinstance(mode, OwnMode)), default=-1)
        if own < 0 or _task() != -1:
            return original(*args, **kwargs)
        for _ in modes[own:]:
            _pop_mode()
        try:
            return modes[own].__torch_function__(call, (), args, kwargs)
        finally:
            for mode in modes[own:]:
                _push_mode(mode)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = original.__doc__
    return call


def _observed_constructor(original: Function) -> Any:
    """`Subclass(tensor)` looks at the memory of the tensor, `Tensor(2, 3)` at memory that nobody has filled."""
    over_memory, unfilled, copied = (told(original, name) for name in ("as_subclass", "empty", "tensor"))

    @functools.wraps(original)
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not args or isinstance(args[0], int):
            return unfilled(cls, *args, **kwargs)
        return (over_memory if isinstance(args[0], Tensor) else copied)(cls, *args, **kwargs)

    return staticmethod(__new__)


def _observed_subclass(original: Function) -> Any:
    over_memory, parameter = (told(original, name) for name in ("as_subclass", "Parameter"))

    @functools.wraps(original)
    def _make_subclass(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls in _WITHOUT_NUMBERS or not tensors_in(args):
            return original(cls, *args, **kwargs)
        return (parameter if cls is torch.nn.Parameter else over_memory)(cls, *args, **kwargs)

    return staticmethod(_make_subclass)

"""Call a registered operator (`torch.library`) so that the operations in its Python body are recorded too.

A torch function mode is switched off while it handles a call, and switching it on again before calling the same
operator would only bring the call back to it. The dispatcher below the modes can be entered directly: it takes
the set of dispatch keys that the arguments carry and runs the operator's own kernel, whose Python body then runs
with the mode switched on.
"""

from __future__ import annotations

from typing import Any

import torch

from endoscope.capture.patch.torch_private import (
    DispatchKey,
    DispatchKeySet,
    OpOverload,
    OpOverloadPacket,
    dispatch_keys,
    has_computed_kernel,
    has_kernel,
    kernel_falls_through,
    keys_excluded,
    keys_included,
)
from endoscope.capture.record.leaves import argument_tensors


def call_inside(mode: Any, func: OpOverload | OpOverloadPacket, args: Any, kwargs: dict[str, Any]) -> Any:
    overload = _only_overload(func)
    keys = _dispatch_keys(overload, args, kwargs) if overload is not None else None
    if overload is None or keys is None:
        return func(*args, **kwargs)
    with mode:
        return overload._handle.redispatch_boxed(keys, *args, **kwargs)


def _only_overload(func: OpOverload | OpOverloadPacket) -> OpOverload | None:
    if isinstance(func, OpOverload):
        return func
    names = func.overloads()
    return getattr(func, names[0]) if len(names) == 1 else None


def _dispatch_keys(overload: OpOverload, args: Any, kwargs: dict[str, Any]) -> Any:
    """The keys an ordinary call would dispatch on; None if that cannot be known."""
    tensors: list[torch.Tensor] = []
    argument_tensors(args, tensors)
    argument_tensors(kwargs, tensors)
    if not tensors:
        return None
    keys = dispatch_keys(tensors[0])
    for tensor in tensors[1:]:
        keys = keys | dispatch_keys(tensor)
    keys = (keys | keys_included()) - keys_excluded()
    name = overload.name()
    for key in _keys_in(keys):
        if _falls_through(name, key):
            keys = keys - DispatchKeySet(getattr(DispatchKey, key))
    return keys


def _falls_through(name: str, key: str) -> bool:
    if has_kernel(name, key):
        return bool(kernel_falls_through(name, key))
    if key.startswith("Autograd"):  # may be served through the alias key
        return not has_kernel(name, "Autograd")
    # A backend is served by a composite kernel; what else remains is torch's own fall-through.
    return not (key in _BACKENDS and has_computed_kernel(name, key))


_BACKENDS = frozenset("CPU CUDA Meta MPS XPU XLA HPU PrivateUse1 SparseCPU SparseCUDA QuantizedCPU".split())


def _keys_in(keys: Any) -> list[str]:
    text = str(keys)
    return [name.strip() for name in text[text.find("(") + 1 : text.rfind(")")].split(",") if name.strip()]

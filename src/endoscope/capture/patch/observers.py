"""What is called instead of a few names of torch while a recorder is at work.

Why each is needed:
- `nn.Module._call_impl`: which module is running. (Global hooks would do, but slow every module down by several
  microseconds and make compiled modules warn.)
- `_SingleLevelFunction.apply`: the boundary of a custom function. `autograd.Function.apply` calls it, also where it was
  bound early (`my_op = MyFunction.apply`).
- `autograd.backward`: what it computes is no operation of the user's.
- `ScriptFunction.__call__`: TorchScript is opaque; it becomes one operation.
- functorch's wrap and unwrap functions: a tensor enters and leaves `vmap` / `grad`.
- `Tensor.as_subclass`, `Tensor._make_subclass`, `Tensor.__new__`, `Tensor.set_` and the constructor of nested tensors:
  torch shows them to no mode, and each hands on the numbers of a tensor under another object (`unasked.py`).
- `Thread.start` and `ThreadPoolExecutor.submit`: work that another thread does for the traced code is not recorded,
  so it is said.

Threads that trace nothing get the original behaviour.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from endoscope.capture.patch import patch_list
from endoscope.capture.patch.active import ACTIVE, BLOCKS, recorders_here
from endoscope.capture.patch.patch_list import Patch, PatchList
from endoscope.capture.patch.sharding import unseen
from endoscope.capture.patch.torch_private import (
    FUNCTION_APPLY,
    MODULE_CALL,
    DisableTorchFunction,
    FunctionBase,
    transform_steps,
)
from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.patch.unasked import unasked_functions
from endoscope.capture.record.leaves import tensors_in
from endoscope.capture.record.opaque import record_script, record_transform


def _list_patches() -> list[Patch]:
    return [
        Patch(*MODULE_CALL, _observed_call),
        Patch(*FUNCTION_APPLY, _observed_apply),
        Patch(torch.autograd, "backward", _observed_backward),
        Patch(torch.jit.ScriptFunction, "__call__", _observed_script),
        *unasked_functions(),
        Patch(threading.Thread, "start", _announced("a thread was started")),
        Patch(ThreadPoolExecutor, "submit", _announced("work was handed to a thread pool")),
        *(Patch(*step, functools.partial(_observed_transform, step.name)) for step in transform_steps()),
    ]


OBSERVERS = PatchList(_list_patches)


# ---- modules ------------------------------------------------------------------------------------


def _observed_call(original: Callable[..., Any]) -> Callable[..., Any]:
    in_backward = _task
    get_ident, active, blocks = threading.get_ident, ACTIVE, BLOCKS

    def _call_impl(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        recorders = active.get(get_ident())
        if recorders and len(recorders) == 1 and not blocks and _IS_ORDINARY[self.__class__] and in_backward() == -1:
            return recorders[0].call_module(original, self, args, kwargs)  # the usual case, without lists
        if blocks:
            block = blocks.get((get_ident(), id(self)))
            if block is not None and not block.busy and in_backward() == -1:
                return block.run(lambda *a, **k: _call_impl(self, *a, **k), args, kwargs)
        if not recorders:
            if recorders is None:
                _say_foreign(self)
            return original(self, *args, **kwargs)
        if in_backward() != -1 or self.__class__.__name__ == "OptimizedModule":
            return original(self, *args, **kwargs)
        if isinstance(self, torch.jit.ScriptModule):
            return record_script(recorders[-1], original, self, args, kwargs)
        if len(recorders) == 1:
            return recorders[0].call_module(original, self, args, kwargs)
        entered = [r.begin_module(self, args, kwargs) for r in recorders]
        try:
            out = original(self, *args, **kwargs)
            for recorder, call in zip(recorders, entered, strict=True):
                recorder.end_module(call, out)
            return out
        finally:
            for recorder, call in zip(recorders, entered, strict=True):
                recorder.leave(call)

    return _call_impl


class _Ordinary(dict[type, bool]):
    """Class of a module -> is it neither TorchScript nor what `torch.compile` makes of a module."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = not issubclass(kind, torch.jit.ScriptModule) and kind.__name__ != "OptimizedModule"
        return self[kind]


_IS_ORDINARY = _Ordinary()


def _say_foreign(module: torch.nn.Module) -> None:
    with patch_list.lock:
        for recorders in ACTIVE.values():
            for recorder in recorders:
                known = recorder.calls.addresses.get(id(module))
                if known is not None:
                    recorder.notice("thread", f"module {known[0]!r} ran in another thread, where nothing is seen")


# ---- custom autograd functions ------------------------------------------------------------------


def _observed_apply(_: Any) -> Any:
    inherited = vars(FunctionBase)["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        original = inherited.__get__(None, cls)
        recorders = recorders_here()
        if recorders is None or _task() != -1:
            return original(*args, **kwargs)
        entered = [r.calls.begin(cls.__name__, len(r.nodes), []) for r in recorders]
        try:
            return original(*args, **kwargs)
        finally:
            for recorder, call in zip(recorders, entered, strict=True):
                recorder.calls.leave(call)
                recorder.renew_versions(args)  # `mark_dirty` counts a write that was recorded already

    return classmethod(apply)


# ---- backward passes ----------------------------------------------------------------------------


def _observed_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    def backward(*args: Any, **kwargs: Any) -> Any:
        for recorder in (recorders_here() or ()) if _task() == -1 else ():
            with DisableTorchFunction():
                recorder.backward_begins(tensors_in((args, kwargs)))
        return unseen(original, args, kwargs)

    return backward


# ---- TorchScript, transforms, threads -----------------------------------------------------------


def _observed_script(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorders = recorders_here()
        if recorders is None or _task() != -1:
            return original(self, *args, **kwargs)
        return record_script(recorders[-1], original, self, args, kwargs)

    return __call__


def _observed_transform(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(*args: Any) -> Any:
        recorders = recorders_here()
        if recorders is None:
            return original(*args)
        return record_transform(recorders[-1], name, original, args)

    return step


def _announced(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            for recorder in recorders_here() or ():
                recorder.notice("thread", f"{what} inside the traced code; what it computes is not seen")
            return original(*args, **kwargs)

        return call

    return make

"""What is called instead of a few names of torch while something is being traced.

Why each is needed:
- `has_torch_function*` in torch's Python functions: with any mode on they answer "yes", hand the whole function to
  the mode as one call and switch off the fast paths of attention and encoder layers. While a mode of ours is on they
  look at tensor subclasses only, so composites open up and the plain run's own path is taken.
- `nn.Module._call_impl`: which module is running. (Global hooks would do, but slow every module down by several
  microseconds and make compiled modules warn.)
- `_SingleLevelFunction.apply`: the boundary of a custom function. `autograd.Function.apply` calls it, also where it was
  bound early (`my_op = MyFunction.apply`).
- `autograd.backward`: what it computes is no operation of the user's.
- `ScriptFunction.__call__`: TorchScript is opaque; it becomes one operation.
- functorch's wrap and unwrap functions: a tensor enters and leaves `vmap` / `grad`.
- `nn.Parameter.__new__`: a parameter that is made while tracing is a new face of the memory of a tensor.
- `Thread.start` and `ThreadPoolExecutor.submit`: work that another thread does for the traced code is not heard,
  so it is said.

Threads that trace nothing get the original behaviour.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from endoscope.capture import active
from endoscope.capture.active import ACTIVE, BLOCKS, recorders_here
from endoscope.capture.boundary import hear_opaque, hear_parameter, hear_transform
from endoscope.capture.patch_list import Patch
from endoscope.capture.torch_private import (
    FUNCTION_APPLY,
    MODULE_CALL,
    TENSOR_METHODS,
    DeviceContext,
    FunctionBase,
    transform_steps,
)
from endoscope.capture.torch_private import backward_task as _task
from endoscope.capture.torch_private import is_override_on as _is_override_on
from endoscope.capture.torch_private import no_override as _no_override
from endoscope.capture.torch_private import pop_mode as _pop_mode
from endoscope.capture.torch_private import push_mode as _push_mode
from endoscope.capture.torch_private import stack_at as _stack_at
from endoscope.capture.torch_private import stack_depth as _stack_depth


class OwnMode(TorchFunctionMode):
    """What all function modes of ours have in common: they do not take each other for modes of the user."""


#: Modes that do not want to see composites whole: torch's own default device, and ours.
_HARMLESS_MODES = (DeviceContext, OwnMode)


def composites() -> list[Patch]:
    """What is patched whenever a mode of ours is on."""
    return [
        Patch(importlib.import_module(module), name, make)
        for module in ("torch.nn.functional", "torch.functional", "torch.overrides", TENSOR_METHODS)
        for name, make in _answers(opens_all=module != TENSOR_METHODS).items()
    ]


def observers() -> list[Patch]:
    """What is patched while a recorder is at work."""
    return [
        Patch(*MODULE_CALL, _observed_call),
        Patch(*FUNCTION_APPLY, _observed_apply),
        Patch(torch.autograd, "backward", _observed_backward),
        Patch(torch.jit.ScriptFunction, "__call__", _observed_script),
        Patch(torch.nn.Parameter, "__new__", _observed_parameter),
        Patch(threading.Thread, "start", _announced("a thread was started")),
        Patch(ThreadPoolExecutor, "submit", _announced("work was handed to a thread pool")),
        *_transforms(),
    ]


# ---- composites ---------------------------------------------------------------------------------

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
    make: Any = _replace_by if opens_all else unless_closed
    return {name: functools.partial(make, answer) for name, answer in answers.items()}


def _replace_by(answer: Callable[..., bool], original: Callable[..., bool]) -> Callable[..., bool]:
    return answer


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
            return hear_opaque(recorders[-1], original, self, args, kwargs)
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
    with active.lock:
        for recorders in ACTIVE.values():
            for recorder in recorders:
                known = recorder.calls.addresses.get(id(module))
                if known is not None:
                    recorder.notice("thread", f"module {known[0]!r} ran in another thread, unheard")


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
                recorder.renew_versions(args)  # `mark_dirty` counts a write that was heard already

    return classmethod(apply)


# ---- backward passes ----------------------------------------------------------------------------


def _observed_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    def backward(*args: Any, **kwargs: Any) -> Any:
        if not (_stack_depth() and isinstance(_stack_at(_stack_depth() - 1), OwnMode)):
            return original(*args, **kwargs)
        mode = _pop_mode()
        try:
            return original(*args, **kwargs)
        finally:
            _push_mode(mode)

    return backward


# ---- TorchScript, transforms, threads -----------------------------------------------------------


def _observed_script(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorders = recorders_here()
        if recorders is None or _task() != -1:
            return original(self, *args, **kwargs)
        return hear_opaque(recorders[-1], original, self, args, kwargs)

    return __call__


def _observed_parameter(original: Callable[..., Any]) -> Any:
    """A parameter made while tracing looks at the memory of a tensor; no function of torch says so."""

    def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = original(cls, data, requires_grad)
        if data is not None and made is not data:
            for recorder in recorders_here() or ():
                hear_parameter(recorder, data, made)
        return made

    return staticmethod(__new__)


def _transforms() -> list[Patch]:
    return [Patch(*step, functools.partial(_observed_transform, step.name)) for step in transform_steps()]


def _observed_transform(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(*args: Any) -> Any:
        recorders = recorders_here()
        if recorders is None:
            return original(*args)
        return hear_transform(recorders[-1], name, original, args)

    return step


def _announced(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            for recorder in recorders_here() or ():
                recorder.notice("thread", f"{what} inside the traced code; what it computes is not heard")
            return original(*args, **kwargs)

        return call

    return make

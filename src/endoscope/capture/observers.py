"""What is called instead of a few names of torch while something is being traced.

Why each is needed:
- `has_torch_function*` in torch's Python functions: with any mode on they answer "yes", hand the whole function to
  the mode as one call and switch off the fast paths of attention and encoder layers. While tracing they look at
  tensor subclasses only, so composites open up and the plain run's own path is taken.
- `nn.Module._call_impl`: which module is running. (Global hooks would do, but slow every module down by several
  microseconds and make compiled modules warn.)
- `autograd.Function.apply`: the boundary of a custom function. Users bind `my_op = MyFunction.apply` at import time,
  so its code is exchanged and not its name.
- `autograd.backward`: which loss it is. It is not heard as a function: being told of it takes ten times as long.
- `_engine_run_backward`: a backward pass begins and ends, whoever asked for it. A recording puts its hooks on then.
- `ScriptFunction.__call__`: TorchScript is opaque; it becomes one operation.
- functorch's wrap and unwrap functions: a tensor enters and leaves `vmap` / `grad`.
- `Optimizer.zero_grad`: setting gradients to None computes nothing, and hearing it costs two calls per parameter.
- `record_function`, which is around every `optimizer.step()`: marks for a profiler compute nothing either, and are not
  even made if nobody is there to see them (`profiler_marks.py`).
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
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._device import DeviceContext

from endoscope.capture import active
from endoscope.capture.active import ACTIVE, BLOCKS, lone_recorder, recorders_here
from endoscope.capture.boundary import hear_opaque, hear_parameter, hear_transform
from endoscope.capture.exchange import NO_WAYS, Exchanges, Modes, Shortcut, can_be_exchanged
from endoscope.capture.profiler_marks import exchange_marks

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

_stack_depth, _stack_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
_push_mode, _pop_mode = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack
#: Modes that do not want to see composites whole: torch's own, and recorders.
_HARMLESS_MODES: tuple[type, ...] = (DeviceContext,)
_modes = Modes()
shortcut = Shortcut()  # how the recorder that was begun last is told of modules that it knows


def listen_for(recorder: Recorder) -> None:
    """The recorder that was begun last."""
    global _HARMLESS_MODES
    shortcut.ways = getattr(recorder, "ways", NO_WAYS)
    _modes.ours = (getattr(recorder, "family", type(recorder)),)
    _HARMLESS_MODES = (DeviceContext, *_modes.ours)


def passes_are_heard() -> bool:
    """Whether recorders are told when a backward pass begins.

    Not with versions of torch that run it in another way, and not if somebody has put a function of theirs there.
    """
    known = getattr(torch.autograd.graph, "_engine_run_backward", None)
    return known is getattr(torch.autograd, "_engine_run_backward", None) and can_be_exchanged(known)


def all_exchanges() -> Exchanges:
    """What training calls in every step."""
    exchanges = Exchanges()
    _open_composites(exchanges)
    if not exchanges.add_code(torch.nn.Module, "_call_impl", _observed_call, shortcut):  # somebody else's by now
        exchanges.add(torch.nn.Module, "_call_impl", _observed_call_of_others)
    # In another torch version its closure may differ: then custom functions are heard, and their boundary is not.
    exchanges.add_code(torch.autograd.Function, "apply", _observed_apply)
    # The code of these two, too: people import them by their names.
    if passes_are_heard():
        exchanges.add_code(torch.autograd.graph, "_engine_run_backward", _observed_pass)
    else:  # somebody else's is there, and may be gone the next time
        exchanges.expect(torch.autograd.graph, "_engine_run_backward")
    exchanges.expect(torch.autograd, "_engine_run_backward")
    if exchanges.add_code(torch.autograd, "backward", _observed_backward):
        _openly.add("backward")
    else:  # somebody else's by now: it is heard as a function, then
        _openly.discard("backward")
        exchanges.expect(torch.autograd, "backward")
    exchanges.add_code(torch.optim.Optimizer, "zero_grad", _unheard_clearing)
    exchange_marks(exchanges, _modes)
    _observe_transforms(exchanges)
    return exchanges


def standing_exchanges() -> Exchanges:
    """What training hardly ever calls."""
    exchanges = Exchanges()
    exchanges.add(torch.jit.ScriptFunction, "__call__", _observed_script)
    exchanges.add(torch.nn.Parameter, "__new__", _observed_parameter)
    exchanges.add(threading.Thread, "start", _announced("a thread was started"))
    exchanges.add(ThreadPoolExecutor, "submit", _announced("work was handed to a thread pool"))
    return exchanges


# ---- composites ---------------------------------------------------------------------------------

#: Functions of `torch._tensor` that stay one call: they print, copy or run backward, and compute nothing new.
_CLOSED = frozenset(
    """__repr__ __format__ __deepcopy__ __reduce_ex__ __hash__ backward register_hook __dir__ __len__
    register_post_accumulate_grad_hook retain_grad is_shared share_memory_ storage _typed_storage __contains__
    __array__ __cuda_array_interface__ __dlpack__ __dlpack_device__ module_load detach_ detach""".split()
)
_openly: set[str] = set()  # those of them of which we are told in another way


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
    if not torch._C._is_torch_function_enabled():  # a subclass calls on from its own override
        return False
    return handler is not None and handler is not torch._C._disabled_torch_function_impl


def _open_composites(exchanges: Exchanges) -> None:
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
            name = sys._getframe(1).f_code.co_name
            if name not in _CLOSED:
                return answer(*args)
            if name not in _openly or lone_recorder() is None:
                return original(*args)
            return not usual.issuperset(map(type, args)) and answer(*args)  # there is no mode but that recorder

        return ask

    answers = {
        "has_torch_function": for_all,
        "has_torch_function_unary": for_one,
        "has_torch_function_variadic": for_some,
    }
    for module_name in ("torch.nn.functional", "torch.functional", "torch.overrides", "torch._tensor"):
        module = importlib.import_module(module_name)
        for name, answer in answers.items():
            if module_name == "torch._tensor":
                exchanges.add(module, name, functools.partial(unless_closed, answer))
            else:
                exchanges.add(module, name, functools.partial(_replace_by, answer))


def _replace_by(answer: Callable[..., bool], original: Callable[..., bool]) -> Callable[..., bool]:
    return answer


# ---- modules ------------------------------------------------------------------------------------


def _observed_call(original: Callable[..., Any]) -> Callable[..., Any]:
    in_backward = torch._C._current_graph_task_id
    get_ident, active, blocks = threading.get_ident, ACTIVE, BLOCKS

    def _call_impl(self: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        recorders = active.get(get_ident())
        if recorders and len(recorders) == 1 and not blocks and _IS_ORDINARY[self.__class__] and in_backward() == -1:
            return recorders[0].call_module(original, self, args, kwargs)  # the usual case, without lists
        if blocks:
            block = blocks.get((get_ident(), id(self)))
            if block is not None and not block.busy and in_backward() == -1:
                return block.run(lambda *a, **k: _call_impl(self, a, k), args, kwargs)
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


def _observed_call_of_others(original: Callable[..., Any]) -> Callable[..., Any]:
    observed = _observed_call(original)

    def _call_impl(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        return observed(self, args, kwargs)

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


def _observed_apply(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorders = recorders_here()
        if recorders is None or torch._C._current_graph_task_id() != -1:
            return original(cls, *args, **kwargs)
        entered = [r.calls.begin(cls.__name__, len(r.nodes), []) for r in recorders]
        try:
            return original(cls, *args, **kwargs)
        finally:
            for recorder, call in zip(recorders, entered, strict=True):
                recorder.catch_up()
                recorder.calls.leave(call)
                recorder.renew_versions(args)  # `mark_dirty` counts a write that was heard already

    return apply


# ---- backward passes ----------------------------------------------------------------------------


def _observed_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    def backward(*args: Any, **kwargs: Any) -> Any:
        recorder = lone_recorder()
        if recorder is None:
            return original(*args, **kwargs)
        before = recorder.backward_begins(args, kwargs)
        mode = _pop_mode()  # what it computes is no operation of the user's
        try:
            return original(*args, **kwargs)
        finally:
            recorder.backward_ended(before)
            if recorder in ACTIVE.get(threading.get_ident(), ()):  # or it has ended meanwhile
                _push_mode(mode)

    return backward


def _observed_pass(original: Callable[..., Any]) -> Callable[..., Any]:
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        # Not those of other threads: what they have heard may change at any moment.
        recorders = ACTIVE.get(threading.get_ident()) or ()
        told = recorders[0].passes if len(recorders) == 1 else _AllPasses([r.passes for r in recorders])
        if told is None:
            return original(*args, **kwargs)
        told.engine_starts(bool(args[4] if len(args) > 4 else kwargs.get("inputs")))
        failed = True
        try:
            found = original(*args, **kwargs)
            failed = False
            return found
        finally:
            told.engine_stopped(failed)

    return _engine_run_backward


class _AllPasses:
    """Tells several recorders, if there are several."""

    def __init__(self, passes: list[Any]) -> None:
        self._passes = [one for one in passes if one is not None]

    def engine_starts(self, limited: bool) -> None:
        for one in self._passes:
            one.engine_starts(limited)

    def engine_stopped(self, failed: bool) -> None:
        for one in self._passes:
            one.engine_stopped(failed)


# ---- optimizers ---------------------------------------------------------------------------------


def _unheard_clearing(original: Callable[..., Any]) -> Callable[..., Any]:
    def zero_grad(self: Any, set_to_none: bool = True) -> Any:
        # Zeros that are written are heard: somebody may hold what was there. So do modes of others hear it.
        if not set_to_none or _stack_depth() != 1 or not isinstance(_stack_at(0), _modes.ours):
            return original(self, set_to_none)
        mode = _pop_mode()
        try:
            return original(self, set_to_none)
        finally:
            _push_mode(mode)

    return zero_grad


# ---- TorchScript, transforms, threads -----------------------------------------------------------


def _observed_script(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorders = recorders_here()
        if recorders is None or torch._C._current_graph_task_id() != -1:
            return original(self, *args, **kwargs)
        return hear_opaque(recorders[-1], original, self, args, kwargs)

    return __call__


def _observed_parameter(original: Callable[..., Any]) -> Callable[..., Any]:
    """A parameter made while tracing looks at the memory of a tensor; no function of torch says so."""

    def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = original(cls, data, requires_grad)
        if data is not None and made is not data:
            for recorder in recorders_here() or ():
                hear_parameter(recorder, data, made)
        return made

    return __new__


def _observe_transforms(exchanges: Exchanges) -> None:
    vmap = importlib.import_module("torch._functorch.vmap")
    transforms = importlib.import_module("torch._functorch.eager_transforms")
    for module in (vmap, transforms):
        for name in ("_add_batch_dim", "_remove_batch_dim", "_wrap_for_grad", "_unwrap_for_grad"):
            if hasattr(module, name):
                exchanges.add(module, name, functools.partial(_observed_transform, name))


def _observed_transform(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def step(*args: Any) -> Any:
        recorders = recorders_here()
        if recorders is None:
            return original(*args)
        for recorder in recorders:  # tensors inside of a transform are none when it has ended
            recorder.postpones = False
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

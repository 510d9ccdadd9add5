"""Names of torch that are patched while a step is captured: they say when a backward pass runs, and who clips.

- `torch.autograd._engine_run_backward`: `loss.backward()` and `torch.autograd.backward(...)` both call it, whoever
  calls them and however their name was imported. Passes inside of a pass (checkpointing with `use_reentrant=True`)
  belong to the outer one; `torch.autograd.grad` is no pass.
- `DTensor.to_local` and `DTensor.from_local`: how the ordinary tensor on the other side lies in the processes.
- `torch.nn.utils.clip_grad._clip_grads_with_norm_`: all ways to clip by the norm end there, with the norm.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from endoscope.capture.patch.patch_list import Patch, PatchList
from endoscope.capture.patch.torch_private import BACKWARD_PASS, CLIPPING, distributed_tensor
from endoscope.capture.patch.torch_private import backward_task as _task


class Listener(Protocol):
    thread: int

    def backward_begins(self, tensors: Any) -> None: ...

    def backward_ends(self) -> None: ...

    def clipped(self, norm: Any, limit: Any) -> None: ...

    def declared(self, tensor: Any, distributed: Any) -> None: ...

    def failed(self, where: str, error: BaseException) -> None: ...


_listeners: list[Listener] = []
_lock = threading.Lock()


def listen(listener: Listener) -> None:
    with _lock:
        _listeners.append(listener)
        _patches.put()
        _distributed.put()


def stop_listening(listener: Listener) -> None:
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
            _distributed.take_off()
            _patches.take_off()


def _told() -> list[Listener]:
    me = threading.get_ident()
    return [one for one in _listeners if one.thread == me] if _task() == -1 else []


def _tell(listener: Listener, method: Callable[..., None], *args: Any) -> None:
    try:
        method(*args)
    except Exception as error:
        listener.failed("a backward pass", error)


def _observed_pass(original: Any) -> Any:
    def _engine_run_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        told = _told() if kwargs.get("accumulate_grad") else []
        for one in told:
            _tell(one, one.backward_begins, tensors)
        try:
            return original(tensors, *args, **kwargs)
        finally:
            for one in told:
                _tell(one, one.backward_ends)

    return _engine_run_backward


def _observed_clipping(original: Any) -> Any:
    def _clip_grads_with_norm_(parameters: Any, max_norm: Any, total_norm: Any, *args: Any, **kwargs: Any) -> Any:
        for one in _told():
            _tell(one, one.clipped, total_norm, max_norm)
        return original(parameters, max_norm, total_norm, *args, **kwargs)

    return _clip_grads_with_norm_


def _list_patches() -> list[Patch]:
    patches = [Patch(*BACKWARD_PASS, _observed_pass)]
    if hasattr(*CLIPPING):  # without it the norm before clipping is not recorded
        patches.append(Patch(*CLIPPING, _observed_clipping))
    return patches


def _observed_taking(original: Any) -> Any:
    def to_local(self: Any, *args: Any, **kwargs: Any) -> Any:
        local = original(self, *args, **kwargs)
        for one in _told():
            _tell(one, one.declared, local, self)
        return local

    return to_local


def _observed_making(original: Any) -> Any:
    def from_local(local_tensor: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(local_tensor, *args, **kwargs)
        for one in _told():
            _tell(one, one.declared, local_tensor, made)
        return made

    return staticmethod(from_local)


def _list_distributed() -> list[Patch]:
    kind = distributed_tensor()
    if kind is None:
        return []
    return [Patch(kind, "to_local", _observed_taking), Patch(kind, "from_local", _observed_making)]


_patches = PatchList(_list_patches)
_distributed = PatchList(_list_distributed)  # empty as long as nobody has imported that

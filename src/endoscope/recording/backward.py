"""Tells captured steps when a backward pass begins and ends: one name of torch is patched while a step is captured.

`loss.backward()` and `torch.autograd.backward(...)` both call `torch.autograd._engine_run_backward`, whoever calls them
and however their name was imported. Passes inside of a pass (checkpointing with `use_reentrant=True`) belong to the
outer one; `torch.autograd.grad` is no pass.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

import torch

_task = torch._C._current_graph_task_id


class Listener(Protocol):
    thread: int

    def backward_begins(self, tensors: Any) -> None: ...

    def backward_ends(self) -> None: ...


_listeners: list[Listener] = []
_original: Any = None
_lock = threading.Lock()


def listen(listener: Listener) -> None:
    global _original
    with _lock:
        _listeners.append(listener)
        if torch.autograd._engine_run_backward is not _observed:
            _original = torch.autograd._engine_run_backward
            torch.autograd._engine_run_backward = _observed


def stop_listening(listener: Listener) -> None:
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners and torch.autograd._engine_run_backward is _observed:  # or somebody has patched it since
            torch.autograd._engine_run_backward = _original


def _observed(tensors: Any, *args: Any, **kwargs: Any) -> Any:
    told: list[Listener] = []
    if kwargs.get("accumulate_grad") and _task() == -1:
        me = threading.get_ident()
        told = [one for one in _listeners if one.thread == me]
    for one in told:
        one.backward_begins(tensors)
    try:
        return _original(tensors, *args, **kwargs)
    finally:
        for one in told:
            one.backward_ends()

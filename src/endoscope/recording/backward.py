"""Tells captured steps when a backward pass begins and ends: `torch.autograd.backward` is patched while one is open.

It is the one name through which `loss.backward()` goes, whoever calls it. Passes inside of a pass (checkpointing with
`use_reentrant=True`) belong to the outer one.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

import torch

_task = torch._C._current_graph_task_id


class Listener(Protocol):
    thread: int

    def backward_begins(self, tensors: Any, args: Any, kwargs: Any) -> None: ...

    def backward_ends(self) -> None: ...


_listeners: list[Listener] = []
_original: Any = None
_lock = threading.Lock()


def listen(listener: Listener) -> None:
    global _original
    with _lock:
        _listeners.append(listener)
        if torch.autograd.backward is not _observed:
            _original = torch.autograd.backward
            torch.autograd.backward = _observed


def stop_listening(listener: Listener) -> None:
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners and torch.autograd.backward is _observed:  # or somebody has patched it since
            torch.autograd.backward = _original


def _observed(*args: Any, **kwargs: Any) -> Any:
    me = threading.get_ident()
    told = [one for one in _listeners if one.thread == me] if _task() == -1 else []
    for one in told:
        one.backward_begins(args[0] if args else kwargs.get("tensors"), args[1:], kwargs)
    try:
        return _original(*args, **kwargs)
    finally:
        for one in told:
            one.backward_ends()

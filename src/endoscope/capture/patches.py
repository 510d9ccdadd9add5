"""Who traces in which thread, and the patches of torch that are on meanwhile; `observers.py` says what is patched.

Patches are process-wide and counted: the first trace puts them on, the last takes them off.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from endoscope.capture import active
from endoscope.capture.active import ACTIVE, BLOCKS, recorders_here
from endoscope.capture.eager import run_compiled_code_again, run_compiled_code_eagerly
from endoscope.capture.observers import composites, observers
from endoscope.capture.patch_list import PatchList
from endoscope.capture.torch_private import mode_stack as _mode_stack
from endoscope.capture.torch_private import pop_mode as _pop_mode
from endoscope.capture.torch_private import push_mode as _push_mode

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

_composites = PatchList(composites)
_observers = PatchList(observers)


def open_composites() -> None:
    """Needed by every mode of ours: `has_torch_function` must not notice it."""
    with active.lock:
        _composites.put()


def close_composites() -> None:
    with active.lock:
        _composites.take_off()


def activate(recorder: Recorder) -> None:
    with active.lock:
        _put()
        ACTIVE.setdefault(threading.get_ident(), []).append(recorder)


def deactivate(recorder: Recorder) -> None:
    with active.lock:
        for thread, recorders in list(ACTIVE.items()):
            if recorder in recorders:
                recorders.remove(recorder)
                if not recorders:
                    del ACTIVE[thread]
                _take_off()


def _put() -> None:
    _composites.put()
    _observers.put()
    run_compiled_code_eagerly()


def _take_off() -> None:
    _observers.take_off()
    _composites.take_off()
    if not _observers.are_on:
        run_compiled_code_again()


@contextlib.contextmanager
def aside(recorder: Recorder) -> Iterator[None]:
    """Modules that are called meanwhile are no business of this recorder."""
    thread = threading.get_ident()
    recorders = ACTIVE.get(thread)
    if recorders is None or recorder not in recorders:
        yield
        return
    ACTIVE[thread] = [other for other in recorders if other is not recorder]
    try:
        yield
    finally:
        ACTIVE[thread] = recorders


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What happens meanwhile in this thread is in no trace that was begun before."""
    thread = threading.get_ident()
    recorders = ACTIVE.pop(thread, None)
    modes = _mode_stack()
    others = [mode for mode in modes if mode not in (recorders or ())]
    _exchange_modes(len(modes), others)
    if recorders is not None:
        ACTIVE[thread] = []
    try:
        yield
    finally:
        _exchange_modes(len(others), modes)
        ACTIVE.pop(thread, None)
        if recorders is not None:
            ACTIVE[thread] = recorders


def _exchange_modes(count: int, modes: list[Any]) -> None:
    for _ in range(count):
        _pop_mode()
    for mode in modes:
        _push_mode(mode)


def hold(block: Any) -> None:
    """Calls of `block.model` in this thread go through `block.run` until it is released."""
    with active.lock:
        _put()
        BLOCKS[threading.get_ident(), id(block.model)] = block


def release(block: Any, outer: Any, thread: int | None = None) -> None:
    """Back to the block around it, if there is one for the same model."""
    with active.lock:
        key = thread or threading.get_ident(), id(block.model)
        if outer is None:
            BLOCKS.pop(key, None)
        else:
            BLOCKS[key] = outer
        _take_off()


def block_around(model: torch.nn.Module) -> Any:
    """The innermost `editing` block of this thread for a model; None without one."""
    return BLOCKS.get((threading.get_ident(), id(model)))


def _after_fork() -> None:
    # Only the forking thread lives on; a lock held by another thread would never be released.
    active.lock = threading.RLock()
    for thread in [t for t in ACTIVE if t != threading.get_ident()]:
        for recorder in list(ACTIVE[thread]):
            deactivate(recorder)
    for thread, model in [key for key in BLOCKS if key[0] != threading.get_ident()]:
        release(BLOCKS[thread, model], None, thread)


def _before_fork() -> None:
    for recorder in recorders_here() or ():
        recorder.notice("fork", "the process was forked inside the traced code; what the child computes is not heard")


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)

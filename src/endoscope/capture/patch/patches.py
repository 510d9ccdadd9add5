"""Who traces in which thread, and the patches of torch that are on meanwhile; `observers.py` says what is patched.

Patches are process-wide and counted: the first trace puts them on, the last takes them off.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import torch

from endoscope.capture.patch import patch_list
from endoscope.capture.patch.active import ACTIVE, BLOCKS, EditsCalls, recorders_here
from endoscope.capture.patch.compiled import run_compiled_code_again, run_compiled_code_eagerly
from endoscope.capture.patch.composites import COMPOSITES
from endoscope.capture.patch.observers import OBSERVERS
from endoscope.capture.patch.sharding import SHARDING
from endoscope.capture.patch.torch_private import mode_stack as _mode_stack
from endoscope.capture.patch.torch_private import pop_mode as _pop_mode
from endoscope.capture.patch.torch_private import push_mode as _push_mode
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.source import find_wrappers


def activate(recorder: Recorder) -> None:
    find_wrappers()
    with patch_list.lock:
        _put()
        ACTIVE.setdefault(threading.get_ident(), []).append(recorder)


def deactivate(recorder: Recorder) -> None:
    with patch_list.lock:
        for thread, recorders in list(ACTIVE.items()):
            if recorder in recorders:
                recorders.remove(recorder)
                if not recorders:
                    del ACTIVE[thread]
                _take_off()


def _put() -> None:
    COMPOSITES.put()
    OBSERVERS.put()
    SHARDING.put()
    run_compiled_code_eagerly()


def _take_off() -> None:
    SHARDING.take_off()
    OBSERVERS.take_off()
    COMPOSITES.take_off()
    if not OBSERVERS.are_on:
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
def untraced() -> Iterator[None]:
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


def put_block(block: EditsCalls) -> None:
    """Calls of `block.model` in this thread go through `block.run` until it is released."""
    with patch_list.lock:
        _put()
        BLOCKS[threading.get_ident(), id(block.model)] = block


def remove_block(block: EditsCalls, outer: EditsCalls | None, thread: int | None = None) -> None:
    """Back to the block around it, if there is one for the same model."""
    with patch_list.lock:
        key = thread or threading.get_ident(), id(block.model)
        if outer is None:
            BLOCKS.pop(key, None)
        else:
            BLOCKS[key] = outer
        _take_off()


def block_around(model: torch.nn.Module) -> EditsCalls | None:
    """The innermost `editing` block of this thread for a model; None without one."""
    return BLOCKS.get((threading.get_ident(), id(model)))


def _after_fork() -> None:
    # Only the forking thread lives on; a lock held by another thread would never be released.
    patch_list.lock = threading.RLock()
    for thread in [t for t in ACTIVE if t != threading.get_ident()]:
        for recorder in list(ACTIVE[thread]):
            deactivate(recorder)
    for thread, model in [key for key in BLOCKS if key[0] != threading.get_ident()]:
        remove_block(BLOCKS[thread, model], None, thread)


def _before_fork() -> None:
    for recorder in recorders_here() or ():
        recorder.notice("fork", "the process was forked inside the traced code; what the child computes is not seen")


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)

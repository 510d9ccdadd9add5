"""Exchanges a few names of torch while something is being traced, and puts them back; `observers.py` says what for.

Patches are process-wide and counted: the first trace puts them in, the last takes them out.

    of every trace, every recorded step    what training calls all the time: modules, backward passes, …
    of a trace, or a whole run             what it hardly ever calls: threads, TorchScript, new parameters

The second kind stays where it is between the steps of a run (`stand`). Whoever calls it then gets the original, one
function later; to exchange it in every step would cost more than all that a step does with it, for nobody else has
brought it into the processor's cache.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import _get_current_function_mode_stack

from endoscope.capture import active
from endoscope.capture.active import ACTIVE, BLOCKS, recorders_here
from endoscope.capture.eager import run_compiled_code_again, run_compiled_code_eagerly
from endoscope.capture.exchange import NO_WAYS, Exchanges
from endoscope.capture.observers import all_exchanges, listen_for, shortcut, standing_exchanges

if TYPE_CHECKING:
    from endoscope.capture.recorder import Recorder

_push_mode, _pop_mode = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack
_exchanges = Exchanges()  # of the last time: a recording puts them in at every step
_standing = Exchanges()  # the same, of what is hardly ever called
_traces = 0
_runs = 0  # that want it to stay


def activate(recorder: Recorder) -> None:
    global _traces
    with active.lock:
        if not _exchanges.are_on and not _exchanges.put():
            _install()
        if not _standing.are_on and not _standing.put():
            _install_standing()
        run_compiled_code_eagerly()
        _traces += 1
        ACTIVE.setdefault(threading.get_ident(), []).append(recorder)
        listen_for(recorder)


def deactivate(recorder: Recorder) -> None:
    global _traces
    with active.lock:
        me = threading.get_ident()
        mine = ACTIVE.get(me)
        if mine is not None and len(mine) == 1 and mine[0] is recorder:  # the usual case, without lists
            del ACTIVE[me]
            _traces -= 1
        else:
            _take_out(recorder)
        shortcut.ways = NO_WAYS
        if not _traces:
            run_compiled_code_again()
            _exchanges.take_off()
            if not _runs:
                _standing.take_off()


def _take_out(recorder: Recorder) -> None:
    global _traces
    for thread, recorders in list(ACTIVE.items()):
        if recorder in recorders:
            recorders.remove(recorder)
            if not recorders:
                del ACTIVE[thread]
            _traces -= 1


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
    modes = _get_current_function_mode_stack()
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
    global _traces
    with active.lock:
        if not _exchanges.are_on and not _exchanges.put():
            _install()
        if not _standing.are_on and not _standing.put():
            _install_standing()
        run_compiled_code_eagerly()
        _traces += 1
        BLOCKS[threading.get_ident(), id(block.model)] = block


def release(block: Any, outer: Any, thread: int | None = None) -> None:
    """Back to the block around it, if there is one for the same model."""
    global _traces
    with active.lock:
        key = thread or threading.get_ident(), id(block.model)
        if outer is None:
            BLOCKS.pop(key, None)
        else:
            BLOCKS[key] = outer
        _traces -= 1
        if not _traces:
            run_compiled_code_again()
            _exchanges.take_off()
            if not _runs:
                _standing.take_off()


def stand() -> None:
    """What is hardly ever called stays exchanged, once it is, until `fall` is called as often."""
    global _runs
    with active.lock:
        _runs += 1


def fall() -> None:
    global _runs
    with active.lock:
        _runs -= 1
        if not _runs and not _traces:
            _standing.take_off()


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
    while _runs:  # they do not record here
        fall()


def _before_fork() -> None:
    for recorder in recorders_here() or ():
        recorder.notice("fork", "the process was forked inside the traced code; what the child computes is not heard")


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def _install() -> None:
    """For the first time, or because somebody else has exchanged something since."""
    global _exchanges
    _exchanges = all_exchanges()
    _exchanges.put()


def _install_standing() -> None:
    global _standing
    _standing = standing_exchanges()
    _standing.put()

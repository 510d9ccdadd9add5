"""Modes on the stacks of torch: ours stands below those of the user, and what we compute is seen by none of theirs.

Whoever leaves a `with` block then takes off a mode of their own, never ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from endoscope.capture.patch.torch_private import DisableTorchFunction as _without_functions
from endoscope.capture.patch.torch_private import dispatch_depth as _dispatch_depth
from endoscope.capture.patch.torch_private import global_device
from endoscope.capture.patch.torch_private import mode_stack as _mode_stack
from endoscope.capture.patch.torch_private import no_dispatch_modes as _no_dispatch_modes
from endoscope.capture.patch.torch_private import pop_mode as _pop
from endoscope.capture.patch.torch_private import push_mode as _push


def quiet() -> Any:
    """Around what we compute: neither modes of functions nor of dispatched operations see it."""
    return _without_functions() if not _dispatch_depth() else _without_both()


@contextlib.contextmanager
def _without_both() -> Iterator[None]:
    with _without_functions(), _no_dispatch_modes():
        yield


def put_on(mode: Any) -> None:
    """Nothing happens if it is on the stack."""
    modes = _mode_stack()
    if mode in modes:
        return
    # The default device is at the bottom, where torch looks for it; that of a `with` block is like any mode.
    default = getattr(global_device, "device_context", None)
    above = [_pop() for other in modes if other is not default]
    for other in (mode, *reversed(above)):
        _push(other)


def take_off(mode: Any) -> None:
    """Modes that others have put on top since stay where they are; nothing happens if it is not there.

    It is off already, or somebody else's exit took it.
    """
    if mode in _mode_stack():
        above = []
        while (top := _pop()) is not mode:
            above.append(top)
        for other in reversed(above):
            _push(other)

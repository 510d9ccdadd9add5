"""A function mode of ours on torch's stack: put on below the modes of the user, taken off wherever it stands.

Whoever leaves a `with` block then takes off a mode of their own, never ours.
"""

from __future__ import annotations

from typing import Any

from endoscope.capture.torch_private import global_device
from endoscope.capture.torch_private import mode_stack as _mode_stack
from endoscope.capture.torch_private import pop_mode as _pop
from endoscope.capture.torch_private import push_mode as _push
from endoscope.capture.torch_private import stack_at as _at
from endoscope.capture.torch_private import stack_depth as _depth


def put_on(mode: Any) -> None:
    """Nothing happens if it is on the stack."""
    if _depth() == 0:
        _push(mode)
        return
    modes = _mode_stack()
    if mode in modes:
        return
    # The default device is at the bottom, where torch looks for it; that of a `with` block is like any mode.
    default = getattr(global_device, "device_context", None)
    above = [_pop() for other in modes if other is not default]
    _push(mode)
    for other in reversed(above):
        _push(other)


def take_off(mode: Any) -> None:
    """Modes that others have put on top since stay where they are; nothing happens if it is not there."""
    if _depth() == 1 and _at(0) is mode:
        _pop()
        return
    if mode not in _mode_stack():
        return  # it is off, or somebody else's exit took it
    above = []
    while (top := _pop()) is not mode:
        above.append(top)
    for other in reversed(above):
        _push(other)

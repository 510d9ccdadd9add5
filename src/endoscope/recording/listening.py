"""Puts the recorder of a step on torch's stack of modes and takes it off again, wherever it stands in it."""

from __future__ import annotations

from itertools import repeat
from operator import contains, itemgetter
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import _get_current_function_mode_stack

from endoscope.capture.compiled_calls import put_back_compiled, take_off_compiled
from endoscope.capture.patches import activate, deactivate

if TYPE_CHECKING:
    from endoscope.recording.hearing import StepRecorder

_module = itemgetter(1)  # of an address and a module
_COMPILED = repeat("_compiled_call_impl")
_push_mode, _pop_mode = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack
_stack_depth, _stack_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at


class Listener:
    """Whether the recorder of one step hears functions, and modules at all."""

    def __init__(self, recorder: StepRecorder) -> None:
        self.recorder = recorder
        self.listening = False
        self.is_open = False
        self._attributes: list[Any] = []  # of the modules
        self._compiled: list[tuple[torch.nn.Module, Any]] = []  # calls that were compiled in place

    def open(self) -> None:
        self.is_open = True
        activate(self.recorder)
        addresses = self.recorder.calls.addresses
        if len(addresses) != len(self._attributes):
            self._attributes = [*map(vars, map(_module, addresses.values()))]
        if any(map(contains, self._attributes, _COMPILED)):
            self._compiled = take_off_compiled([*map(_module, addresses.values())])
        if _stack_depth() == 0:  # what `resume` does then
            self.listening = True
            _push_mode(self.recorder)
        else:
            self.resume()

    def resume(self) -> None:
        """Below the modes of others: whoever leaves a block then takes off a mode of their own, never ours."""
        if not self.listening:
            self.listening = True
            if _stack_depth() == 0:
                _push_mode(self.recorder)
                return
            # The default device is at the bottom, where torch looks for it; that of a `with` block is like any mode.
            default = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
            modes = _get_current_function_mode_stack()
            above = [_pop_mode() for mode in modes if mode is not default]
            _push_mode(self.recorder)
            for mode in reversed(above):
                _push_mode(mode)

    def pause(self) -> None:
        """Modes that others have put on top since stay where they are."""
        if not self.listening:
            return
        self.listening = False
        if _stack_depth() == 1 and _stack_at(0) is self.recorder:
            _pop_mode()
            return
        if self.recorder not in _get_current_function_mode_stack():
            return  # somebody else's exit took it off
        above = []
        while (mode := _pop_mode()) is not self.recorder:
            above.append(mode)
        for mode in reversed(above):
            _push_mode(mode)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self.listening and _stack_depth() == 1 and _stack_at(0) is self.recorder:  # what `pause` does then
                self.listening = False
                _pop_mode()
            else:
                self.pause()
            if self._compiled:
                put_back_compiled(self._compiled)
                self._compiled = []
            deactivate(self.recorder)

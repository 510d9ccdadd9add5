"""Calls of modules in a noted step that go to the notes straight from `nn.Module.__call__`.

    a model      what the long way asks before it calls `forward`, and no hook but ours has to be called
    a container  of known modules: `chains.py`
    a module     that is known: `known_calls.py`

What is unusual goes the long way, which is `Notes.call`. A failure here is ours: the module is called all the same.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.active import ACTIVE, BLOCKS
from endoscope.recording.chains import Chain, chains_among
from endoscope.recording.known_calls import GLOBAL_HOOKS, HOOKS_OF_MODULE, Known, all_hold

if TYPE_CHECKING:
    from endoscope.recording.hearing import StepRecorder

#: What is called with what is known, the observer that knows the long way, the module, and its arguments.
Way = tuple[Callable[..., Any], Any]
_in_backward = torch._C._current_graph_task_id
_jit_trace = torch._C._get_tracing_state
_unheard = torch._C.DisableTorchFunction
_grad_on = torch.is_grad_enabled
_stack_depth, _stack_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
_VALUES = methodcaller("values")
_getframe, _get_ident = sys._getframe, threading.get_ident


class Shortcuts:
    """Those of one recorder, by the ids of the modules; made anew when more is known."""

    def __init__(self, recorder: StepRecorder, own_hooks: dict[int, list[list[Any]]]) -> None:
        """`own_hooks` are those that a model has if nobody else has put any on it, by its id."""
        self._recorder, self._notes = recorder, recorder.notes
        self._own_hooks = own_hooks
        self.chains: dict[int, Chain] = {}
        self.ways: dict[int, Way] = {}
        self._count = -1  # of known modules
        self._alone = [recorder]

    def look(self) -> None:
        """A step begins."""
        known = self._recorder.known_calls
        if self._count != len(known):
            self._count = len(known)
            modules = [module for _, module in self._recorder.calls.addresses.values()]
            self.chains = chains_among(modules, known)
            self.ways.clear()
            self.ways.update({identity: (self._call_known, one) for identity, one in known.items()})
            self.ways.update({identity: (self._call_chain, chain) for identity, chain in self.chains.items()})
            self.ways.update({identity: (self._call_model, None) for identity in self._recorder.roots})

    # Behind each of these, a function of `exchange.py` and, mostly, that of `nn.Module.__call__`.

    def _call_model(self, _: None, observer: Any, model: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        recorder, bare = self._recorder, False
        try:
            bare = (
                not kwargs
                and not recorder.inside_target
                and not recorder.ignores_evaluation  # nor do our hooks: the step is the user's own block
                and recorder.postpones
                and not recorder.resting
                and ACTIVE.get(_get_ident()) == self._alone
                and not BLOCKS
                and _in_backward() == -1
                and _jit_trace() is None
                and _stack_depth() == 1
                and _stack_at(0) is recorder
                and not any(GLOBAL_HOOKS)
                and [*map(list, map(_VALUES, HOOKS_OF_MODULE(model.__dict__)))] == self._own_hooks.get(id(model))
            )
        except Exception as error:
            recorder.give_up("the call of a model", error)
        if not bare:
            return observer(model, args, kwargs)
        recorder.models_called += 1
        return self._notes.call(None, model, args, kwargs)

    def _call_chain(self, chain: Chain, observer: Any, container: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        notes, position = self._notes, None
        try:
            if self._is_usual(args, kwargs):
                recorder = self._recorder
                written = recorder.aliasing.readers
                if chain.still_holds(recorder.ids if notes.were_read else None, written):
                    position, calls = notes.position(_getframe(2)), chain.calls.now()
        except Exception as error:
            self._recorder.give_up("a module call", error)
            position = None
        if position is None:
            return observer(container, args, kwargs)
        return notes.run(chain, calls, args[0], position)

    def _call_known(self, known: Known, observer: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        notes, position = self._notes, None
        try:
            if self._is_usual(args, kwargs):
                recorder = self._recorder
                # Slots of parameters change when somebody writes into them, and then notes are read.
                if all_hold((known,), recorder.ids if notes.were_read else None, recorder.aliasing.readers):
                    position = notes.position(_getframe(2))
        except Exception as error:
            self._recorder.give_up("a module call", error)
            position = None
        if position is None:
            return observer(module, args, kwargs)
        given, ahead = args[0], self._recorder.ahead
        with _unheard():
            copies = ahead.waiting.pop(id(module), None)
            if copies is not None and copies.make_if_fit():
                ahead.done.append(id(module))
            out = known.forward(module, given)  # without hooks torch would do nothing else
            notes.known(known, given, out, position)
        return out

    def _is_usual(self, args: Any, kwargs: Any) -> bool:
        """A module inside of a model gets one ordinary tensor, and nobody but the recorder has a part in it."""
        recorder = self._recorder
        return (
            not kwargs
            and len(args) == 1
            and args[0].__class__ is Tensor
            and recorder.postpones
            and recorder.inside_target
            and ACTIVE.get(_get_ident()) == self._alone
            and not BLOCKS
            and _in_backward() == -1
            and _jit_trace() is None
            and id(args[0]) not in recorder.aliasing.readers
            and _grad_on()  # or what it returns may be made to have a gradient later, which is not its own
        )

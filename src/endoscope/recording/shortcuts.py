"""Calls of modules in a noted step that go to the notes straight from `nn.Module.__call__`.

    a model     no hook but ours has to be called, and the step is one that does not need ours: its `forward` is called
    a chain     of known modules, or a single one: `chains.py`

What is unusual goes the long way, which is `Notes.call`. A failure here is ours: the module is called all the same.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture.active import ACTIVE, BLOCKS
from endoscope.recording.chains import Chain, Chains
from endoscope.recording.known_calls import GLOBAL_HOOKS, HOOKS_OF_MODULE

if TYPE_CHECKING:
    from endoscope.recording.hearing import StepRecorder

#: What is called with what is known, the observer that knows the long way, the module, and its arguments.
Way = tuple[Callable[..., Any], Any]
_in_backward = torch._C._current_graph_task_id
_jit_trace = torch._C._get_tracing_state
_grad_on = torch.is_grad_enabled
_stack_depth, _stack_at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
_VALUES = dict.values  # also of an OrderedDict, whose own view takes longer
_getframe, _get_ident = sys._getframe, threading.get_ident


class Shortcuts:
    """Those of one recorder, by the ids of the modules; made anew when more is known."""

    def __init__(self, recorder: StepRecorder, known: Chains, own_hooks: dict[int, list[list[Any]]]) -> None:
        """`own_hooks` are those that a model has if nobody else has put any on it, by its id."""
        self._recorder, self._notes = recorder, recorder.notes
        self._own_hooks = own_hooks
        self._known = known
        self.chains: dict[int, Chain] = {}  # containers
        self.ways: dict[int, Way] = {}
        self.count = -1  # of known modules
        self._alone = [recorder]

    def look(self) -> None:
        """More modules are known than before."""
        recorder, known = self._recorder, self._known
        known.look([module for _, module in recorder.calls.addresses.values()], recorder.known_calls)
        self.count, self.chains = known.count, known.containers
        self.ways.clear()
        if recorder.postpones:  # others do not ask for them
            chains = known.single | known.containers
            self.ways.update({identity: (self._call_chain, chain) for identity, chain in chains.items()})
            self.ways.update(dict.fromkeys(recorder.roots, (self._call_model, None)))

    # Behind each of these, a function of `exchange.py` and, mostly, that of `nn.Module.__call__`.

    def _call_model(self, _: None, observer: Any, model: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        recorder, bare = self._recorder, False
        try:
            bare = (
                not kwargs
                and not recorder.inside_target
                and not recorder.ignores_evaluation  # then steps begin and end with hooks
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

    def _call_chain(self, chain: Chain, observer: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        recorder, notes, position, calls = self._recorder, self._notes, None, None
        try:
            if (
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
                # Slots of parameters change when somebody writes into them, and then notes are read.
                and chain.still_holds(recorder.ids if notes.were_read else None, recorder.aliasing.readers)
            ):
                calls = chain.calls.now()
                position = notes.position(_getframe(2))
        except Exception as error:
            recorder.give_up("a module call", error)
            position = None
        if position is None or calls is None:
            return observer(module, args, kwargs)
        return notes.run(chain, calls, args[0], position)

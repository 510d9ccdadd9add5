"""What is heard of a step that may still be decided against: written down now, understood when somebody asks.

    model(x), torch.relu(x)   ─► one note each, which holds what the call was given and what it returned
    step.decide(keep=False)   ─► the notes are thrown away, and nothing was ever worked out
    anything else             ─► StepRecorder.catch_up ─► the notes are gone through as if it all happened now

Why that comes to the same: notes are taken only of calls that write nothing and whose arguments nobody can change, and
whatever else is heard (a write, a list of tensors, a tag, an error) makes the recorder catch up first. So tensors are
what they were when the notes about them are read. Who writes unheard is found out as ever, by the version in the note.

Hooks for gradients are put on when a backward pass begins, straight from the notes (`before_pass`).
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter

from endoscope.capture.active import ACTIVE, BLOCKS
from endoscope.capture.leaves import ATOMS
from endoscope.capture.regions import version_of
from endoscope.capture.source import INNER_FILES
from endoscope.recording.chains import IN_SEQUENCE, Chain, chain_of
from endoscope.recording.known_calls import all_hold, own_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from endoscope.recording.cells import Rectified
    from endoscope.recording.hearing import StepRecorder
    from endoscope.recording.known_calls import Known

MOST = 64  # notes: they hold tensors that training may have let go of
CALLED, KNOWN, BEGUN, ENDED, HELD = range(5)  # what a note is about
_CALL = own_code(torch.nn.Module._wrapped_call_impl, torch.nn.modules.module)
_RELU = torch.nn.ReLU.forward
_in_backward = torch._C._current_graph_task_id
_jit_trace = torch._C._get_tracing_state
_unheard = torch._C.DisableTorchFunction
_grad_on = torch.is_grad_enabled
_LASTING = ATOMS | {Tensor, Parameter}  # arguments that nobody can change after a call


class Notes:
    """The notes of one step, in order."""

    def __init__(self, recorder: StepRecorder) -> None:
        self._recorder = recorder
        self.taken: list[tuple[Any, ...]] = []
        self.were_read = False
        self._steps = 0  # that are over
        self._container: tuple[Any, Any] = (None, None)  # the frame of a container that runs; the user's line around it
        self._chains: dict[
            int, Chain | None
        ] = {}  # by the id of the container; None if it is not made of known modules

    def clear(self) -> None:
        self.taken.clear()
        self._container = (None, None)

    def end_step(self) -> None:
        self._steps += 1
        self.clear()

    # ---- taking notes ----------------------------------------------------------------------------

    def make_ear(self, hear: Callable[..., Any]) -> Callable[..., Any]:
        """What is called for every function of torch; `hear` understands all of them, at once."""
        recorder, taken = self._recorder, self.taken
        simple, passing, slow = recorder.simple, recorder.passing, recorder.slow
        getframe, inner, lasting, backward = sys._getframe, INNER_FILES, _LASTING, Tensor.backward

        def note(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not recorder.postpones or recorder.resting or _in_backward() != -1:
                return hear(mode, func, types, args, kwargs)
            if func not in simple:
                if func in passing:
                    return func(*args, **kwargs) if kwargs else func(*args)
                if func is not backward or func not in slow:
                    recorder.catch_up()
                return hear(mode, func, types, args, kwargs)
            for value in args:
                if value.__class__ not in lasting:
                    recorder.catch_up()
                    return hear(mode, func, types, args, kwargs)
            if kwargs and ("out" in kwargs or not lasting.issuperset(map(type, kwargs.values()))):
                recorder.catch_up()
                return hear(mode, func, types, args, kwargs)
            frame = getframe(1)
            while inner[frame.f_code.co_filename] and frame.f_back is not None:
                frame = frame.f_back
            try:
                versions = [value._version for value in args if value.__class__ is Tensor]
            except RuntimeError:  # inference tensors do not count
                versions = [version_of(value) for value in args if value.__class__ is Tensor]
            out = func(*args, **kwargs) if kwargs else func(*args)
            taken.append((CALLED, func, args, kwargs, out, frame.f_code, frame.f_lasti, versions))
            if out.__class__ is not Tensor or len(taken) > MOST:
                recorder.catch_up()
            return out

        return note

    def make_shortcut(self) -> tuple[Callable[..., Any], ...]:
        """What knows of a module by its id, and what is called then: see `exchange.Shortcut`.

        What fails here is ours: the module is called all the same.
        """
        recorder, taken, known_calls = self._recorder, self.taken, self._recorder.known_calls
        waiting, done = recorder.ahead.waiting, recorder.ahead.done
        ids, written, alone = recorder.ids, recorder.aliasing.readers, [self._recorder]
        getframe, get_ident = sys._getframe, threading.get_ident

        def call_known(known: Known, observer: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
            position = None
            try:
                if (
                    not kwargs
                    and len(args) == 1
                    and (given := args[0]).__class__ is Tensor
                    and recorder.postpones
                    and recorder.inside_target
                    and ACTIVE.get(get_ident()) == alone
                    and not BLOCKS
                    and _in_backward() == -1
                    and _jit_trace() is None
                    and id(given) not in written
                    and _grad_on()  # or what it returns may be made to have a gradient later, which is not its own
                    # Slots of parameters change when somebody writes into them, and then notes are read.
                    and all_hold((known,), ids if self.were_read else None, written)
                ):
                    # Behind this, a function of `exchange.py` and, mostly, that of `nn.Module.__call__`.
                    frame, position = self._container
                    caller: Any = getframe(2)
                    if caller.f_code is _CALL:
                        caller = caller.f_back
                    if caller is not frame:
                        position = self._position(caller)
            except Exception as error:
                recorder.give_up("a module call", error)
                position = None
            if position is None:
                return observer(module, args, kwargs)
            with _unheard():
                copies = waiting.pop(id(module), None)
                if copies is not None and copies.make_if_fit():
                    done.append(id(module))
                out = known.forward(module, given)  # without hooks torch would do nothing else
                try:
                    taken.append((KNOWN, known, given, out, out._version, position))
                except RuntimeError:  # inference tensors do not count
                    taken.append((KNOWN, known, given, out, -1, position))
            return out

        return known_calls.get, call_known

    def call(self, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        """A module about which nothing is known."""
        recorder, inside = self._recorder, self._recorder.inside_target
        if not (inside and recorder.postpones and not recorder.resting) and not recorder.may_note(module):
            return recorder.__class__.call_module(recorder, original, module, args, kwargs)
        root, steps, position = not inside and id(module) in recorder.roots, self._steps, None
        try:
            if kwargs or not _LASTING.issuperset(map(type, args)):
                recorder.begin_module(module, args, kwargs)
            else:
                # Behind this, one function of `observers.py` and one of `exchange.py`, and mostly `nn.Module.__call__`.
                caller: Any = sys._getframe(3)
                if caller.f_code is _CALL:
                    caller = caller.f_back
                versions: list[int] = []
                if root:
                    with _unheard():
                        versions = [version_of(value) for value in args if value.__class__ is Tensor]
                position = self._position(caller)
                self.taken.append((BEGUN, module, args, position, root, versions, _grad_on()))
                recorder.inside_target = inside or root
        except Exception as error:
            recorder.give_up("a module call", error)
        try:
            chain = self._chain(module, args) if inside and position is not None else None
            out = original(module, *args, **kwargs) if chain is None else self._run(chain, args[0], position)
        except BaseException:
            if self._steps == steps:
                recorder.end_current(root)
            raise
        if self._steps != steps:  # the step was over when the module had hardly begun: its hook says so
            return out
        if out.__class__ is not Tensor or not recorder.postpones:
            recorder.end_current(root, out)
            return out
        try:
            self.end(out, root)
        except Exception as error:
            recorder.give_up("the result of a module", error)
        return out

    def _chain(self, module: torch.nn.Module, args: Any) -> Chain | None:
        """What the call of a container consists of, if that is known."""
        if module.__class__ is not torch.nn.Sequential:
            return None
        chain, recorder = self._chains.get(id(module)), self._recorder
        try:
            if chain is None:  # it may be known the next time
                self._chains[id(module)] = chain_of(module, recorder.known_calls)
                return None
            ids, written = recorder.ids if self.were_read else None, recorder.aliasing.readers
            holds = (
                len(args) == 1
                and args[0].__class__ is Tensor
                and recorder.postpones
                and id(args[0]) not in written
                and _jit_trace() is None
                and _grad_on()
                and chain.still_holds(module, ids, written)
            )
        except Exception as error:
            recorder.give_up("a module call", error)
            return None
        return chain if holds else None

    def _run(self, chain: Chain, given: Tensor, position: Any) -> Tensor:
        """The modules of a container, one after the other."""
        taken, waiting, done = self.taken, self._recorder.ahead.waiting, self._recorder.ahead.done
        with _unheard():
            for known in chain.links:
                module = known.module
                copies = waiting.pop(id(module), None)
                if copies is not None and copies.make_if_fit():
                    done.append(id(module))
                out = known.forward(module, given)
                taken.append((KNOWN, known, given, out, out._version, position))
                given = out
        return given

    def end(self, out: Tensor, root: bool) -> None:
        """A module that was called has returned one tensor."""
        recorder = self._recorder
        self._container = (None, None)
        with _unheard():
            try:
                version = out._version
            except RuntimeError:  # inference tensors do not count
                version = -1
            self.taken.append((ENDED, out, version, _grad_on(), root))
            if root:
                recorder.inside_target = False
                if out.grad_fn is not None:
                    recorder.holder.gradients.tell_of_pass(out)
        if len(self.taken) > MOST:
            recorder.catch_up()

    def hold(self, name: str, kind: str, tensor: Tensor) -> None:
        """A tensor is to be held under a name; no function is heard meanwhile."""
        self.taken.append((HELD, name, kind, tensor, version_of(tensor)))

    def _position(self, caller: Any) -> tuple[Any, int]:
        """The user's line that calls a module: a container calls all of its modules for the same line."""
        frame = caller
        while frame is not None and INNER_FILES[frame.f_code.co_filename]:  # `position_outside`, in the same function
            frame = frame.f_back
        position = (frame.f_code, frame.f_lasti) if frame is not None else (None, -1)
        if caller.f_code is IN_SEQUENCE:
            self._container = (caller, position)
        return position

    # ---- before a backward pass ------------------------------------------------------------------

    def before_pass(self) -> None:
        """Put hooks on what will be held. Catch up if it takes more than the notes to know what that is."""
        recorder, made = self._recorder, set[int]()
        held: list[Tensor] = []
        rectified: list[Rectified] = []
        line = None  # of the known module that was called last
        for note in self.taken:
            kind = note[0]
            if kind == KNOWN:
                given = note[2:3]
                # One and the same line: a container has called both, and nobody else ever had what it handed over.
                if note[5] is line and note[1].forward is _RELU and held[-1] is note[2] is not note[3]:
                    rectified.append((held.pop(), note[3], note[4]))
                    line = None  # what came out is held, also if it goes into another one
                else:
                    line = note[5]
                held.append(note[3])
                made.add(id(note[3]))
            elif kind == CALLED:
                given = note[2] if not note[3] else (*note[2], *note[3].values())
                made.add(id(note[4]))
            elif kind == BEGUN:
                given = note[2] if note[4] and note[6] else ()
                held += [value for value in given if value.__class__ is Tensor]
            else:
                given = ()
                if kind == HELD:
                    held.append(note[3])
                elif note[3]:
                    held.append(note[1])
            for value in given:
                if id(value) not in made and value.__class__ is Tensor and value.requires_grad:
                    if not recorder.knows(value):  # from outside of the step: its gradient is recorded, too
                        recorder.catch_up()
                        return
        if not recorder.holder.gradients.gather(held, rectified):
            recorder.catch_up()

    def held(self) -> list[Tensor]:
        """What the notes hold for good, but for what modules have computed into memory of their own."""
        found: list[Tensor] = []
        for note in self.taken:
            kind = note[0]
            if kind == ENDED:
                found.append(note[1])
            elif kind == HELD:
                found.append(note[3])
            elif kind == BEGUN and note[4]:
                found += [value for value in note[2] if value.__class__ is Tensor]
        return found

    # ---- reading them ----------------------------------------------------------------------------

    def read(self) -> None:
        """Tell the recorder; no function is heard meanwhile."""
        recorder, notes = self._recorder, self.taken.copy()
        self.clear()
        self.were_read = True
        # Where it was when the first note was taken: outside of all models if the first that is said is that it enters.
        entering = next((kind == BEGUN for kind, *facts in notes if kind in (BEGUN, ENDED) and facts[3]), None)
        if entering is not None:
            recorder.inside_target = not entering
        for kind, *facts in notes:
            if kind == CALLED:
                func, args, kwargs, out, code, instruction, versions = facts
                held = recorder.kept.keys() | ()
                recorder.understand(func, recorder.simple[func], args, kwargs, out, code, instruction, 0, 0)
                recorder.noted_versions(args, versions, held)
            elif kind == KNOWN:
                recorder.known_was_called(*facts)
            elif kind == BEGUN:
                module, args, position, _, versions, with_grad = facts
                with torch.set_grad_enabled(with_grad):
                    recorder.module_began(module, args, position, versions)
            elif kind == ENDED:
                out, version, with_grad, root = facts
                with torch.set_grad_enabled(with_grad):
                    recorder.end_current(root, out, version)
            else:
                name, what, tensor, version = facts
                recorder.holder.hold(name, "", what, tensor, version=version)

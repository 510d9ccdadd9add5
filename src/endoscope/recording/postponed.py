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
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.modules import container

from endoscope.capture.leaves import ATOMS
from endoscope.capture.source import INNER_FILES
from endoscope.recording.known_calls import own_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from endoscope.recording.hearing import StepRecorder
    from endoscope.recording.known_calls import Known

MOST = 64  # notes: they hold tensors that training may have let go of
CALLED, KNOWN, BEGUN, ENDED, HELD = range(5)  # what a note is about
IN_SEQUENCE = own_code(torch.nn.Sequential.forward, container)
_in_backward = torch._C._current_graph_task_id
_unheard = torch._C.DisableTorchFunction
_grad_on = torch.is_grad_enabled
_LASTING = ATOMS | {Tensor, Parameter}  # arguments that nobody can change after a call


class Notes:
    """The notes of one step, in order."""

    def __init__(self, recorder: StepRecorder) -> None:
        self._recorder = recorder
        self.taken: list[tuple[Any, ...]] = []
        self.were_read = False
        self._container: tuple[Any, Any] = (None, None)  # the frame of a container that runs; the user's line around it

    def clear(self) -> None:
        self.taken.clear()
        self._container = (None, None)

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
            out = func(*args, **kwargs) if kwargs else func(*args)
            taken.append((CALLED, func, args, kwargs, out, frame.f_code, frame.f_lasti))
            if out.__class__ is not Tensor or len(taken) > MOST:
                recorder.catch_up()
            return out

        return note

    def call(self, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        """A module is called. What fails here is ours: the module is called all the same."""
        recorder, inside = self._recorder, self._recorder.inside_target
        try:
            position = self._position()
            known = recorder.known_calls.get(id(module)) if inside and len(args) == 1 and not kwargs else None
            if known is not None and not self._is_known(known, args[0]):
                known = None
        except Exception as error:
            recorder.give_up("a module call", error)
            return original(module, *args, **kwargs)
        if known is not None:
            with _unheard():
                out = original(module, *args)
                self.taken.append((KNOWN, known, args[0], out, _version(out), position))
            return out
        root = not inside and id(module) in recorder.roots
        if kwargs or not _LASTING.issuperset(map(type, args)):
            recorder.begin_module(module, args, kwargs)
        else:
            self.taken.append((BEGUN, module, args, position, root))
            recorder.inside_target = inside or root
        try:
            out = original(module, *args, **kwargs)
        except BaseException:
            recorder.end_current(root)
            raise
        if out.__class__ is Tensor and recorder.postpones:
            self.end(out, root)
        else:
            recorder.end_current(root, out)
        return out

    def end(self, out: Tensor, root: bool) -> None:
        """A module that was called has returned one tensor."""
        recorder = self._recorder
        self._container = (None, None)
        with _unheard():
            self.taken.append((ENDED, out, _version(out), _grad_on(), root))
            if root:
                recorder.inside_target = False
                if out.grad_fn is not None:
                    recorder.holder.gradients.tell_of_pass(out)
        if len(self.taken) > MOST:
            recorder.catch_up()

    def hold(self, name: str, kind: str, tensor: Tensor) -> None:
        """A tensor is to be held under a name; no function is heard meanwhile."""
        self.taken.append((HELD, name, kind, tensor, _version(tensor)))

    def _is_known(self, known: Known, given: Any) -> bool:
        ids, written = self._recorder.ids, self._recorder.aliasing.readers
        return given.__class__ is Tensor and id(given) not in written and known.still_holds(ids, written)

    def _position(self) -> tuple[Any, int]:
        """The user's line that calls a module: a container calls all of its modules for the same line."""
        # Behind this, `call`, `call_module`, two functions of `patches.py` and that of `nn.Module.__call__`.
        first: Any = sys._getframe(6)
        if first is self._container[0]:
            return self._container[1]  # type: ignore[no-any-return]
        frame = first
        while INNER_FILES[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        position = (frame.f_code, frame.f_lasti)
        if first.f_code is IN_SEQUENCE:
            self._container = (first, position)
        return position

    # ---- before a backward pass ------------------------------------------------------------------

    def before_pass(self) -> None:
        """Put hooks on what will be held. Catch up if it takes more than the notes to know what that is."""
        made: set[int] = set()
        for note in self.taken:
            kind = note[0]
            if kind == KNOWN:
                fine = self._is_ours(note[2], made) and self._gathered(note[3], made)
            elif kind == CALLED:
                given = note[2] if not note[3] else (*note[2], *note[3].values())
                fine = all([self._is_ours(value, made) for value in given if value.__class__ is Tensor])
                made.add(id(note[4]))
            elif kind == BEGUN:
                fine = not note[4] or all([self._is_ours(value, made) for value in note[2]])
            elif kind == ENDED:
                fine = not note[3] or self._gathered(note[1], made)
            else:
                fine = self._gathered(note[3], made)
            if not fine:
                self._recorder.catch_up()
                return

    def _is_ours(self, value: Any, made: set[int]) -> bool:
        """Not if it comes from outside of the step and has a gradient, which is then recorded, too."""
        if id(value) in made or value.__class__ is not Tensor:
            return True
        return not value.requires_grad or self._recorder.knows(value)

    def _gathered(self, out: Tensor, made: set[int]) -> bool:
        """Whether the gradients of what will be held are taken, if there will be any."""
        grad_fn = out.grad_fn
        if grad_fn is None:
            return not out.requires_grad
        made.add(id(out))
        self._recorder.holder.gradients.gather(out, grad_fn)
        return True

    def held(self) -> Iterator[Tensor]:
        """What the notes hold for good, but for what modules have computed into memory of their own."""
        for kind, *facts in self.taken:
            if kind == BEGUN and facts[3]:
                yield from [value for value in facts[1] if value.__class__ is Tensor]
            elif kind == ENDED:
                yield facts[0]
            elif kind == HELD:
                yield facts[2]

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
                func, args, kwargs, out, code, instruction = facts
                recorder.understand(func, recorder.simple[func], args, kwargs, out, code, instruction, 0, 0)
            elif kind == KNOWN:
                recorder.known_was_called(*facts)
            elif kind == BEGUN:
                module, args, position, _ = facts
                recorder.module_began(module, args, position)
            elif kind == ENDED:
                out, version, with_grad, root = facts
                with torch.set_grad_enabled(with_grad):
                    recorder.end_current(root, out, version)
            else:
                name, what, tensor, version = facts
                recorder.holder.hold(name, "", what, tensor, version=version)


def _version(tensor: Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # inference tensors do not count
        return -1

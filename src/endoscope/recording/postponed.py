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

from endoscope.capture.leaves import ATOMS
from endoscope.capture.regions import VERSION as _VERSION
from endoscope.capture.regions import version_of, versions_of
from endoscope.capture.source import INNER_FILES
from endoscope.recording.chains import IN_SEQUENCE, RELU, chain_of_one
from endoscope.recording.following import Followed, comes_out_the_same, has_hooks_of_others, is_ordinary
from endoscope.recording.known_calls import own_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from endoscope.recording.bare_calls import Call
    from endoscope.recording.cells import Rectified
    from endoscope.recording.chains import Chain
    from endoscope.recording.hearing import StepRecorder

MOST = 64  # notes: they hold tensors that training may have let go of
CALLED, CHAIN, BEGUN, ENDED, HELD = range(5)  # what a note is about
_CALL = own_code(torch.nn.Module._wrapped_call_impl, torch.nn.modules.module)
_in_backward = torch._C._current_graph_task_id
_unheard = torch._C.DisableTorchFunction
_grad_on = torch.is_grad_enabled
_TENSORS = frozenset({Tensor})
_LASTING = ATOMS | {Tensor, Parameter}  # arguments that nobody can change after a call


class Notes:
    """The notes of one step, in order."""

    def __init__(self, recorder: StepRecorder) -> None:
        self.recorder = recorder
        self.taken: list[tuple[Any, ...]] = []
        self.were_read = False
        self._steps = 0  # that are over
        self._container: tuple[Any, Any] = (None, None)  # the frame of a container that runs; the user's line around it

    def clear(self) -> None:
        self.taken.clear()
        self._container = (None, None)

    def end_step(self) -> None:
        """Forget it; if there were only notes of it, the recorder can hear another one."""
        recorder = self.recorder
        self._steps += 1
        self.taken.clear()
        self._container = (None, None)
        recorder.losses.clear()
        recorder.inside_target = recorder.ignores_evaluation = recorder.resting = False
        recorder.models_called, recorder.random_state = 0, None

    # ---- taking notes ----------------------------------------------------------------------------

    def make_ear(self, hear: Callable[..., Any]) -> Callable[..., Any]:
        """What is called for every function of torch; `hear` understands all of them, at once."""
        recorder, taken = self.recorder, self.taken
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
            tensors = []
            for value in args:
                if value.__class__ is Tensor:
                    tensors.append(value)
                elif value.__class__ not in lasting:
                    recorder.catch_up()
                    return hear(mode, func, types, args, kwargs)
            if kwargs and ("out" in kwargs or not lasting.issuperset(map(type, kwargs.values()))):
                recorder.catch_up()
                return hear(mode, func, types, args, kwargs)
            frame = getframe(1)
            while inner[frame.f_code.co_filename] and frame.f_back is not None:
                frame = frame.f_back
            try:
                versions = [*map(_VERSION, tensors)]
            except RuntimeError:  # inference tensors do not count
                versions = versions_of(tensors)
            out = func(*args, **kwargs) if kwargs else func(*args)
            taken.append((CALLED, func, args, kwargs, out, frame.f_code, frame.f_lasti, versions))
            if out.__class__ is not Tensor or len(taken) > MOST:
                recorder.catch_up()
            return out

        return note

    def call(self, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        """A module about which nothing is known; `original` is None if its `forward` is all that is to be called."""
        recorder, inside = self.recorder, self.recorder.inside_target
        may = original is None or (inside and recorder.postpones and not recorder.resting)
        if not may and not recorder.may_note(module):
            return recorder.__class__.call_module(recorder, original, module, args, kwargs)
        root, steps, chain = not inside and id(module) in recorder.roots, self._steps, None
        try:
            if kwargs or not _LASTING.issuperset(map(type, args)):
                recorder.begin_module(module, args, kwargs)
            else:
                # Behind this, one function of ours and one of `exchange.py`, and mostly `nn.Module.__call__`.
                position = self.position(sys._getframe(3))
                versions: list[int] = []
                if root:
                    with _unheard():
                        tensors = args if _TENSORS.issuperset(map(type, args)) else [*filter(_is_tensor, args)]
                        versions = versions_of(tensors)
                self.taken.append((BEGUN, module, args, position, root, versions, _grad_on()))
                recorder.inside_target = inside or root
                if original is None and id(module) in recorder.shortcuts.chains:
                    chain = self._chain(module, args)
        except Exception as error:
            recorder.give_up("a module call", error)
        try:
            if original is not None:
                out = original(module, *args, **kwargs)
            elif chain is None:
                out = module.forward(*args)
            else:
                out = self.run(*chain, args[0], position, is_noted=True)
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

    def _chain(self, model: torch.nn.Module, args: Any) -> tuple[Chain, list[Call]] | None:
        """What the `forward` of a model consists of that is a container of known modules, and how they are called."""
        recorder = self.recorder
        chain, written = recorder.shortcuts.chains[id(model)], recorder.aliasing.readers
        if len(args) != 1 or args[0].__class__ is not Tensor or id(args[0]) in written or not _grad_on():
            return None
        holds = chain.still_holds(recorder.ids if self.were_read else None, written, whatever_hooks=True)
        calls = chain.calls.now() if holds else None
        return None if calls is None else (chain, calls)

    def run(self, chain: Chain, calls: list[Call], given: Tensor, position: Any, is_noted: bool = False) -> Tensor:
        """Modules that are known, one after the other; `is_noted` if the call of their container is noted already."""
        results: list[Tensor] = []
        ahead, first, makes = self.recorder.ahead, given, chain.no_copies
        container = None if is_noted else chain.container
        try:
            with _unheard():
                copies = ahead.waiting.pop(chain.key, None)
                if copies is not None and copies.fit():
                    makes = copies.makes
                for (function, parameters), make in zip(calls, makes, strict=True):
                    if make is not None:
                        make()
                    given = function(given, *parameters)
                    results.append(given)
                if makes is not chain.no_copies:
                    ahead.done.append(chain.key)
                try:
                    versions = [*map(_VERSION, results)]
                except RuntimeError:  # inference tensors do not count
                    versions = versions_of(results)
                passes = self.recorder.passes
                cells = passes.cells
                follows = chain.key in passes.following and is_ordinary(given) and cells.parameters.are_as_they_were()
                self.taken.append((CHAIN, chain, first, results, versions, position, container, follows))
                return given
        except BaseException as error:
            if isinstance(error, Exception) and len(results) < len(chain.links):
                # The traceback does not show it, as it would with the functions of torch around it.
                error.add_note(f"It was raised in {chain.links[len(results)].module}.")
            self._broke_off(chain, first, results, position, container)
            raise

    def _broke_off(self, chain: Chain, given: Tensor, results: list[Tensor], position: Any, container: Any) -> None:
        """What there is to note of a chain of which one module has raised an error."""
        if container is not None:
            self.taken.append((BEGUN, container, (given,), position, False, [], True))
        for link, out in zip(chain.links, results, strict=False):
            self.taken.append((CHAIN, chain_of_one(link), given, [out], [version_of(out)], position, None, False))
            given = out
        if container is not None:
            self.recorder.end_current(False)

    def end(self, out: Tensor, root: bool) -> None:
        """A module that was called has returned one tensor."""
        recorder = self.recorder
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

    def position(self, caller: Any) -> tuple[Any, int]:
        """The user's line that calls a module: a container calls all of its modules for the same line."""
        if caller.f_code is _CALL:
            caller = caller.f_back
        known, position = self._container
        if caller is known:
            return position  # type: ignore[no-any-return]
        frame = caller
        while frame is not None and INNER_FILES[frame.f_code.co_filename]:  # `position_outside`, in the same function
            frame = frame.f_back
        position = (frame.f_code, frame.f_lasti) if frame is not None else (None, -1)
        if caller.f_code is IN_SEQUENCE:
            self._container = (caller, position)
        return position

    # ---- before a backward pass ------------------------------------------------------------------

    def before_pass(self, may_follow: bool) -> None:
        """Put hooks on what will be held. Catch up if it takes more than the notes to know what that is."""
        recorder = self.recorder
        made: set[int] = set()
        held: list[Tensor] = []
        rectified: list[Rectified] = []
        followed: list[Followed] = []
        line = None  # of the known module that was called last, unless what it returned has to be held
        for note in self.taken:
            kind, enters = note[0], False
            if kind == CHAIN:
                _, chain, first, results, versions, position, _, follows = note
                given: Any = (first,)
                # One and the same line: a container has called both, and nobody else ever had what it handed over.
                joined = position is line and chain.links[0].forward is RELU and 1 not in chain.rectified
                if joined and held[-1] is first is not results[0]:
                    rectified.append((held.pop(), results[0], versions[0]))
                    line = position if len(results) > 1 else None  # what comes out of a ReLU is held
                else:
                    line = position
                if chain.rectified:
                    line = None if chain.rectified[-1] + 1 == len(results) else position
                if follows and may_follow and not has_hooks_of_others(results[-1]):
                    followed.append((chain.links, results, versions))
                    held.append(results[-1])
                else:
                    rectified += [(results[i - 1], results[i], versions[i]) for i in chain.rectified]
                    held += map(results.__getitem__, chain.held)
                made.update(map(id, results))
            elif kind == CALLED:
                given = note[2] if not note[3] else (*note[2], *note[3].values())
                made.add(id(note[4]))
            elif kind == BEGUN:
                enters = note[4] and note[6]
                given = note[2] if enters else ()
            else:
                given = ()
                if kind == HELD:
                    held.append(note[3])
                elif note[3]:
                    held.append(note[1])
            for value in given:
                if value.__class__ is Tensor:
                    if enters:
                        held.append(value)
                    if id(value) not in made and value.requires_grad and not recorder.knows(value):
                        recorder.catch_up()  # from outside of the step: its gradient is recorded, too
                        return
        gradients = recorder.holder.gradients
        if not gradients.cells.gather(held, rectified, followed, gradients.hooks.places):
            recorder.catch_up()

    def chains_that_can_be_followed(self) -> set[int]:
        """Keys of the chains whose gradients, all of which have come, follow from each other."""
        cells, found = self.recorder.holder.gradients.cells, dict[int, bool]()
        for kind, *facts in self.taken:
            if kind == CHAIN and facts[0].can_be_followed:
                chain, _, results, versions = facts[:4]
                try:
                    same = comes_out_the_same(chain, results, versions, cells)
                except RuntimeError:  # something was overwritten
                    same = False
                found[chain.key] = same and found.get(chain.key, True)
        return {key for key, same in found.items() if same}

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
                for value in note[2]:
                    if value.__class__ is Tensor:
                        found.append(value)
        return found

    # ---- reading them ----------------------------------------------------------------------------

    def read(self) -> None:
        """Tell the recorder; no function is heard meanwhile."""
        recorder, notes = self.recorder, self.taken.copy()
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
            elif kind == CHAIN:
                self._read_chain(*facts)
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

    def _read_chain(
        self, chain: Chain, given: Tensor, results: list[Tensor], versions: list[int], position: Any, container: Any,
        _: bool,
    ) -> None:  # fmt: skip
        recorder = self.recorder
        if container is not None:
            recorder.module_began(container, (given,), position, [])
        for link, out, version in zip(chain.links, results, versions, strict=True):
            recorder.known_was_called(link, given, out, version, position)
            given = out
        if container is not None:
            recorder.end_current(False, given, versions[-1])


def _is_tensor(value: Any) -> bool:
    return value.__class__ is Tensor

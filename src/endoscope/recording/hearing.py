"""The recorder of one training step: hears the operations, holds the tensors that are to be measured.

    Listener.open ─► patches.activate ─► StepRecorder on torch's stack of modes
         a module returns   ─► Holder.module_ended ─► hold the tensor, watch its gradient
         loss.backward()    ─► StepRecorder.backward_begins ─► gradients of this loss
    Listener.close ─► the recorder leaves the stack, wherever it stands in it

As long as the step may be decided against, all of this is only noted (`postponed.py`), until `catch_up`.

A failure of ours must not reach the training loop: `outcome.shielded` finds out whose error it is and, if it is ours,
hands the operation's own result on and stops hearing.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from endoscope.capture import boundary
from endoscope.capture.boundary import add_outputs, bound_names
from endoscope.capture.calls import Call, Calls
from endoscope.capture.ear import make_ear
from endoscope.capture.functions import FunctionFacts, Role
from endoscope.capture.leaves import ATOMS, named_leaves
from endoscope.capture.observers import passes_are_heard
from endoscope.capture.recorder import Recorder
from endoscope.capture.source import user_position
from endoscope.recording.chains import IN_SEQUENCE
from endoscope.recording.holding import Holder, role_of
from endoscope.recording.known_calls import SETTINGS, Known, all_hold, learned, own_code
from endoscope.recording.losses import keeps_graph
from endoscope.recording.outcome import shielded
from endoscope.recording.postponed import HELD, Notes
from endoscope.recording.shortcuts import Shortcuts, Way
from endoscope.schema.ops import Kind

if TYPE_CHECKING:
    from endoscope.recording.ahead import Ahead
    from endoscope.recording.chains import Chains
    from endoscope.recording.losses import LossGradients
    from endoscope.recording.sources import Sources

_UNHEARD, _RESTING = -1, -2  # in the place of the number of a call
_NO_PASS = object()  # a backward pass of which nothing is known
_is_transformed = torch._C._functorch.is_functorch_wrapped_tensor
_unheard = torch._C.DisableTorchFunction
_weak = weakref.ref
_TORCHS_CALL = own_code(torch.nn.Module._call_impl, torch.nn.modules.module)  # asks for hooks, then calls `forward`
_BACKWARD = FunctionFacts("backward", "backward", Role.PASS)
#: Functions that were heard in any step; what is known about them is never forgotten (`functions.KNOWN`) anyway.
_SIMPLE: dict[Any, FunctionFacts] = {}
_PASSING: set[Any] = set()
_SLOW: dict[Any, FunctionFacts] = {}


class StepRecorder(Recorder):
    """Hears one training step: forward passes of the watched models, losses, `backward`."""

    ways: Mapping[int, Way] = {}  # by which modules are called that are known: see `observers.listen_for`

    def __init__(
        self,
        models: Iterable[tuple[str, torch.nn.Module]],
        names: Calls,
        sources: Sources,
        known_calls: dict[int, Known],
        ahead: Ahead,
        gradients: LossGradients,
        functions: Callable[[str], bool] | None,
        failed: Callable[[str, BaseException], None],
        chains: Chains,
        own_hooks: dict[int, list[list[Any]]],
        postpones: bool = False,
    ) -> None:
        holder = Holder(gradients, functions)
        self.notes = Notes(self)
        self.known_calls = known_calls  # by the id of the module
        self.shortcuts = Shortcuts(self, chains, own_hooks)
        self.ahead = ahead
        self.postpones = postpones and holder.idle and passes_are_heard()
        super().__init__(full=False, keeper=holder)
        holder.recorder = self
        self.holder = holder
        self.passes = gradients
        gradients.before_pass = self.notes.before_pass
        self.failed = failed
        self.about_to_write: Callable[[list[Tensor]], None] = lambda written: None
        self.deaf = False
        self.resting = False  # a forward pass is running that is none of the step
        self.ignores_evaluation = False
        self.models_called = 0  # without the hooks that count their calls
        self.losses: dict[int, tuple[Any, str]] = {}  # id of a tensor that is a loss -> the tensor, its name
        self.roots: dict[int, str] = {}
        self.calls.adopt(names)
        self.known_before = len(sources.nodes)
        self._sources = sources
        sources.put_into(self)
        for name, module in models:
            self.roots[id(module)] = name
            self.target = self.target or module

    def begin_hearing(self) -> None:
        """What functions are is the same in every step."""
        self.simple, self.passing, self.slow = _SIMPLE, _PASSING, _SLOW
        hear = shielded(self, make_ear(self))
        if self.postpones:
            hear = self.notes.make_ear(hear)
            self.call_module = self.notes.call  # type: ignore[method-assign]
            self.ways = self.shortcuts.ways
        self.__torch_function__ = MethodType(hear, self)  # type: ignore[method-assign]

    def catch_up(self) -> None:
        if self.random_state is None and self.postpones:
            self._begin_to_understand()
        if self.notes.taken:
            gradients = self.holder.gradients
            gradients.drain()
            gradients.looks_back = True
            try:
                with _unheard(), torch.enable_grad():
                    self.notes.read()
            except Exception as error:
                self.give_up("what was noted of a step", error)
            finally:
                gradients.looks_back = False
        self.holder.gradients.drain()

    def _begin_to_understand(self) -> None:
        """What could wait while there were only notes: what is noted draws no random numbers, and moves nothing."""
        try:
            with _unheard():
                self.random_state = torch.get_rng_state()
                self.aliasing.put_off(self._sources.storages_now())
        except Exception as error:
            self.give_up("the beginning of a step", error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """After the step has ended: should we still be on somebody's stack, we are not noticed there."""
        return func(*args, **(kwargs or {}))

    def is_target(self, module: torch.nn.Module) -> bool:
        return id(module) in self.roots

    def learn(self, func: Any, simple: dict[Any, FunctionFacts], passing: set[Any]) -> FunctionFacts | None:
        if func is Tensor.backward:
            self.slow[func] = _BACKWARD
            return None
        facts = super().learn(func, simple, passing)
        if func is torch.autograd.grad and facts is not None:
            self.slow[func] = simple.pop(func)
            return None
        return facts

    def hear_slowly(self, func: Any, facts: FunctionFacts, args: Any, kwargs: dict[str, Any]) -> Any:
        if facts is _BACKWARD:
            before = self.backward_begins(args, kwargs)
            try:
                return func(*args, **kwargs)
            finally:
                self.backward_ended(before)
        if func is torch.autograd.grad:
            with self.holder.gradients.handed_over():
                return super().hear_slowly(func, facts, args, kwargs)
        return super().hear_slowly(func, facts, args, kwargs)

    def backward_begins(self, args: Any, kwargs: Any) -> Any:
        losses = args[0] if args else kwargs.get("tensors")
        if losses.__class__ in (tuple, list) and len(losses) == 1:
            losses = losses[0]
        if self.deaf or self.resting or not isinstance(losses, Tensor):
            return _NO_PASS
        try:
            name, holder = self.loss_name(losses), self.holder
            alone = holder.meter is not None and not keeps_graph(args, kwargs)
            return holder.gradients.begin_pass(name, holder.meter if alone else None)
        except Exception as error:
            self.give_up("the beginning of a backward pass", error)
            return _NO_PASS

    def backward_ended(self, before: Any) -> None:
        if before is not _NO_PASS:
            self.holder.gradients.end_pass(before)

    def before_call(self, written: list[Tensor], facts: FunctionFacts, generator: torch.Generator | None) -> None:
        if written:
            self.holder.gradients.before_write(written)
            self.about_to_write(written)
        super().before_call(written, facts, generator)

    def held(self, slot: int) -> Tensor | None:
        """What is held, if it still is what it was."""
        tensor = self.kept.get(slot)
        return None if tensor is None or not self.is_unchanged(slot, tensor) else tensor

    def is_unchanged(self, slot: int, tensor: Tensor) -> bool:
        version = self.kept_versions.get(slot, -1)
        return version < 0 or self.aliasing.explains(tensor, version)

    def loss_name(self, loss: Tensor) -> str:
        """What the gradients of a loss are called; the loss itself is held under that name."""
        gradients = self.holder.gradients
        known, name = self.losses.get(id(loss), (None, ""))
        if known is None or known() is not loss:
            name = gradients.current or gradients.default
            try:
                with _unheard():
                    if self.postpones and loss.__class__ is Tensor:
                        self.notes.taken.append((HELD, name, "loss", loss, loss._version))
                    else:
                        self.holder.hold(name, "", "loss", loss)
                self.losses[id(loss)] = (_weak(loss), name)
            except Exception:  # the gradients have their name all the same
                pass
        return gradients.current or name

    def name_loss(self, loss: Tensor, name: str) -> None:
        self.losses[id(loss)] = (_weak(loss), name)

    # ---- never into training ---------------------------------------------------------------------

    def may_note(self, module: torch.nn.Module) -> bool:
        """Whether a call is for the notes: not where a forward pass is, or may be, none of the step."""
        if not self.postpones or self.resting:
            return False
        return self.inside_target or not self.ignores_evaluation or not is_evaluation(module)

    def call_module(self, original: Any, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        """Inside of a model, where tensors are handed from module to module, there is less to ask."""
        self.catch_up()
        try:
            call, known = self._begin_plain(module, args, kwargs)
        except Exception as error:
            self.give_up("a module call", error)
            call, known = _UNHEARD, None
        if call < 0:
            return boundary.call_module(self, original, module, args, kwargs)
        try:
            if known is not None:
                return self._call_known(known, original, call, args[0])
            out = original(module, *args)
            self._returned(call, out)
            return out
        finally:
            self.calls.current = self.calls.entries[call].parent

    def _begin_plain(self, module: torch.nn.Module, args: Any, kwargs: Any) -> tuple[int, Known | None]:
        """The number of a call, and what is known about it; no number if more has to be asked about it."""
        calls, identity, known = self.calls, id(module), None
        if kwargs or not self.inside_target or self.deaf or self.resting or identity not in calls.addresses:
            return _UNHEARD, None
        slots: list[int] | None
        if len(args) == 1 and args[0].__class__ is Tensor:
            given, ids = args[0], self.ids
            slot = ids.get(id(given))
            slots = [] if slot is None else [slot]
            known = self.known_calls.get(identity) if self.editor is None else None
            if known is not None:  # it is given what it was when it was made, and the module is what it was
                written = self.aliasing.readers
                if (
                    slot is None
                    or self.objects[slot]() is not given
                    or id(given) in written
                    or not self.holder.idle
                    or not all_hold((known,), ids, written)
                ):
                    known = None
        else:
            slots = self._slots_of_plain(args)
            if slots is None:
                return _UNHEARD, None
        entries, current = calls.entries, calls.current  # what `calls.begin` does
        entries.append(Call(module, current, len(self.nodes), slots, False, self._position(current)))
        calls.current = len(entries) - 1
        return calls.current, known

    def _position(self, around: int) -> tuple[Any, int]:
        """The user's line that calls a module inside of the call `around`.

        A container's own `forward` is no line of the user's, and what called the container is known.
        """
        # Behind this, `_begin_plain`, `call_module`, functions of `observers.py`, `exchange.py` and `nn.Module` itself.
        frame = sys._getframe(6)
        if frame.f_code is IN_SEQUENCE and around >= 0:
            entry, outer = self.calls.entries[around], frame.f_back
            if entry.module.__class__ is torch.nn.Sequential and outer is not None and outer.f_code is _TORCHS_CALL:
                return entry.position
        return user_position(4)

    def _call_known(self, known: Known, original: Any, call: int, given: Tensor) -> Any:
        """Nothing is heard inside of the call; its only operation is written down here."""
        with _unheard():
            copies = self.ahead.waiting.pop(id(known.module), None)
            if copies is not None and copies.make_if_fit():
                self.ahead.done.append(id(known.module))
            out = original(known.module, given)
            if self.keeper is not None:  # the step may have ended inside of this call
                try:
                    grad_fn, entry = out.grad_fn, self.calls.entries[call]
                    slot = self._write_known(known, call, entry.entered[0], entry.position, out, grad_fn)
                    if out.__class__ is Tensor and not _is_transformed(out):
                        self.holder.hold_result(slot, out, grad_fn, call)
                    else:
                        self.holder.module_ended(call, out)
                except Exception as error:
                    self.give_up("the result of a module", error)
        return out

    def _write_known(self, known: Known, call: int, read: Any, position: Any, out: Tensor, grad_fn: Any) -> int:
        """The operation that a call consists of; returns the slot of its result."""
        slot, identity, readers = len(self.objects), id(out), self.aliasing.readers
        self.nodes.append(known.node(call, read, position, slot, out, grad_fn))
        self.ids[identity] = slot
        if readers:
            readers.pop(identity, None)
        self.slot_node.append(len(self.nodes) - 1)
        self.objects.append(_weak(out))
        return slot

    # ---- what was noted --------------------------------------------------------------------------

    def known_was_called(self, known: Known, given: Tensor, out: Any, version: int, position: tuple[Any, int]) -> None:
        """A module that consists of one operation was called and has returned."""
        entered = [self.ids[id(given)]] if self.knows(given) else []
        calls = self.calls
        call = calls.begin(known.module, len(self.nodes), entered, False, position)
        read = entered[0] if entered else self.read(given)
        slot = self._write_known(known, call, read, position, out, out.grad_fn)
        if out.__class__ is Tensor:
            self.holder.fresh.add(slot)
        self.holder.module_ended(call, out, version)
        calls.current = calls.entries[call].parent

    def module_began(self, module: torch.nn.Module, args: Any, position: tuple[Any, int], versions: list[int]) -> None:
        """`versions` are those of the arguments of a model, when it was called."""
        slots = self._slots_of_plain(args) if self.inside_target and id(module) in self.calls.addresses else None
        if slots is not None:
            self.calls.begin(module, len(self.nodes), slots, False, position)
            return
        asks, self.ignores_evaluation = self.ignores_evaluation, False  # that was asked when the note was taken
        held = self.kept.keys() | ()
        try:
            call = self.begin_module(module, args, {})
        finally:
            self.ignores_evaluation = asks
        self.calls.entries[call].position = position
        self.noted_versions(args, versions, held)

    def noted_versions(self, values: Iterable[Any], versions: list[int], held: set[int]) -> None:
        """Tensors that are held since then had these versions when they were noted: somebody may have written since."""
        tensors = [value for value in values if value.__class__ is Tensor]
        for tensor, version in zip(tensors, versions or [-1] * len(tensors), strict=True):
            slot = self.ids.get(id(tensor), -1)
            if slot in self.kept and slot not in held:
                self.kept_versions[slot] = version

    def end_current(self, root: bool, out: Any = None, version: int | None = None) -> None:
        """The call of a module that was noted is over; without a result if it raised."""
        self.catch_up()
        call = self.calls.current
        if self.deaf or call < 0:
            self.inside_target = self.inside_target and not root
        else:
            if out is not None:
                self.end_module(call, out, version)
            self.leave(call)

    def _slots_of_plain(self, args: Any) -> list[int] | None:
        """Those of the tensors that are handed to a module; None if they would have to be searched for."""
        ids, slots = self.ids, []
        for value in args:
            kind = value.__class__
            if kind is Tensor:
                if id(value) in ids:
                    slots.append(ids[id(value)])
            elif kind not in ATOMS:
                return None
        return slots

    def _returned(self, call: int, out: Any, version: int | None = None) -> None:
        """What a module returned is held."""
        if self.keeper is not None and not self.deaf:  # the step may have ended inside of this call
            try:
                with _unheard():  # or we would hear ourselves looking at the result
                    self.holder.module_ended(call, out, version)
                self._learn(self.calls.entries[call], out)
            except Exception as error:
                self.give_up("the result of a module", error)

    def _learn(self, entry: Call, out: Any) -> None:
        """The next time this module is called, it may be known what it does."""
        module = entry.module
        if module.__class__ in SETTINGS and id(module) not in self.known_calls:
            known = learned(entry, self.nodes, self.ids, self.known_before, self.ids.get(id(out)))
            if known is not None:
                self.known_calls[id(module)] = known

    def begin_module(self, module: torch.nn.Module, args: Any, kwargs: Any) -> int:
        self.catch_up()
        if self.deaf or self.resting:
            return _UNHEARD
        try:
            first = not self.inside_target and self.is_target(module)
            if first and self.ignores_evaluation and is_evaluation(module):
                self.resting = True
                return _RESTING
            with _unheard():
                if first and not kwargs and len(args) == 1 and args[0].__class__ is Tensor:
                    return self._begin_root(module, args)
                call = super().begin_module(module, args, kwargs)
            if first:
                self.hold_inputs(module, args, kwargs, call)
            return call
        except Exception as error:
            self.give_up("a module call", error)
            return _UNHEARD

    def _begin_root(self, module: torch.nn.Module, args: tuple[Tensor]) -> int:
        """A call of a model with one tensor: what `begin_module` and `hold_inputs` do, without looking for tensors."""
        ((name, given),) = bound_names(module.forward, args, {})
        self.inside_target = True
        if not self.knows(given) and id(given) not in self.calls.named:
            self.add_source(Kind.INPUT, name, given)
        slot = self.ids.get(id(given))
        entered = [] if slot is None else [slot]
        call = self.calls.begin(module, len(self.nodes), entered, True, user_position(3))
        self.holder.hold("", role_of(name), "input", given, call)
        return call

    def hold_inputs(self, module: torch.nn.Module, args: Any, kwargs: Any, call: int) -> None:
        """Whatever is handed to a model, also if it was computed in this step."""
        with torch._C.DisableTorchFunction():
            for name, value in bound_names(module.forward, args, kwargs):
                for path, leaf in named_leaves(value, name):
                    if isinstance(leaf, Tensor) and not isinstance(leaf, torch.nn.Parameter):
                        self.holder.hold("", role_of(path), "input", leaf, call)

    def end_module(self, call: int, out: Any, version: int | None = None) -> None:
        self.catch_up()
        if call < 0:
            return
        self._returned(call, out, version)
        if self.calls.entries[call].root and not self.deaf:
            try:
                with _unheard():
                    self.calls.leave(call)
                    self.inside_target = False
                    if out.__class__ is Tensor:
                        self.add_output("", out)
                    else:
                        add_outputs(self, out)
            except Exception as error:
                self.give_up("the result of a model", error)

    def end_root(self, call: int, out: Any) -> None:
        """The call of a model is over in which the step began."""
        if self.postpones and out.__class__ is Tensor:
            self.notes.end(out, root=True)
        else:
            self.end_module(call, out)
            self.leave(call)

    def leave(self, call: int) -> None:
        self.catch_up()
        if call == _RESTING:
            self.resting = False
        elif call >= 0 and not self.deaf:
            try:
                super().leave(call)
            except Exception as error:
                self.give_up("the end of a module call", error)

    def give_up(self, where: str, error: BaseException) -> None:
        self.deaf = True
        self.postpones = False
        self.notes.clear()
        self.failed(where, error)


def is_evaluation(module: torch.nn.Module) -> bool:
    """Whether a forward pass that begins now is no part of training."""
    return not module.training or not torch.is_grad_enabled()

"""Traces one training step: the recorder of `endoscope.trace`, which here learns the structure and keeps no values.

    Tracer.begin ─► patches of `capture`, the recorder on torch's stack of modes, below the modes of the user
    Tracer.slot_of(tensor) ─► the number under which the recorder knows a tensor that a hook has just captured
    Tracer.end   ─► nothing of ours is left on torch

A failure of ours must not reach the training loop: `outcome.shielded` finds out whose error it is. If it is ours, the
operation's own result is handed on, the recorder stops, and the step has no graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from endoscope.capture.data.calls import OUTSIDE, Call
from endoscope.capture.data.functions import FunctionFacts
from endoscope.capture.data.nodes import slots_of
from endoscope.capture.patch.patches import activate, deactivate
from endoscope.capture.record.hot_path import attach
from endoscope.capture.record.recorder import Recorder
from endoscope.capture.record.regions import version_of
from endoscope.recording.hooks.modes import put_on, quiet, take_off
from endoscope.recording.hooks.outside import Op, selects
from endoscope.recording.steps.names import Names
from endoscope.recording.structure.outcome import shielded
from endoscope.schema.ops import Kind

_UNSEEN, _RESTING = -1, -2  # in the place of the number of a call


class Keeper:
    """Decides which results of operations are kept: those outside of modules, and those that a pattern may mean."""

    names_modules = False
    idle = False

    def __init__(self) -> None:
        self.recorder: StepRecorder
        self.types: dict[str, bool] = {}  # asked by the recorder's hot path; none is refused beforehand
        self.function_came: Callable[[int, int, Tensor], bool] | None = None  # node, slot and tensor -> is it held

    def place(self, _: int) -> str:
        return "no"

    def wants(self, node: int, slot: int, tensor: Tensor) -> bool:
        came = self.function_came
        is_held = came is not None and node not in self.recorder.sources and came(node, slot, tensor)
        return is_held or self.recorder.calls.current < 0

    def module_ended(self, _: int) -> None:
        """Hooks hold what modules return."""

    def settle(self, _: Any) -> None:
        """A trace lets go of what was not asked for; a step lets go of everything."""


class StepRecorder(Recorder):
    """Records the operations of one training step: forward passes of the watched models, and what becomes a loss."""

    def __init__(self, names: Names, failed: Callable[[str, BaseException], None]) -> None:
        keeper = Keeper()
        self._failed = failed
        self.watched = names.modules
        self.given_up = False
        self.step_keeper = keeper
        super().__init__(full=False, keeper=keeper)
        keeper.recorder = self
        self.resting = False  # a forward pass is running that is no part of the step
        self.skips_evaluation = False
        self.before_write: Callable[[list[Tensor]], None] = lambda written: None
        self.calls.adopt(names.calls)
        self.target = next((watch.module for watch in names.roots.values()), None)
        self.random_state = torch.get_rng_state()
        attach(self, lambda handler: shielded(self, handler))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """After the step has ended: should we still be on somebody's stack, we are not noticed there."""
        return func(*args, **(kwargs or {}))

    def is_target(self, module: torch.nn.Module) -> bool:
        """Whatever is watched: users may call parts of a model one by one."""
        return id(module) in self.watched

    def before_call(self, written: list[Tensor], facts: FunctionFacts, generator: torch.Generator | None) -> None:
        if written:
            self.before_write(written)
        super().before_call(written, facts, generator)

    def backward_begins(self, heads: list[Tensor]) -> None:
        """Hooks gather the gradients of a step."""

    # ---- module calls: never an error of ours in training ----------------------------------------

    def begin_module(self, module: torch.nn.Module, args: Any, kwargs: Any) -> int:
        if self.given_up or self.resting:
            return _UNSEEN
        try:
            first = not self.inside_target and self.is_target(module)
            if first and self.skips_evaluation and is_evaluation(module):
                self.resting = True
                return _RESTING
            with quiet():
                return super().begin_module(module, args, kwargs)
        except Exception as error:
            self.give_up("a module call", error)
            return _UNSEEN

    def end_module(self, call: int, out: Any) -> None:
        if call < 0 or self.given_up:
            return
        try:
            with quiet():
                super().end_module(call, out)
        except Exception as error:
            self.give_up("the result of a module", error)

    def leave(self, call: int) -> None:
        if call == _RESTING:
            self.resting = False
        elif call >= 0 and not self.given_up:
            try:
                super().leave(call)
            except Exception as error:
                self.give_up("the end of a module call", error)

    def give_up(self, where: str, error: BaseException) -> None:
        self.given_up = True
        self._failed(where, error)


class Tracer:
    """The recorder of one step and its place on the stack of modes."""

    def __init__(self, names: Names, failed: Callable[[str, BaseException], None]) -> None:
        self.recorder = StepRecorder(names, failed)
        self.is_open = False
        self._entered: tuple[torch.nn.Module, int] | None = None

    def begin(self) -> None:
        self.is_open = True
        activate(self.recorder)
        put_on(self.recorder)

    def enter(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """The step began inside the call of a module, so the recorder did not see that call beginning."""
        self._entered = module, self.recorder.begin_module(module, args, kwargs)

    def returned(self, module: torch.nn.Module, out: Any) -> None:
        """Nothing happens for other calls than that one; `out` is None if it raised."""
        if self._entered is not None and self._entered[0] is module:
            call, self._entered = self._entered[1], None
            if out is not None:
                self.recorder.end_module(call, out)
            self.recorder.leave(call)

    def pause(self) -> None:
        """The update: what an optimizer computes is no operation of the user's."""
        take_off(self.recorder)

    def resume(self) -> None:
        if self.is_open:
            put_on(self.recorder)

    def end(self) -> None:
        if self.is_open:
            self.is_open = False
            take_off(self.recorder)
            deactivate(self.recorder)

    # ---- captured tensors ------------------------------------------------------------------------

    def slot_of(self, tensor: Tensor) -> int:
        """Where the recorder finds the tensor from now on: it copies the value if somebody is about to overwrite it."""
        recorder = self.recorder
        if recorder.given_up:
            return -1
        read = recorder.read(tensor)
        if not isinstance(read, int):
            return self._slot_of_patchwork(tensor)
        return self.keep(read, tensor)

    def keep(self, slot: int, tensor: Tensor) -> int:
        """From now on the recorder copies the value of a slot if somebody is about to overwrite it."""
        recorder = self.recorder
        if slot not in recorder.kept:
            recorder.hold(slot, tensor)
        return slot

    def _slot_of_patchwork(self, tensor: Tensor) -> int:
        """Several operations wrote into parts of it: no single slot has its value, so it is copied now."""
        recorder = self.recorder
        slot = recorder.ids[id(tensor)]
        copy = tensor.detach().clone()
        new = len(recorder.objects)
        recorder.objects.append(lambda: copy)
        recorder.slot_node.append(recorder.slot_node[slot])
        recorder.kept[new] = copy
        return new

    def slot_known(self, tensor: Tensor) -> int:
        """The slot of a tensor, if one operation made it."""
        read = self.recorder.read(tensor)
        return read if isinstance(read, int) else -1

    def named_slots(self) -> dict[str, int]:
        """Name of a parameter or buffer -> its slot."""
        recorder = self.recorder
        return {source.name: recorder.nodes[n].slot for n, source in recorder.sources.items() if is_owned(source.kind)}

    def is_owned_slot(self, slot: int) -> bool:
        source = self.recorder.sources.get(self.recorder.slot_node[slot])
        return source is not None and is_owned(source.kind)

    def tensor_at(self, slot: int) -> Tensor | None:
        """What the recorder keeps of what is computed outside of modules, or else what is still there."""
        kept = self.recorder.kept.get(slot)
        return kept if kept is not None else self.recorder.dereference(self.recorder.objects[slot])

    def has_called(self, type_: str) -> bool:
        """Whether a watched module has used a function."""
        recorder = self.recorder
        return any(node.facts.type == type_ and node.call != OUTSIDE for node in recorder.nodes)

    # ---- outside of the watched modules ----------------------------------------------------------

    def outside_ops(self, start: int, derived: set[Any]) -> list[Op]:
        """The operations from a node on that no watched module made; what watched ones made is added to `derived`."""
        recorder, ops = self.recorder, []
        closed: dict[int, bool] = {}  # outermost call of a module that nobody watches -> is it left out
        reached = set(derived)
        for number in range(start, len(recorder.nodes)):
            node = recorder.nodes[number]
            reads = tuple(slot for read in node.reads for slot in slots_of(read))
            results = tuple(node.results)
            call = self._outermost(node.call)
            if call is not None and id(call.module) in recorder.watched:
                if number not in recorder.sources:
                    derived.update(results)
                    reached.update(results)
                continue
            if number in recorder.sources:
                continue
            if call is not None:  # a criterion is looked into, a frozen teacher is not
                is_closed = closed.setdefault(id(call), not reached.intersection(call.entered))
                if is_closed:
                    continue
            if reached.intersection(reads):
                reached.update(results)
            ops.append(Op(reads, results, selects(node.facts.type)))
        return ops

    def _outermost(self, call: int) -> Call | None:
        modules = [entry for entry in self.recorder.calls.around(call) if not entry.is_function]
        return modules[-1] if modules else None

    # ---- values ----------------------------------------------------------------------------------

    def was_copied(self, slot: int) -> bool:
        """Somebody was about to overwrite the tensor."""
        return slot in self.recorder.kept and slot not in self.recorder.kept_versions

    def value(self, slot: int) -> Tensor | None:
        """The value of the moment; None if it was overwritten by code that could not be seen."""
        recorder = self.recorder
        tensor = recorder.kept.get(slot)
        version = recorder.kept_versions.get(slot, -1)
        if tensor is None or version < 0 or version_of(tensor) == version:
            return tensor
        return tensor if recorder.aliasing.explains(tensor, version) else None

    def settle(self) -> None:
        """Parameters and buffers that nothing has read get their slots; the values are let go of."""
        recorder = self.recorder
        if not recorder.given_up:
            with quiet():
                recorder.complete_sources()

    def let_go(self) -> None:
        """Drop every reference to the user's tensors; what was learned of the step stays."""
        recorder = self.recorder
        recorder.kept.clear()
        recorder.kept_versions.clear()
        recorder.anchors.clear()
        recorder.ids.clear()
        recorder.before_write = lambda written: None
        recorder.step_keeper.function_came = None
        if recorder.keeper is not None:
            recorder.close()


def is_evaluation(module: torch.nn.Module) -> bool:
    """Whether a forward pass that begins now is no part of training."""
    return not module.training or not torch.is_grad_enabled()


def is_owned(kind: Kind) -> bool:
    """By a model, or by whoever has made a parameter."""
    return kind in (Kind.PARAMETER, Kind.BUFFER)

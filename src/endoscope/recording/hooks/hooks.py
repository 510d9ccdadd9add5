"""PyTorch's own hooks, put on for one captured step and taken off when it ends.

    global forward pre-hook  ─► before: an outermost call begins: its inputs, the size of its batch
    global forward hook      ─► after:  what the module returned is held, under the module's address
    patches.py               ─► backward_begins: targets, the loss, the name of its gradients ─► backward_ends

Global hooks leave nothing on the model, keep fused paths, and cost less than a hook on each module. They run before the
hooks of a module, which may replace its result: a module with forward hooks of somebody else gets a hook of ours behind
them for the time of the step.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.patch.torch_private import dispatch_depth as _dispatch_modes
from endoscope.capture.patch.torch_private import is_wrapped as _is_transformed
from endoscope.capture.patch.torch_private import stack_depth as _modes
from endoscope.capture.record.leaves import named_arguments, named_leaves
from endoscope.capture.record.parts import here, part_of
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.compiled import hide_global_hooks, show_global_hooks
from endoscope.recording.hooks.entries import size_of
from endoscope.recording.hooks.inside import InsideMode
from endoscope.recording.hooks.losses import Losses
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.hooks.patches import listen, stop_listening
from endoscope.recording.steps.watch import OwnHook
from endoscope.recording.structure.selection import may_be_attention
from endoscope.recording.structure.tracer import is_evaluation

_thread = threading.get_ident


class Hooks:
    """All hooks of one captured step."""

    def __init__(self, captured: Captured, failed: Callable[[str, BaseException], None]) -> None:
        self.captured = captured
        self.losses = Losses(captured)
        self._thread = captured.thread  # what other threads call is none of the step, but for recomputation in backward
        self.depth = 0  # calls of watched modules that are running inside of each other
        self.skips_evaluation = False
        self.resting = False  # a forward pass in evaluation mode runs, which is none of the step
        self._failed = failed
        self.inside = None
        if captured.tracer is None and captured.learned.inside:
            self.inside = InsideMode(captured.learned.inside, self._hold_operation)
        self._modules = captured.names.modules
        self._roots = captured.names.roots
        self._late: set[int] = set()  # modules whose result is final only behind hooks of others
        self._handles: list[Any] = []

    def put_on(self) -> None:
        hide_global_hooks()
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        for module in self.captured.names.modules_with_hooks():
            if any(type(hook) is not OwnHook for hook in module._forward_hooks.values()):
                self._late.add(id(module))
                self._handles.append(module.register_forward_hook(OwnHook(self._after_others)))
        listen(self.losses)

    def take_off(self) -> None:
        """Handles first: whatever fails after that leaves nothing on torch or the model."""
        handles, self._handles, self._late = self._handles, [], set()
        for handle in handles:
            handle.remove()
        if handles:
            show_global_hooks()
        stop_listening(self.losses)
        try:
            self.losses.end()
            if self.inside is not None:
                self.inside.close()
        finally:
            self.captured.gradients.stop()

    # ---- module calls ----------------------------------------------------------------------------

    def entered_root(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """The step began inside the call of a model, so that call was not seen beginning."""
        self._enter(module)
        self.root_called(module, args, kwargs)

    def entered_part(self, module: torch.nn.Module, args: Any) -> None:
        """The same for a part of a model that is called by itself."""
        self._enter(module)
        with quiet():
            self._hold_inputs(module, args, {})

    def root_called(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """From the hook that stays on a watched model, which is told of all arguments."""
        if not self.resting and self.depth <= 1:
            with quiet():
                self._hold_inputs(module, args, kwargs)

    def _before(self, module: torch.nn.Module, args: Any) -> None:
        if _task() != -1 or _thread() != self._thread:
            return
        identity = id(module)
        try:
            if identity not in self._modules:
                if not self.depth:
                    self.losses.stranger_begins(module, args)
                return
            if self.inside is not None and not self.resting:
                self.inside.begin(self._modules[identity])
            if self.depth:  # the usual case
                self.depth += 1
                return
            self._enter(module)
            if not self.resting and identity not in self._roots:
                with quiet():
                    self._hold_inputs(module, args, {})
        except Exception as error:
            self._failed("a module call", error)

    def _enter(self, module: torch.nn.Module) -> None:
        self.depth += 1
        if self.depth == 1:
            if self.skips_evaluation and is_evaluation(module):
                self.resting = True
            else:
                self.losses.outermost_begins()

    def _after(self, module: torch.nn.Module, args: Any, out: Any) -> None:
        identity = id(module)
        address = self._modules.get(identity)
        try:
            if _task() != -1:
                if address is not None and out is not None and not self.resting:
                    self._recomputed(address, out)
            elif _thread() != self._thread:
                return
            elif address is None:
                if not self.depth:
                    self.losses.stranger_ended(module)
            elif identity in self._late and out is not None:
                return
            elif out.__class__ is Tensor and self.depth > 1 and self._is_usual(address, out):
                self.depth -= 1
                self.captured.note(address, out, module.training)
            else:
                self._returned(module, address, out)
        except Exception as error:
            self._failed("the result of a module", error)

    def _is_usual(self, address: str, out: Tensor) -> bool:
        """Whether the result of a module needs no care: nobody traces, no mode is on, it need not be copied."""
        if self.resting or self.captured.tracer is not None or _modes() or _dispatch_modes() or _is_transformed(out):
            return False
        return (address, "") not in self.captured.learned.overwritten

    def _after_others(self, module: torch.nn.Module, args: Any, out: Any) -> None:
        try:
            if _task() == -1 and _thread() == self._thread:
                self._returned(module, self._modules[id(module)], out)
        except Exception as error:
            self._failed("the result of a module", error)

    def _returned(self, module: torch.nn.Module, address: str, out: Any) -> None:
        if not self.depth:
            return  # it began before the step did
        if self.captured.tracer is not None:
            self.captured.tracer.returned(module, out)
        self.depth -= 1
        if self.resting:
            self.resting = self.depth > 0
            return
        if self.inside is not None:
            self.inside.end()
        with quiet():
            if out.__class__ is Tensor and self.depth:
                entry = self.captured.hold(address, "", "computed", out, address)
                if not module.training and entry is not None:
                    entry.training = False
            elif out is not None:
                self._hold_results(module, address, out)
            if not self.depth:
                self.losses.outermost_ended(address, out)

    def _hold_results(self, module: torch.nn.Module, address: str, out: Any) -> None:
        is_root = id(module) in self._roots
        node = address if address or not is_root else self.captured.names.free("output")
        kind = "output" if is_root else "computed"
        for path, leaf in named_leaves(out):
            if isinstance(leaf, Tensor):
                self.captured.hold(node, role_of(path), kind, leaf, address)

    def _hold_operation(self, type_: str, address: str, tensor: Tensor) -> None:
        try:
            with quiet():
                if may_be_attention(tensor):
                    self.captured.hold(f"{address}.{type_}", "", "computed", tensor, address)
        except Exception as error:
            self._failed("the result of an operation", error)

    def _hold_inputs(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """Whatever is handed to an outermost call, also if it was computed in this step."""
        captured = self.captured
        module = getattr(module, "_orig_mod", module)
        address = self._modules[id(module)]
        watch = self._roots.get(id(module))
        dim = watch.batch_dim if watch is not None else captured.names.batch_dim
        leaves = [
            (path, leaf)
            for name, value in named_arguments(module.forward, args, kwargs)
            for path, leaf in named_leaves(value, name)
            if isinstance(leaf, Tensor) and not isinstance(leaf, torch.nn.Parameter)
        ]
        sizes = [max(int(size_of(part_of(t))[dim]), 0) for _, t in leaves if dim is not None and t.dim() > dim]
        captured.batch = sizes[0] if sizes else 0
        captured.first_batch = captured.first_batch or captured.batch
        self.losses.enters([leaf for _, leaf in leaves])
        node = f"{address}.input" if address else captured.names.free("input")
        for path, leaf in leaves:
            captured.hold(node, role_of(path), "input", leaf, address)

    # ---- checkpointing ---------------------------------------------------------------------------

    def _recomputed(self, address: str, out: Any) -> None:
        """In a backward pass: of a result that had no gradient when it was computed first, it is this one's."""
        with quiet():
            for path, leaf in named_leaves(out):
                if isinstance(leaf, Tensor) and leaf.requires_grad:
                    self._recomputed_tensor(address, role_of(path), leaf)

    def _recomputed_tensor(self, address: str, role: str, tensor: Tensor) -> None:
        waiting = [
            e for e in self.captured.entries
            if e.node == address and e.role == role and not e.is_watched and e.same is None
            and e.tensor is not None and e.kind == "computed"
        ]  # fmt: skip
        if len(waiting) > 1:  # the calls of this module are told apart by what they returned
            values = [(e, self.captured.value(e)) for e in waiting]
            waiting = [e for e, value in values if value is not None and torch.equal(here(value), here(tensor))]
        if waiting:
            self.captured.gradients.watch(waiting[-1], tensor)


@functools.lru_cache(1024)
def role_of(path: str) -> str:
    """A path as people write it: `[0]` is 0, `['logits'][1]` is logits.1."""
    return re.sub(r"\[(?:'([^']*)'|\"([^\"]*)\"|([^\]]*))\]", r".\1\2\3", path).lstrip(".")

"""Hooks of forward passes that stay on watched models: a step begins, or goes on, or turns out to be over.

model(x) ─► before ─► begin a step, or count one more pass of the open one ─► after
model.part(x) ─► on_any_module, as long as the model itself was never called
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.recording.failures.sentences import NO_PASS
from endoscope.recording.hooks.compiled import hide_global_hooks, show_global_hooks
from endoscope.recording.steps.driver import Driver
from endoscope.recording.steps.step import Step
from endoscope.recording.steps.watch import KEEP_OUT, LET_IN
from endoscope.recording.structure.tracer import is_evaluation
from endoscope.schema.recording import GapRecord

_CALL = torch.nn.Module.__call__.__code__


def _is_asked_for_shapes() -> bool:
    """Whether a stage of a pipeline is called to learn what it returns: once, on memory that nobody has filled."""
    stage = sys.modules.get("torch.distributed.pipelining.stage")
    if stage is None:
        return False
    names, frame = set(), sys._getframe()
    while frame is not None:
        if frame.f_globals is vars(stage):
            names.add(frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return bool(names) and "forward_one_chunk" not in names  # through which all passes of training go


class Forwards:
    """Called in every step, and therefore without `with shield(...)`."""

    def __init__(self, steps: Driver) -> None:
        self._steps = steps
        self.passed_over = False  # a forward pass that could have been meant as training began no step
        self._depth = 0  # calls of watched models that are running inside of each other
        self.outside_of_steps = {"evaluation": 0, "training_without_gradients": 0}  # forward passes, by their mode
        self._sentinel: Any = None  # a hook that looks for parts of a model that are called one by one

    def before(self, module: Any, args: Any, kwargs: Any) -> str:
        try:
            if self._steps.is_foreign():
                return ""
            if _is_asked_for_shapes():
                return ""
            if self._depth and not self._is_inside():
                self._was_interrupted()
            depth, self._depth = self._depth, self._depth + 1
            if not depth:
                self._steps.optimizers.forget_what_raised()
            step = self._steps.open
            if step is None or not step.explicit:
                if not module.training or not torch.is_grad_enabled() or _task() != -1:
                    self.passed_over = self.passed_over or torch.is_grad_enabled()
                    self._steps.times.interrupted()
                    if step is None:
                        mode = "training_without_gradients" if module.training else "evaluation"
                        self.outside_of_steps[mode] += 1
                    return ""
                if step is not None and not depth and not self._steps.optimizers.running:
                    if step.began_with_part and not self._steps.passes.were_seen:
                        self._steps.abandon(step)  # a part was called before, on its own
                        step = None
                    elif self._is_over(step):
                        self._steps.finish(step)
                        step = None
            if not depth:
                self._steps.times.forward_begins()
            if step is None:
                return self._begin_by_itself(module, args, kwargs)
            if not depth:
                self.look_for_no_parts()
                self._count_forward(step)
            if step.hooks is not None:
                if step.captured is not None and step.captured.tracer is not None:
                    step.captured.tracer.resume()
                step.hooks.root_called(module, args, kwargs)
        except Exception as error:
            self._steps.shield.failed("the beginning of a forward pass", error)
        return ""

    def _is_inside(self) -> bool:
        """Whether the call that begins is inside of another one. Torch calls no hook when `Ctrl-C` ends a call."""
        roots, running = self._steps.names.roots, 0
        frame = sys._getframe()
        while frame is not None and running < 2:  # the first one is the call that begins
            running += frame.f_code is _CALL and id(frame.f_locals.get("self")) in roots
            frame = frame.f_back  # type: ignore[assignment]
        return running == 2

    def _was_interrupted(self) -> None:
        self._depth = 0
        if self._steps.open is not None and not self._steps.open.explicit:
            self._steps.open.failed = True

    def _begin_by_itself(self, module: Any, args: Any, kwargs: Any) -> str:
        """A step begins with a forward pass, which has begun already."""
        step = Step(self._steps, self._steps.next, None, explicit=False)
        step.forwards = 1
        self._steps.optimizers.forward_begins()
        if self._sentinel is not None:
            self.look_for_no_parts()
        self._steps.begin(step)
        captured, hooks = step.captured, step.hooks
        if captured is None or hooks is None:
            return ""
        if self._steps.optimizers.running:  # an optimizer with a closure: its forward passes are inside its update
            captured.parameters.copy_all()
        if hasattr(module, "_orig_mod"):  # the model inside of a compiled one is yet to be called
            hooks.root_called(module, args, kwargs)
            return ""
        if captured.tracer is not None:
            captured.tracer.enter(module, args, kwargs)
        hooks.entered_root(module, args, kwargs)
        return KEEP_OUT

    def after(self, module: Any, args: Any, kwargs: Any, out: Any) -> str:
        if self._steps.closed:
            return LET_IN
        try:
            if self._steps.is_foreign() or _is_asked_for_shapes():
                return ""
            self._depth = max(self._depth - 1, 0)
            if not self._depth:
                self._steps.times.forward_ends()
            if self._steps.open is not None and out is None and sys.exc_info()[1] is not None:
                self._steps.open.failed = True
        except Exception as error:
            self._steps.shield.failed("the end of a forward pass", error)
        return "" if self._depth else LET_IN

    def _count_forward(self, step: Step) -> None:
        step.forwards += 1
        if self._steps.passes.were_seen and not step.explicit:
            if not step.is_in_part or self._steps.passes.came_since_forward:
                self._begin_part(step)
            step.part_forwards += 1
        self._steps.passes.forward_begins()

    def _begin_part(self, step: Step) -> None:
        """A forward pass begins after a backward pass: if that turns out to be unused, a new step began here."""
        step.metrics |= step.part_metrics
        step.is_in_part, step.part_metrics, step.part_forwards = True, {}, 0
        if step.captured is not None and step.hooks is not None:
            step.part_from = len(step.captured.entries)
            step.hooks.losses.begin_part()

    def _is_over(self, step: Step) -> bool:
        """Whether a step ends although no optimizer has ended it."""
        if step.moved or step.failed:
            return True
        if self._steps.look_whether_skipped(step):
            return True
        optimizers = self._steps.optimizers
        if optimizers.known or not self._steps.passes.were_moved_by_hand() or optimizers.exist():
            return False
        if not self._steps.passes.were_seen and step.captured is not None:
            step.captured.refused.append(GapRecord("", "gradient", NO_PASS))
        return True

    # ---- parts of a model that are called one by one ---------------------------------------------

    def look_for_parts(self) -> None:
        if self._sentinel is None and any(len(watch.module._modules) for watch in self._steps.watches):
            with self._steps.shield("the names of a model"):
                self._steps.names.refresh()
            hide_global_hooks()
            self._sentinel = register_module_forward_pre_hook(self._on_any_module)

    def look_for_no_parts(self) -> None:
        if self._sentinel is not None:
            self._sentinel.remove()
            show_global_hooks()
            self._sentinel = None

    def _on_any_module(self, module: Any, args: Any) -> None:
        """Stays on only while no step was begun by a call of a watched model itself."""
        try:
            if id(module) not in self._steps.names.modules or id(module) in self._steps.names.roots or self._depth:
                return
            if self._steps.is_foreign() or _task() != -1 or is_evaluation(module):
                return
            step = self._steps.open
            if step is not None:
                if step.explicit or self._steps.optimizers.running or not self._is_over(step):
                    return
                self._steps.finish(step)
            step = Step(self._steps, self._steps.next, None, explicit=False)
            step.forwards, step.began_with_part = 1, True
            self._steps.optimizers.forward_begins()
            self._steps.begin(step)
            if step.captured is not None and step.hooks is not None:
                if self._steps.optimizers.running:  # as above
                    step.captured.parameters.copy_all()
                if step.captured.tracer is not None:
                    step.captured.tracer.enter(module, args, {})
                step.hooks.entered_part(module, args)
        except Exception as error:
            self._steps.shield.failed("the beginning of a forward pass", error)

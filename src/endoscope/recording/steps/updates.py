"""Hooks of optimizers that stay between steps: an update reads gradients and parameters, and usually ends a step.

optimizer.step(closure) ─► before: gradients and parameters are read; a closure is observed ─► after: the step ends
"""

from __future__ import annotations

import threading
from typing import Any

from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.recording.failures.sentences import IN_EVALUATION_MODE, LATE_UPDATE, NO_FORWARD
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.steps.driver import Driver
from endoscope.recording.steps.forwards import Forwards
from endoscope.recording.steps.step import Step

_thread = threading.get_ident


class Updates:
    """Called in every step, and therefore without `with shield(...)`."""

    def __init__(self, steps: Driver, forwards: Forwards) -> None:
        self._steps, self._forwards = steps, forwards

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        try:
            if self._steps.is_over or not self._steps.optimizers.begins(optimizer):
                return None
            me, step = _thread(), self._steps.open
            if self._steps.trainer != me or (step is not None and step.thread != me):
                self._take_over(me)
                if self._steps.is_foreign():
                    return None
                step = self._steps.open
            self._steps.times.update_begins()
            closure = args[1] if len(args) > 1 else kwargs.get("closure")
            if step is not None and step.failed and closure is not None and not step.explicit:
                self._steps.finish(step)  # forward passes are inside of the update, so none of them will end it
                step = None
            if step is not None:
                if getattr(optimizer, "found_inf", None) is not None:
                    step.skipped = bool(optimizer.found_inf)
                if step.captured is not None and not self._steps.optimizers.is_inner:
                    self._look_before_update(step, step.captured, optimizer, closure is not None)
            if closure is not None and not self._steps.optimizers.is_inner:
                return self._with_observed(closure, optimizer, args, kwargs)
        except Exception as error:
            self._steps.shield.failed("the beginning of an update", error)
        return None

    def _look_before_update(self, step: Step, captured: Captured, optimizer: Any, has_closure: bool) -> None:
        """Gradients and parameters, before the optimizer writes."""
        if _task() == -1 and step.hooks is not None:
            if captured.tracer is not None:
                captured.tracer.pause()
            step.hooks.losses.pause()
        captured.before_update(_moved(optimizer), getattr(optimizer, "grad_scale", None), has_closure)

    def _with_observed(self, closure: Any, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """With a closure the forward pass is inside of the update; there are gradients when the closure returns."""

        def observed() -> Any:
            if (before := self._captured_here()) is not None and before.tracer is not None:
                before.tracer.resume()
            self._steps.optimizers.closures += 1
            try:
                return closure()
            except BaseException:
                self._raised()
                raise
            finally:
                self._steps.optimizers.closures -= 1
                with self._steps.shield("the gradients of a closure"):
                    if (captured := self._captured_here()) is not None:
                        if captured.tracer is not None:
                            captured.tracer.pause()
                        captured.closure_returned(_moved(optimizer))

        if len(args) > 1:
            return (args[0], observed, *args[2:]), kwargs
        return args, {**kwargs, "closure": observed}

    def _raised(self) -> None:
        """In a closure: nobody tells the end of the update around it."""
        self._steps.optimizers.running.clear()
        if self._steps.open is not None and not self._steps.is_foreign():
            self._steps.open.failed = True

    def _captured_here(self) -> Captured | None:
        return None if self._steps.open is None or self._steps.is_foreign() else self._steps.open.captured

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if not self._steps.optimizers.ends(optimizer) or self._steps.is_foreign():
                return
            self._steps.times.update_ends()
            step = self._steps.open
            if step is None:
                self._missed_step(optimizer)
                return
            self._forwards.passed_over = False
            if step.captured is not None:
                with quiet():
                    step.captured.gradients.after_update()
            self._note_update(step, optimizer)
            if _task() != -1:  # one of many optimizers, each of which moves a parameter as its gradient arrives
                step.moved = True
            elif not step.explicit and self._steps.optimizers.end_step(optimizer):
                self._steps.finish(step)
            else:
                step.moved = True
                if step.captured is not None and step.captured.tracer is not None:
                    step.captured.tracer.resume()
        except Exception as error:
            self._steps.shield.failed("the end of a step", error)

    def _note_update(self, step: Step, optimizer: Any) -> None:
        optimizers = self._steps.optimizers
        self._steps.passes.stepped = True
        step.optimizers.append(id(optimizer))
        step.iteration = optimizers.count(optimizer)
        if not step.explicit:
            step.updated = optimizers.type_of(step.optimizers)
        if step.captured is not None and (settings := optimizers.settings(optimizer)):
            step.settings_of.append(settings)
        for name, rate in optimizers.rates(optimizer):
            step.metrics.setdefault(name, rate)

    def _missed_step(self, optimizer: Any) -> None:
        """An optimizer has moved a model while no step was open."""
        if self._steps.optimizers.came_late(optimizer):
            self._steps.say_once(LATE_UPDATE)
        elif self._forwards.passed_over:  # last seen in evaluation mode: it is being trained that way
            self._forwards.passed_over = False
            self._steps.say_once(IN_EVALUATION_MODE)
        elif not self._steps.paused:
            self._forwards.look_for_parts()
            self._steps.say_once(NO_FORWARD)

    def _take_over(self, me: int) -> None:
        """This thread trains. A step that another one began by calling the model is none."""
        step = self._steps.open
        if step is not None and step.thread != me and not step.explicit:
            self._steps.gap("", f"step {step.number} was left out: another thread called the model meanwhile")
            self._steps.abandon(step)
        self._steps.trainer = me


def _moved(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]

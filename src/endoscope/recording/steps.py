"""Drives the steps of a run: from what hooks tell to steps that begin, are captured, end, and are recorded.

    before_forward ─► begin ─► the schedule says whether the step is captured ─► Captured, Hooks, perhaps a Tracer
    before_update, after_update ─► finish ─► recorded or not ─► measured ─► writer thread

What belongs to which step is decided by `boundaries.py`. A step that is not captured touches a few counters only.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from endoscope.capture.eager import run_compiled_code_again, run_compiled_code_eagerly
from endoscope.errors import BadArgument
from endoscope.recording import forks
from endoscope.recording.boundaries import Passes, probes_of
from endoscope.recording.budget import DROPPED, IDLE, KEPT, Budget
from endoscope.recording.captured import Captured
from endoscope.recording.compiled import (
    hide_global_hooks,
    keep_compiled_calls_out,
    let_compiled_calls_in,
    show_global_hooks,
)
from endoscope.recording.finishing import Finisher
from endoscope.recording.heap import Heap
from endoscope.recording.hooks import Hooks
from endoscope.recording.metrics import held_number
from endoscope.recording.names import Names
from endoscope.recording.optimizers import Optimizers
from endoscope.recording.quiet import quiet
from endoscope.recording.schedule import Schedule
from endoscope.recording.selection import Selection
from endoscope.recording.shield import Shield
from endoscope.recording.spectra import Spectra
from endoscope.recording.step import Step
from endoscope.recording.structures import Learned
from endoscope.recording.tracer import Tracer, is_evaluation
from endoscope.recording.verdicts import Decision
from endoscope.recording.watch import KEEP_OUT, LET_IN, Stopwatch, Watch
from endoscope.recording.worker import Worker
from endoscope.schema.recording import GapRecord

IN_EVALUATION_MODE = (
    "the model is trained in evaluation mode, and forward passes in evaluation mode begin no step. "
    "Put `with run.step():` around each training step."
)
HOOKS = (
    "the steps are so short that counting them takes more than the budget, although nothing is recorded in most of "
    "them; use a larger budget"
)
UNSEEN_PASS = (
    "gradients arrived, and no backward pass was seen beginning, so those of activations are missing. Call "
    "`loss.backward()`, or `torch.autograd.backward(...)`."
)
NO_PASS = (
    "the parameters were moved by hand, and no backward pass was seen: there are no gradients, and the loss is not "
    "known. Call `loss.backward()`, or name the loss: `with run.step() as step:` and "
    "`step.tag('loss', loss, kind='loss')`."
)
BEGUN_UNKNOWN = (
    "was left out: that it had begun was known only when the gradients before it had been cleared, unused. Call "
    "`optimizer.zero_grad()` before the forward pass."
)
NO_FORWARD = (
    "an optimizer moved the model, and no forward pass of it was seen. Call the model itself, `model(x)`, and not "
    "`model.forward(x)`; or put `with run.step():` around each training step."
)

_thread = threading.get_ident
_task = torch._C._current_graph_task_id  # -1 unless autograd is running a backward pass in this thread


class Steps:
    """The steps of one run, one after the other."""

    def __init__(
        self,
        schedule: Schedule,
        budget: Budget | None,
        finisher: Finisher,
        worker: Worker,
        shield: Shield,
        gap: Callable[[str, str], None],
    ) -> None:
        self.shield = shield
        self.open: Step | None = None
        self.next = 0  # number of the next step
        self.last = -1  # number of the last one
        self.last_type = ""
        self.closed = False
        self.paused = False
        self.spectra: Spectra | None = None
        self.watches: list[Watch] = []
        self._schedule, self._budget = schedule, budget
        self._finisher, self._worker, self._gap = finisher, worker, gap
        self._names = Names(self.watches)
        self._learned = Learned()
        self._selection = Selection(())
        self._optimizers = Optimizers(self.watches)
        self._passes = Passes(self._divide)
        self._heap = Heap()
        self._stopwatch = Stopwatch()
        self._said: set[str] = set()
        self._depth = 0  # calls of watched models that are running inside of each other
        self._trainer: int | None = None  # the thread in which optimizers step
        self._passed_over = False  # a forward pass that could have been meant as training began no step
        self._born = forks.count
        self._sentinel: Any = None  # a hook that looks for parts of a model that are called one by one
        self._types_after: dict[str, str] = {}  # type of a step -> that of the one that followed it last
        self._compiled: list[Any] = []

    # ---- models ----------------------------------------------------------------------------------

    def watch(self, watch: Watch) -> None:
        everywhere = not watch.optimizers and not self._optimizers.everywhere
        watch.hook(
            self.before_forward, self.after_forward, self.before_update, self.after_update, everywhere, self._stopwatch
        )  # fmt: skip
        self._optimizers.everywhere |= everywhere
        self.watches.append(watch)
        self._optimizers.add(watch.optimizers)
        self._passes.watch(probes_of(watch.module, watch.optimizers))
        self._names.look_again()
        self._selection = Selection(self.watches)
        self._look_for_parts()

    def close(self) -> None:
        if self.open is not None:
            with self.shield("the last step"):
                self.finish(self.open)
        self.closed = True
        for watch in self.watches:
            watch.unhook()
        self._passes.unwatch()
        self._look_for_no_parts()
        self.watches.clear()
        self._names.clear()
        self._learned = Learned()
        self._selection = Selection(())
        self._optimizers.clear()
        if self._heap.keeps:
            self._heap.let_go()

    @property
    def current(self) -> Step:
        """The open step; outside of any, one that is not recorded and hands its metrics to the last step."""
        if self.open is not None:
            return self.open
        step = Step(self, max(self.last, 0), self.last_type, explicit=False)
        step.ended = True
        return step

    def report(self, name: str, value: Any) -> None:
        """A metric of the open step, or of the one that has just ended."""
        if self.open is not None:
            self.open.metric(name, value)
        else:
            self._finisher.metrics(max(self.last, 0), self.last_type, {name: held_number(value)})

    # ---- blocks of the user ----------------------------------------------------------------------

    def enter(self, step: Step) -> None:
        try:
            if self.open is not None:
                if self.open.explicit:
                    raise BadArgument(
                        f"run.step() was entered while step {self.open.number} is still open; steps do not nest. "
                        "The inner one is not recorded."
                    )
                self.finish(self.open)
            self.begin(step)
            if step.hooks is not None:
                step.hooks.losses.begin()
        except Exception as error:
            self.shield.failed("the beginning of a step", error)

    def leave(self, step: Step) -> None:
        if self.open is step:
            try:
                self.finish(step)
            except Exception as error:
                self.shield.failed("the end of a step", error)

    def decided(self, step: Step, late: bool) -> None:
        """The user has said something about a step; if it is not kept, its values are let go of at once."""
        self._schedule.user_decides |= late
        if step.keep is False and step.captured is not None and _task() == -1:
            if step.hooks is not None and step.hooks.depth:
                return
            captured, step.captured = step.captured, None
            self._schedule.could_not_capture()
            try:
                self._stop_capturing(step, captured)
            finally:
                self._let_go(captured, kept=False)

    # ---- the life of a step ----------------------------------------------------------------------

    def begin(self, step: Step) -> None:
        self.open = step
        self.next = step.number + 1
        step.began = time.perf_counter()
        if self.closed or forks.count != self._born:
            return
        self._passes.begin_step()
        step.in_pause = self.paused
        if step.in_pause:
            return
        expected = step.type if step.type is not None else self._types_after.get(self.last_type, "")
        verdict = self._schedule.begin(step.number, expected)
        if not verdict.capture:
            return
        if not self._worker.has_room():
            self._left_out(step)
            return
        self._heap.keep()
        with quiet():
            self._capture(step, expected)

    def _capture(self, step: Step, expected: str) -> None:
        self._names.refresh()
        self._learned.renew(self._names)
        tracer = None
        if self._learned.next_is_traced(expected):
            self._names.refresh_buffers()
            tracer = Tracer(self._names, self._failed)
        captured = Captured(self._names, self._learned, self._failed, tracer)
        captured.wants_spectra = self.spectra is not None and self.spectra.wanted(step.number, expected)
        hooks = Hooks(captured, self._failed)
        hooks.skips_evaluation = not step.explicit
        step.captured, step.hooks = captured, hooks
        try:
            self._compiled = keep_compiled_calls_out(self._names)
            run_compiled_code_eagerly()
            hooks.put_on()
            if tracer is not None:
                tracer.recorder.skips_evaluation = not step.explicit
                self._selection.observe(captured, self._learned)
                tracer.begin()
        except BaseException:
            step.captured = None
            self._schedule.could_not_capture()
            self._stop_capturing(step, captured)
            raise

    def _stop_capturing(self, step: Step, captured: Captured) -> None:
        """Nothing of ours is left on torch or the model."""
        hooks, step.hooks = step.hooks, None
        try:
            if captured.tracer is not None:
                captured.tracer.end()
        finally:
            if hooks is not None:
                hooks.take_off()
            run_compiled_code_again()
            let_compiled_calls_in(self._compiled)

    def _failed(self, where: str, error: BaseException) -> None:
        self.shield.failed(where, error)

    def _left_out(self, step: Step) -> None:
        self._schedule.could_not_capture()
        self.shield.say("queue", "Endoscope: the disk is slower than the recording, so steps are left out.")
        self._gap("queue", f"step {step.number} was left out: the queue to the writer was full")

    def finish(self, step: Step) -> None:
        """Decide, measure, hand over; whatever happens, let go of everything."""
        self.open, self.last, step.ended = None, step.number, True
        captured, step.captured = step.captured, None
        started, kept = time.perf_counter(), False
        step.metrics |= step.part_metrics
        said = self._schedule.user_decides
        if step.type is None and not step.explicit:
            step.type = step.updated
            self._types_after[self.last_type] = step.type
        try:
            if captured is not None:
                self._stop_capturing(step, captured)
                self._compare_passes(captured)
            decision = self._decide(step, captured)
            self._schedule.user_decides = said
            self.last_type = decision.type
            kept = captured is not None and decision.keep
            if captured is not None and decision.keep:
                detail = 0 if self._budget is None else self._budget.detail
                self._finisher.record(step, captured, self._selection, decision, started, detail)
            else:
                if captured is not None and captured.tracer is not None:
                    self._learn_from_dropped(step, captured)
                if decision.why:
                    self._gap("", f"step {step.number} was to be recorded: {decision.why}")
                if step.metrics:
                    self._finisher.metrics(step.number, decision.type, step.metrics)
        finally:
            if captured is not None:
                try:
                    self._let_go(captured, kept)
                finally:
                    self._finisher.hand_over()
            if self._budget is not None:
                self._charge(self._budget, step, started, KEPT if kept else IDLE if captured is None else DROPPED)
        for problem in self._schedule.take_problems() if self._schedule.problems else ():
            self.shield.say(problem, f"Endoscope: {problem}")
            self._gap("when", problem)

    def _decide(self, step: Step, captured: Captured | None) -> Decision:
        if step.in_pause:
            return self._schedule.pass_over(step.type)
        held = None if captured is None else functools.partial(self._finisher.look, step, captured, self._selection)
        nonfinite = False if captured is None else captured.nonfinite
        return self._schedule.finish(
            type=step.type, keep=step.keep, metrics=step.metrics, nonfinite=nonfinite, held=held
        )

    def _charge(self, budget: Budget, step: Step, started: float, kind: str) -> None:
        now = time.perf_counter()
        own = 0.0 if kind == IDLE else now - started
        budget.step_ended(step.type or "", now - step.began, kind, own, self._worker.seconds)
        if self._stopwatch.is_on:
            seconds = self._stopwatch.stop()
            if kind == IDLE:
                budget.hooks_took(seconds)
                if budget.hooks_alone_break_it:
                    self._say_once(HOOKS)
        elif kind == IDLE and budget.wants_hooks_timed:
            self._stopwatch.start()

    def _compare_passes(self, captured: Captured) -> None:
        """Backward passes are seen in two ways: where one of them has seen nothing, it has to be mended or said."""
        if not captured.gradients.passes:
            if self._passes.were_seen:
                captured.refused.append(GapRecord("", "gradient", UNSEEN_PASS))
        elif not self._passes.were_seen and (reached := captured.gradients.reached()):
            self._passes.watch([self._names.tensors[max(reached)]])

    def _learn_from_dropped(self, step: Step, captured: Captured) -> None:
        with self.shield("the structure of a step"), quiet():
            self._finisher.structure(step, captured, self._selection)

    def _let_go(self, captured: Captured, kept: bool) -> None:
        captured.let_go()
        if self.spectra is not None:
            self.spectra.finished(kept)

    def _divide(self) -> None:
        """The gradients of the open step were cleared, unused, after the next forward pass had begun: what came before
        that is a step of its own."""
        step = self.open
        if step is None or step.explicit or not step.is_in_part or self._foreign():
            return
        first = Step(self, step.number, step.type, explicit=False)
        first.metrics, first.settings = step.metrics, step.settings
        first.forwards = step.forwards - step.part_forwards
        first.skipped, first.iteration = True, self._optimizers.iteration
        second = Step(self, step.number + 1, None, explicit=False)
        second.metrics, second.forwards = step.part_metrics, step.part_forwards
        captured, hooks = step.captured, step.hooks
        step.captured = step.hooks = None
        try:
            if captured is not None:
                first.captured = captured.split(step.part_from)
            self._finish_divided(first)
        finally:
            self.open, self.next = second, second.number + 1
            verdict = self._schedule.begin(second.number, second.type)
            second.captured, second.hooks = captured, hooks
            if hooks is not None:
                hooks.losses.restart()
            if captured is None and verdict.capture:
                self._schedule.could_not_capture()
                self._gap("", f"step {second.number} {BEGUN_UNKNOWN}")

    def _finish_divided(self, step: Step) -> None:
        captured, step.captured = step.captured, None
        step.type = step.type or ""
        self.last = step.number
        decision = self._decide(step, captured)
        if captured is not None and decision.keep:
            self._finisher.record(step, captured, self._selection, decision, time.perf_counter())
            self._finisher.hand_over()
        elif step.metrics:
            self._finisher.metrics(step.number, decision.type, step.metrics)

    # ---- hooks of watched models -----------------------------------------------------------------

    def _foreign(self) -> bool:
        """Another thread than that of the open step, or than the one that trains; or a forked process."""
        if self.closed or forks.count != self._born:
            return True
        step, owner = self.open, self._trainer
        if step is not None:
            owner = step.thread
        return owner is not None and owner != _thread()

    # Called in every step, and therefore without `with self.shield(...)`.

    def before_forward(self, module: Any, args: Any, kwargs: Any) -> str:
        try:
            if self._foreign():
                return ""
            depth, self._depth = self._depth, self._depth + 1
            step = self.open
            if step is None or not step.explicit:
                if not module.training or not torch.is_grad_enabled() or _task() != -1:
                    self._passed_over = self._passed_over or torch.is_grad_enabled()
                    return ""
                if step is not None and not depth and not self._optimizers.running:
                    if step.began_with_part and not self._passes.were_seen:
                        self._abandon(step)  # a part was called before, on its own: the model itself begins the step
                        step = None
                    elif self._is_over(step):
                        self.finish(step)
                        step = None
            if step is None:
                return self._begin_by_itself(module, args, kwargs)
            if not depth:
                self._count_forward(step)
            if step.hooks is not None:
                if step.captured is not None and step.captured.tracer is not None:
                    step.captured.tracer.resume()
                step.hooks.root_called(module, args, kwargs)
        except Exception as error:
            self.shield.failed("the beginning of a forward pass", error)
        return ""

    def _begin_by_itself(self, module: Any, args: Any, kwargs: Any) -> str:
        """A step begins with a forward pass, which has begun already."""
        step = Step(self, self.next, None, explicit=False)
        step.forwards = 1
        self._optimizers.forward_begins()
        self._look_for_no_parts()
        self.begin(step)
        captured, hooks = step.captured, step.hooks
        if captured is None or hooks is None:
            return ""
        if self._optimizers.running:  # an optimizer with a closure: its forward passes are inside its update
            captured.parameters.copy_all()
        if hasattr(module, "_orig_mod"):  # the model inside of a compiled one is yet to be called
            hooks.root_called(module, args, kwargs)
            return ""
        if captured.tracer is not None:
            captured.tracer.enter(module, args, kwargs)
        hooks.entered_root(module, args, kwargs)
        return KEEP_OUT

    def after_forward(self, module: Any, args: Any, kwargs: Any, out: Any) -> str:
        if self.closed:
            return LET_IN
        try:
            if self._foreign():
                return ""
            self._depth = max(self._depth - 1, 0)
            if self.open is not None and out is None and sys.exc_info()[1] is not None:
                self.open.failed = True
        except Exception as error:
            self.shield.failed("the end of a forward pass", error)
        return "" if self._depth else LET_IN

    def _count_forward(self, step: Step) -> None:
        step.forwards += 1
        if self._passes.were_seen and not step.explicit:
            if not step.is_in_part or self._passes.came_since_forward:
                self._begin_part(step)
            step.part_forwards += 1
        self._passes.forward_begins()

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
        if self._passes.were_seen and self._passes.are_cleared():
            step.skipped, step.iteration = True, self._optimizers.iteration
            return True
        if self._optimizers.known or not self._passes.were_moved_by_hand() or self._optimizers.exist():
            return False
        if not self._passes.were_seen and step.captured is not None:
            step.captured.refused.append(GapRecord("", "gradient", NO_PASS))
        return True

    # ---- parts of a model that are called one by one ---------------------------------------------

    def _look_for_parts(self) -> None:
        if self._sentinel is None and any(len(watch.module._modules) for watch in self.watches):
            with self.shield("the names of a model"):
                self._names.refresh()
            hide_global_hooks()
            self._sentinel = register_module_forward_pre_hook(self._on_any_module)

    def _look_for_no_parts(self) -> None:
        if self._sentinel is not None:
            self._sentinel.remove()
            show_global_hooks()
            self._sentinel = None

    def _on_any_module(self, module: Any, args: Any) -> None:
        """Stays on only while no step was begun by a call of a watched model itself."""
        try:
            if id(module) not in self._names.modules or id(module) in self._names.roots or self._depth:
                return
            if self._foreign() or _task() != -1 or is_evaluation(module):
                return
            step = self.open
            if step is not None:
                if step.explicit or self._optimizers.running or not self._is_over(step):
                    return
                self.finish(step)
            step = Step(self, self.next, None, explicit=False)
            step.forwards, step.began_with_part = 1, True
            self._optimizers.forward_begins()
            self.begin(step)
            if step.captured is not None and step.hooks is not None:
                if step.captured.tracer is not None:
                    step.captured.tracer.enter(module, args, {})
                step.hooks.entered_part(module, args)
        except Exception as error:
            self.shield.failed("the beginning of a forward pass", error)

    # ---- hooks of optimizers ---------------------------------------------------------------------

    def before_update(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        try:
            if self.closed or forks.count != self._born or not self._optimizers.begins(optimizer):
                return None
            me, step = _thread(), self.open
            if self._trainer != me or (step is not None and step.thread != me):
                self._take_over(me)
                if self._foreign():
                    return None
                step = self.open
            closure = args[1] if len(args) > 1 else kwargs.get("closure")
            if step is not None:
                self._look_before_update(step, optimizer, closure is not None)
            if closure is not None and not self._optimizers.is_inner:
                return self._with_observed(closure, optimizer, args, kwargs)
        except Exception as error:
            self.shield.failed("the beginning of an update", error)
        return None

    def _look_before_update(self, step: Step, optimizer: Any, has_closure: bool) -> None:
        """Gradients and parameters, before the optimizer writes."""
        if getattr(optimizer, "found_inf", None) is not None:
            step.skipped = bool(optimizer.found_inf)
        captured = step.captured
        if captured is None or step.hooks is None or self._optimizers.is_inner:
            return
        if _task() == -1:
            if captured.tracer is not None:
                captured.tracer.pause()
            step.hooks.losses.pause()
        captured.before_update(_moved(optimizer), getattr(optimizer, "grad_scale", None), has_closure)

    def _with_observed(self, closure: Any, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """With a closure the forward pass is inside of the update; there are gradients when the closure returns."""

        def observed() -> Any:
            if (before := self._captured_here()) is not None and before.tracer is not None:
                before.tracer.resume()
            try:
                return closure()
            finally:
                with self.shield("the gradients of a closure"):
                    if (captured := self._captured_here()) is not None:
                        if captured.tracer is not None:
                            captured.tracer.pause()
                        captured.closure_returned(_moved(optimizer))

        if len(args) > 1:
            return (args[0], observed, *args[2:]), kwargs
        return args, {**kwargs, "closure": observed}

    def _captured_here(self) -> Captured | None:
        return None if self.open is None or self._foreign() else self.open.captured

    def after_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if not self._optimizers.ends(optimizer) or self._foreign():
                return
            step = self.open
            if step is None:
                self._missed_step(optimizer)
                return
            self._passed_over = False
            if step.captured is not None:
                with quiet():
                    step.captured.gradients.after_update()
            self._note_update(step, optimizer)
            if _task() != -1:  # one of many optimizers, each of which moves a parameter as its gradient arrives
                step.moved = True
            elif not step.explicit and self._optimizers.end_step(optimizer):
                self.finish(step)
            else:
                step.moved = True
                if step.captured is not None and step.captured.tracer is not None:
                    step.captured.tracer.resume()
        except Exception as error:
            self.shield.failed("the end of a step", error)

    def _note_update(self, step: Step, optimizer: Any) -> None:
        self._passes.optimizer_stepped()
        step.optimizers.append(id(optimizer))
        step.iteration = self._optimizers.count(optimizer)
        if not step.explicit and self._optimizers.are_several:
            step.updated = self._optimizers.type_of(step.optimizers)
        for name, rate in self._optimizers.rates(optimizer):
            step.metrics.setdefault(name, rate)

    def _take_over(self, me: int) -> None:
        """This thread trains. A step that another one began by calling the model is none."""
        step = self.open
        if step is not None and step.thread != me and not step.explicit:
            self._gap("", f"step {step.number} was left out: another thread called the model meanwhile")
            self._abandon(step)
        self._trainer = me

    def _abandon(self, step: Step) -> None:
        captured, step.captured, self.open = step.captured, None, None
        self.next = step.number
        self._schedule.withdraw()
        if captured is not None:
            self._stop_capturing(step, captured)
            captured.let_go()

    def _missed_step(self, optimizer: Any) -> None:
        """An optimizer has moved a model while no step was open."""
        if self._optimizers.came_late(optimizer):
            self._say_once("the update of another optimizer came when the step had ended; later steps wait for it")
        elif self._passed_over:  # last seen in evaluation mode: it is being trained that way
            self._passed_over = False
            self._say_once(IN_EVALUATION_MODE)
        elif not self.paused:
            self._look_for_parts()
            self._say_once(NO_FORWARD)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._gap("", text)
            if text in (IN_EVALUATION_MODE, NO_FORWARD):
                self.shield.say(text, f"Endoscope: {text}")


def _moved(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]

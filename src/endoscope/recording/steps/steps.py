"""Drives the steps of a run: from what hooks tell to steps that begin, are captured, end, and are recorded.

    before_forward ─► begin ─► the schedule says whether the step is captured ─► Captured, Hooks, perhaps a Tracer
    before_update, after_update ─► finish ─► recorded or not ─► measured ─► writer thread

What belongs to which step is decided by `boundaries.py`. A step that is not captured touches a few counters only.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from endoscope.capture.patch.compiled import run_compiled_code_again, run_compiled_code_eagerly
from endoscope.capture.patch.torch_private import backward_task as _task
from endoscope.capture.record.parts import here
from endoscope.errors import BadArgument
from endoscope.recording import forks
from endoscope.recording.deciding.budget import DROPPED, IDLE, KEPT, Budget
from endoscope.recording.deciding.schedule import Schedule
from endoscope.recording.deciding.verdicts import Decision
from endoscope.recording.failures.sentences import (
    BEGUN_UNKNOWN,
    HOOKS,
    IN_EVALUATION_MODE,
    NO_FORWARD,
    SHAPES_CAME,
    STOPPED,
    UNSEEN_PASS,
)
from endoscope.recording.failures.shield import Shield
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.compiled import (
    keep_compiled_calls_out,
    let_compiled_calls_in,
)
from endoscope.recording.hooks.hooks import Hooks
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.output.finishing import Finisher
from endoscope.recording.output.heap import Heap
from endoscope.recording.output.metrics import held_number
from endoscope.recording.output.spectra import Spectra
from endoscope.recording.output.times import Times
from endoscope.recording.output.worker import Worker
from endoscope.recording.steps.boundaries import Passes, probes_of
from endoscope.recording.steps.forwards import Forwards
from endoscope.recording.steps.names import Names
from endoscope.recording.steps.optimizers import Optimizers, Turns
from endoscope.recording.steps.step import Step
from endoscope.recording.steps.updates import Updates
from endoscope.recording.steps.watch import Stopwatch, Watch
from endoscope.recording.structure.learned import Learned
from endoscope.recording.structure.selection import Selection
from endoscope.recording.structure.tracer import Tracer
from endoscope.schema.recording import GapRecord

_thread = threading.get_ident


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
        self.ends_nonfinite: list[str] = []  # parameters that hold NaN or infinity when the run is closed
        self.paused = False
        self.spectra: Spectra | None = None
        self.watches: list[Watch] = []
        self._schedule, self._budget = schedule, budget
        self._finisher, self._worker, self.gap = finisher, worker, gap
        self.names = Names(self.watches)
        self._learned = Learned()
        self._selection = Selection(())
        self.optimizers = Optimizers(self.watches)
        self.passes = Passes(self._divide)
        self._heap = Heap()
        self._stopwatch = Stopwatch()
        self._said: set[str] = set()
        self.trainer: int | None = None  # the thread in which optimizers step
        self.born = forks.count
        self.times = Times(finisher.times)
        self.forwards = Forwards(self)
        self.updates = Updates(self, self.forwards)
        self._turns = Turns()
        self._compiled: list[Any] = []

    # ---- models ----------------------------------------------------------------------------------

    def watch(self, watch: Watch) -> None:
        everywhere = not watch.optimizers and not self.optimizers.everywhere
        watch.hook(
            self.forwards.before, self.forwards.after, self.updates.before, self.updates.after, everywhere,
            self._stopwatch,
        )  # fmt: skip
        self.optimizers.everywhere |= everywhere
        self.watches.append(watch)
        self.optimizers.add(watch.optimizers)
        self.passes.watch(probes_of(watch.module, watch.optimizers))
        self.names.look_again()
        self._selection = Selection(self.watches)
        self.forwards.look_for_parts()

    def close(self) -> None:
        if self.open is not None:
            with self.shield("the last step"):
                self._look_where_it_stopped(self.open)
                if self.open.captured is None and not (self.open.optimizers or self.passes.were_seen):
                    self.gap("", f"step {self.open.number} {STOPPED}")
                self.finish(self.open)
        self.closed = True
        self.ends_nonfinite = self._nonfinite_parameters()
        for watch in self.watches:
            watch.unhook()
        self.times.flush()
        self.passes.unwatch()
        self.forwards.look_for_no_parts()
        self.watches.clear()
        self.names.clear()
        self._learned = Learned()
        self._selection = Selection(())
        self.optimizers.clear()
        if self._heap.keeps:
            self._heap.let_go()

    def _nonfinite_parameters(self) -> list[str]:
        """One look at the very end: most steps are not recorded, and NaN stays in the parameters."""
        found: list[str] = []
        with self.shield("the parameters at the end"), quiet(), torch.no_grad():
            for watch in self.watches if forks.count == self.born else ():
                for name, parameter in watch.parameters():
                    if parameter.is_floating_point() and not bool(
                        torch.isfinite(here(parameter).sum(dtype=torch.float32))
                    ):
                        found.append(name)
        return found

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
                self.look_whether_skipped(step)
                self._look_where_it_stopped(step)
                self.finish(step)
            except Exception as error:
                self.shield.failed("the end of a step", error)

    def _look_where_it_stopped(self, step: Step) -> None:
        """The user may have looked at the loss and ended the training before `backward`."""
        if self.is_foreign():
            return
        if step.captured is not None and step.hooks is not None:
            step.hooks.losses.stopped()

    def look_whether_skipped(self, step: Step) -> bool:
        """Mark the step if its gradients were cleared, unused."""
        if not (self.passes.were_seen and self.passes.are_cleared()):
            return False
        step.skipped, step.iteration = True, self.optimizers.iteration
        return True

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
        if self.is_over:
            return
        self.passes.begin_step()
        if self.paused:
            step.in_pause = True
            return
        expected = step.type if step.type is not None else self._turns.next()
        if not self._schedule.begin(step.number, expected).capture:
            return
        if not self._worker.has_room():
            self._left_out(step)
            return
        if not self._heap.keeps:
            self._heap.keep()
        with quiet():
            self._capture(step, expected)

    def _capture(self, step: Step, expected: str) -> None:
        self.names.refresh()
        self._learned.renew(self.names)
        tracer = None
        if self._learned.next_is_traced(expected):
            self.names.refresh_buffers()
            tracer = Tracer(self.names, self.shield.failed)
        captured = Captured(self.names, self._learned, self.shield.failed, tracer)
        captured.wants_spectra = self.spectra is not None and self.spectra.wanted(step.number, expected)
        hooks = Hooks(captured, self.shield.failed)
        hooks.skips_evaluation = not step.explicit
        step.captured, step.hooks = captured, hooks
        try:
            self._compiled = keep_compiled_calls_out(self.names)
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

    def _left_out(self, step: Step) -> None:
        self._schedule.could_not_capture()
        self.shield.say("queue", "Endoscope: the disk is slower than the recording, so steps are left out.")
        self.gap("queue", f"step {step.number} was left out: the queue to the writer was full")

    def finish(self, step: Step) -> None:
        """Decide, measure, hand over; whatever happens, let go of everything."""
        self.open, self.last, step.ended = None, step.number, True
        captured, step.captured = step.captured, None
        started, kept = time.perf_counter(), False
        if step.part_metrics:
            step.metrics |= step.part_metrics
        if step.type is None and not step.explicit:
            step.type = step.updated
            self._turns.came(step.type)
        try:
            if captured is not None:
                self._stop_capturing(step, captured)
                self._look_for_gaps(captured)
            kept = self._conclude(step, captured, started)
        finally:
            if captured is not None:
                try:
                    self._let_go(captured, kept)
                finally:
                    self._finisher.hand_over()
            self.times.step_ends(step.number, self.last_type, captured is not None, time.perf_counter() - started)
            if self._budget is not None:
                self._charge(self._budget, step, started, KEPT if kept else IDLE if captured is None else DROPPED)
        if self._schedule.problems:
            for problem in self._schedule.take_problems():
                self.shield.say(problem, f"Endoscope: {problem}")
                self.gap("when", problem)

    def _conclude(self, step: Step, captured: Captured | None, started: float) -> bool:
        """Record the step, or what is told of one that is not recorded; returns whether it was recorded."""
        decision = self._decide(step, captured)
        self.last_type = decision.type
        if captured is not None and decision.keep:
            detail = 0 if self._budget is None else self._budget.detail
            self._finisher.record(step, captured, self._selection, decision, started, detail)
            return True
        if captured is not None and captured.tracer is not None:
            self._learn_from_dropped(step, captured)
        if decision.why:
            self.gap("", f"step {step.number} was to be recorded: {decision.why}")
        if step.metrics:
            self._finisher.metrics(step.number, decision.type, step.metrics)
        return False

    def _decide(self, step: Step, captured: Captured | None) -> Decision:
        if step.in_pause:
            return self._schedule.pass_over(step.type)
        held = None if captured is None else functools.partial(self._finisher.look, step, captured, self._selection)
        nonfinite = False if captured is None else captured.nonfinite
        said = self._schedule.user_decides
        decision = self._schedule.finish(
            type=step.type, keep=step.keep, metrics=step.metrics, nonfinite=nonfinite, held=held
        )
        self._schedule.user_decides = said  # a type that follows from the optimizer is no word of the user's
        return decision

    def _charge(self, budget: Budget, step: Step, started: float, kind: str) -> None:
        now = time.perf_counter()
        own = 0.0 if kind == IDLE else now - started
        budget.step_ended(step.type or "", now - step.began, kind, own, self._worker.seconds)
        if self._stopwatch.is_on:
            seconds = self._stopwatch.stop()
            if kind == IDLE:
                budget.hooks_took(seconds)
                if budget.hooks_alone_break_it:
                    self.say_once(HOOKS)
        elif kind == IDLE and budget.wants_hooks_timed:
            self._stopwatch.start()

    def _look_for_gaps(self, captured: Captured) -> None:
        if self.names.are_waiting_for_shapes:
            captured.refused.append(GapRecord("", "parameter", SHAPES_CAME))
        self._compare_passes(captured)

    def _compare_passes(self, captured: Captured) -> None:
        """Backward passes are seen in two ways: where one of them has seen nothing, it has to be mended or said."""
        if not captured.gradients.passes:
            if self.passes.were_seen:
                captured.refused.append(GapRecord("", "gradient", UNSEEN_PASS))
        elif not self.passes.were_seen and (reached := captured.gradients.reached()):
            self.passes.watch([self.names.tensors[max(reached)]])

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
        if step is None or step.explicit or not step.is_in_part or self.is_foreign():
            return
        first = Step(self, step.number, step.type, explicit=False)
        first.metrics, first.settings = step.metrics, step.settings
        first.forwards = step.forwards - step.part_forwards
        first.skipped, first.iteration = True, self.optimizers.iteration
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
                self.gap("", f"step {second.number} {BEGUN_UNKNOWN}")

    def _finish_divided(self, step: Step) -> None:
        """What it holds is shared with the step that goes on, so nothing is let go of."""
        captured, step.captured = step.captured, None
        step.type = step.type or ""
        self.last = step.number
        self._conclude(step, captured, time.perf_counter())
        self._finisher.hand_over()

    @property
    def is_over(self) -> bool:
        """The run is closed, or this is a forked process."""
        return self.closed or forks.count != self.born

    def is_foreign(self) -> bool:
        """Another thread than that of the open step, or than the one that trains; or a forked process."""
        owner = self.trainer if self.open is None else self.open.thread
        return self.is_over or (owner is not None and owner != _thread())

    def abandon(self, step: Step) -> None:
        captured, step.captured, self.open = step.captured, None, None
        self.next = step.number
        self._schedule.withdraw()
        if captured is not None:
            self._stop_capturing(step, captured)
            captured.let_go()

    def say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.gap("", text)
            if text in (IN_EVALUATION_MODE, NO_FORWARD):
                self.shield.say(text, f"Endoscope: {text}")

"""`endoscope.Run`: records a training run.

    run.watch(model, optimizer)
    model(x) ─► _before_forward ─► begin: the schedule and the budget say whether the step is captured
    optimizer.step() ─► _before_update, _after_update ─► finish: kept or not ─► measured ─► writer thread

A step that is not captured touches nothing but a few counters.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from endoscope.capture.patches import fall, stand
from endoscope.errors import BadArgument
from endoscope.recording import forks
from endoscope.recording.budget import Budget
from endoscope.recording.captures import Captures
from endoscope.recording.endings import IN_EVALUATION_MODE, Endings
from endoscope.recording.finishing import Finisher
from endoscope.recording.heap import Heap
from endoscope.recording.modules import module_tree
from endoscope.recording.raw import Keep
from endoscope.recording.schedule import Schedule
from endoscope.recording.shield import Shield
from endoscope.recording.spectra import Spectra
from endoscope.recording.step import Step, plain_number
from endoscope.recording.watch import KEEP_OUT, LET_IN, Watch, make_watch
from endoscope.recording.worker import Worker
from endoscope.schema.recording import GapRecord
from endoscope.store.writer import TrialWriter

if TYPE_CHECKING:
    from endoscope.recording.capture import Capture

PASSES_WITHOUT_BACKWARD = 16  # more forward passes than this, with no backward in between, are no training step


_thread = threading.get_ident
_task = torch._C._current_graph_task_id  # -1 unless autograd is running a backward pass in this thread


class Run:
    """One recorded trial; see `docs/reference/recording.md`."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        trial: str = "trial",
        when: Any = None,
        budget: float | None = None,
        keep: Any = 4,
        max_bytes: int | None = None,
        strict: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.strict = strict
        self._keep = Keep.of(keep)
        self._budget = None if budget is None else Budget(budget)
        self._schedule = Schedule(when, self._budget)
        self.shield = Shield(strict, self._gap)
        self._writer = TrialWriter.create(root, trial, config=dict(config or {}), max_bytes=max_bytes)
        self._worker = Worker(self._writing_failed, self._writer.commit, self._writer.name)
        self._finisher = Finisher(self._writer, self._worker, self._keep, self.shield)
        self._watches: list[Watch] = []
        self._captures = Captures(self._watches, self.shield.failed)
        self._spectra: Spectra | None = None
        self._heap = Heap()
        self._open: Step | None = None
        self._next = 0
        self._last = -1  # number of the last step
        self._last_type = ""
        self._endings = Endings()
        self._trainer: int | None = None  # the thread in which optimizers step
        self._mover: weakref.ref[Any] | None = None  # the last one that did
        self._in_update = False
        self._passed_over = False  # a forward pass that could have been meant as training began no step
        self._gradients_are_used_up = False  # somebody overwrites or drops `.grad` before it can be measured
        self._hold_all = False  # gradients of one tensor come in several backward passes
        self._born = forks.count
        self._lock = threading.RLock()
        self.closed = False
        self._at_exit = functools.partial(_close_quietly, weakref.ref(self))
        atexit.register(self._at_exit)

    @property
    def path(self) -> str:
        """Folder of the trial; its name ends in -2, -3, … if the wanted one existed."""
        return str(self._writer.path)

    @property
    def trial(self) -> str:
        return self._writer.name

    # ---- what the user says ----------------------------------------------------------------------

    def watch(
        self,
        model: torch.nn.Module,
        optimizer: Any = None,
        what: Any = None,
        *,
        name: str | None = None,
        batch_dim: int | None = 0,
        spectra: Any = None,
    ) -> torch.nn.Module:
        """Record `model` from now on: a step begins with its forward pass and ends with `optimizer.step()`.

        `spectra` is a policy: at which of the recorded steps singular values are computed, too.
        """
        self._require_open()
        if spectra is not None:
            self._spectra = Spectra(spectra)
        if any(watch.outer is model for watch in self._watches):
            raise BadArgument("This model is being watched already; one call of run.watch(model) is enough.")
        watch = make_watch(model, optimizer, what, name, batch_dim, [w.name for w in self._watches])
        watch.hook(self._before_forward, self._after_forward)
        watch.hook_optimizers(self._before_update, self._after_update)
        self._watches.append(watch)
        self._mover = None
        self._captures.watch_more()
        tree = module_tree(self._watches)
        self._worker.put(lambda: self._writer.write_modules(tree))
        return model

    def step(self, n: int | None = None, type: str | None = None) -> Step:
        """`with run.step() as step:` around one training step, for types, tags, losses and late decisions."""
        return Step(self, self._next if n is None else int(n), type, explicit=True)

    def metric(self, name: str, value: Any) -> None:
        """A number of the current step, or of the step that has just ended."""
        with self.shield(f"metric {name!r}"):
            self._require_open()
            if self._open is not None:
                self._open.metrics[str(name)] = plain_number(value)
            else:
                self._finisher.metrics(max(self._last, 0), self._last_type, {str(name): plain_number(value)})

    def note(self, text: str) -> None:
        """A line of text at the current step."""
        with self.shield("note"):
            self._require_open()
            number = self._open.number if self._open is not None else self._last
            now, line = time.time(), str(text)
            self._worker.put(lambda: self._writer.write_note(number, now, line), len(line))

    def config(self, **settings: Any) -> None:
        """Add to the configuration of the trial."""
        with self.shield("config"):
            self._require_open()
            self._worker.put(lambda: self._writer.update_config(settings))

    def _require_open(self) -> None:
        if self.closed:
            raise BadArgument("This run is closed, so nothing is recorded any more. Make a new endoscope.Run.")

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything recorded so far is written."""
        self._worker.drain(timeout)

    def close(self) -> None:
        """End the trial. What was recorded is complete without it."""
        if self.closed or forks.count != self._born:
            return
        with self._lock:
            if self._open is not None:
                with self.shield("the last step"):
                    self._finish(self._open)
            self.closed = True
        for watch in self._watches:
            watch.unhook()
        self._captures.clear()
        report = self._finisher.report(self._schedule.counts(), self._budget, self._worker.seconds)
        self._worker.put(lambda: self._writer.update_config({"endoscope": report}))
        self._worker.put(self._writer.close)
        self._worker.stop()
        self._finisher.let_go()
        if self._heap.keeps:
            self._heap.let_go()
            fall()
        atexit.unregister(self._at_exit)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.trial!r}: step {self._last}{', closed' if self.closed else ''}>"

    # ---- the life of a step ----------------------------------------------------------------------

    def _make_way(self, step: Step) -> None:
        """Another step is about to begin."""
        if step.explicit:
            raise BadArgument(
                f"run.step() was entered while step {step.number} is still open; steps do not nest. "
                "The inner one is not recorded."
            )
        self._finish(step)

    def _begin(self, step: Step) -> None:
        started = time.perf_counter()
        self._open = step
        self._next = step.number + 1
        if self.closed or forks.count != self._born:
            return
        verdict = self._schedule.begin(step.number, step.type)
        if not verdict.capture:
            return
        if not self._worker.has_room():
            self._left_out(step)
            return
        if not self._heap.keeps:
            self._heap.keep()
            stand()
        spectra = self._spectra is not None and self._spectra.wanted(step.number, step.type)
        early = verdict.final and self._may_measure_early(step) and not spectra
        capture = self._captures.make(postpones=not early)
        capture.gradients.hold_all = self._gradients_are_used_up
        capture.wants_spectra = spectra
        if early:
            samples = range(self._keep.samples)
            capture.measure_early(self._finisher.raw_collector(samples), self._finisher.courses)
        try:
            capture.begin()
        except BaseException:
            self._schedule.could_not_capture()
            capture.end()
            raise
        step.capture = capture
        capture.seconds += time.perf_counter() - started

    def _may_measure_early(self, step: Step) -> bool:
        """Whether it is known now which values are recorded; inside of `run.step()` samples can be chosen later."""
        samples_are_known = not step.explicit or self._keep.samples == 0
        return samples_are_known and not self._captures.selection.patterns and not self._hold_all

    def _left_out(self, step: Step) -> None:
        self._schedule.could_not_capture()
        self.shield.say("queue", "Endoscope: the disk is slower than the recording, so steps are left out.")
        self._gap("queue", f"step {step.number} was left out: the queue to the writer was full")

    def _finish(self, step: Step) -> None:
        """Decide, measure, hand over; whatever happens, let go of everything."""
        self._open, self._last = None, step.number
        capture, step.capture = step.capture, None
        started, kept = time.perf_counter(), False
        try:
            if capture is not None:
                capture.end()
            decision = self._schedule.finish(
                type=step.type,
                keep=step.keep,
                metrics=step.metrics,
                nonfinite=False if capture is None else capture.nonfinite,
                held=None if capture is None else functools.partial(self._finisher.look, step, capture),
            )
            self._last_type = decision.type
            kept = capture is not None and decision.keep
            if capture is not None and decision.keep:
                self._finisher.record(step, capture, decision, started)
            else:
                if decision.why:
                    self._gap("", f"step {step.number} was to be recorded: {decision.why}")
                if step.metrics:
                    self._finisher.metrics(step.number, decision.type, step.metrics)
        finally:
            if capture is not None:
                try:
                    self._let_go(capture, kept)
                finally:
                    self._finisher.hand_over()
                step.spent += capture.cost() + time.perf_counter() - started
            if self._budget is not None:
                self._budget.step_ended(step.type or "", step.spent, kept, self._worker.seconds)
        for problem in self._schedule.take_problems() if self._schedule.problems else ():
            self.shield.say(problem, f"Endoscope: {problem}")
            self._gap("when", problem)

    def _let_go(self, capture: Capture, kept: bool) -> None:
        """Of everything that was held of a step."""
        blank = not kept and capture.is_blank()
        if not kept and not blank:
            capture.gradients.check()
        self._gradients_are_used_up |= bool(capture.gradients.lost)
        if capture.meter is not None:
            self._hold_all |= bool(capture.meter.came_again)
            if not kept:
                self._finisher.give_back(capture.meter.raw)
        if blank:
            self._captures.use_again(capture)
        else:
            capture.let_go()
            if kept:
                self._captures.was_kept()
        if self._spectra is not None:
            self._spectra.finished(kept)

    def _decided_against(self, step: Step, capture: Capture) -> None:
        """Let go of the values of a step at once, unless a pass of it is running."""
        if capture.heard.inside_target or _task() != -1:
            return
        started, step.capture = time.perf_counter(), None
        self._schedule.could_not_capture()
        try:
            capture.end()
        finally:
            self._let_go(capture, kept=False)
            step.spent += capture.cost() + time.perf_counter() - started

    # ---- hooks -----------------------------------------------------------------------------------

    def _foreign(self) -> bool:
        """Another thread than that of the open step, or than the one that trains; or a forked process."""
        if self.closed or forks.count != self._born:
            return True
        step, owner = self._open, self._trainer
        if step is not None:
            owner = step.thread
        return owner is not None and owner != _thread()

    # Called in every step, and therefore without `with self.shield(...)`, and with as few functions as can be: each of
    # them has left the processor's cache since the last time, and coming back takes longer than what it does.

    def _before_forward(self, module: Any, args: Any, kwargs: Any) -> str:
        try:
            if self._foreign():
                return ""
            step = self._open
            if step is None or not step.explicit:
                if not module.training or not torch.is_grad_enabled() or _task() != -1:
                    self._passed_over = self._passed_over or torch.is_grad_enabled()
                    return ""
                if step is not None and not self._in_update and self._is_over(step):
                    self._finish(step)
                    step = None
            if step is None:
                return self._begin_by_itself(module, args, kwargs)
            if step.capture is not None and not step.capture.listener.listening:
                step.capture.listener.resume()
            step.forwards += 1
        except Exception as error:
            self.shield.failed("the beginning of a forward pass", error)
        return ""

    def _begin_by_itself(self, module: Any, args: Any, kwargs: Any) -> str:
        """A step begins with a forward pass, which has begun already."""
        self._endings.last = None
        step = Step(self, self._next, None, explicit=False)
        step.forwards = 1
        self._begin(step)
        if step.capture is not None:
            step.capture.heard.ignores_evaluation = True
            if self._in_update:  # an optimizer with a closure: its forward passes are inside its step
                step.capture.copy_all()
            if not hasattr(module, "_orig_mod"):  # the model inside of a compiled one is yet to be called
                step.capture.enter_model(module, args, kwargs)
                return KEEP_OUT
        return ""

    def _after_forward(self, module: Any, args: Any, kwargs: Any, out: Any) -> str:
        step = self._open
        if step is None or (step.capture is None and out is not None):
            return ""
        try:
            if self._foreign():
                return ""
            if out is None and sys.exc_info()[1] is not None:
                step.failed = True
            if step.capture is not None and step.capture.leave_model(module, out):
                return LET_IN
        except Exception as error:
            self.shield.failed("the end of a forward pass", error)
        return ""

    def _is_over(self, step: Step) -> bool:
        """A step without `optimizer.step()`: skipped by a gradient scaler, broken off, or no training at all."""
        if step.moved or step.failed:
            return True
        if step.capture is None:
            return False
        return step.capture.was_dropped(step.forwards, PASSES_WITHOUT_BACKWARD)

    def _before_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if (self._mover is None or self._mover() is not optimizer) and not self._moves(optimizer):
                return
            if self.closed or forks.count != self._born:
                return
            me, step = _thread(), self._open
            if self._trainer != me or (step is not None and step.thread != me):
                self._take_over(me)
                if self._foreign():
                    return
                step = self._open
            self._in_update = True
            if step is not None and step.capture is not None:
                if _task() == -1:
                    step.capture.listener.pause()
                if step.keep is not False:
                    started = time.perf_counter()
                    step.capture.before_update(optimizer)
                    step.capture.seconds += time.perf_counter() - started
        except Exception as error:
            self.shield.failed("the beginning of an update", error)

    def _after_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        try:
            if (self._mover is None or self._mover() is not optimizer) and not self._moves(optimizer):
                return
            if self._foreign():
                return
            self._in_update = False
            step = self._open
            if step is None:
                self._missed_step(optimizer)
                return
            self._passed_over = False
            if _task() != -1:  # one of many optimizers, each of which moves a parameter as its gradient arrives
                step.moved = True
            elif not step.explicit and self._endings.end_with(optimizer):
                self._finish(step)
            else:
                step.moved = True
                if step.capture is not None:
                    step.capture.listener.resume()
        except Exception as error:
            self.shield.failed("the end of a step", error)

    def _moves(self, optimizer: Any) -> bool:
        """Whether an optimizer trains any of the models; the last one that does is remembered."""
        found = any(watch.moved_by(optimizer) for watch in self._watches)
        if found:
            self._mover = weakref.ref(optimizer)
        return found

    def _take_over(self, me: int) -> None:
        """This thread trains. A step that another one began by calling the model is none."""
        step = self._open
        if step is not None and step.thread != me and not step.explicit:
            self._gap("", f"step {step.number} was left out: another thread called the model meanwhile")
            self._abandon(step)
        self._trainer = me

    def _abandon(self, step: Step) -> None:
        capture, step.capture, self._open = step.capture, None, None
        self._next = step.number
        self._schedule.abandon()
        if capture is not None:
            capture.heard.deaf = True
            capture.end()
            capture.let_go()

    def _missed_step(self, optimizer: Any) -> None:
        """An optimizer has moved a model while no step was open."""
        if self._endings.came_late(optimizer):
            self._gap("", "the update of another optimizer came when the step had ended; later steps wait for it")
        elif self._passed_over:  # last seen in evaluation mode: it is being trained that way
            self._passed_over = False
            self._gap("", IN_EVALUATION_MODE)
            self.shield.say("evaluation mode", f"Endoscope: {IN_EVALUATION_MODE}")

    # ---- failures --------------------------------------------------------------------------------

    def _gap(self, where: str, reason: str) -> None:
        number, now = self._open.number if self._open is not None else self._last, time.time()
        self._worker.put(lambda: self._writer.write_gap(number, now, GapRecord(where, "", reason)))

    def _writing_failed(self, where: str, error: BaseException) -> None:
        self.shield.say("writing", f"Endoscope: {where} to {self.path} failed: {error} Training goes on.")
        self._finisher.writing_failed(error)


def _close_quietly(reference: weakref.ref[Run]) -> None:
    run = reference()
    if run is not None:
        run.close()

"""`endoscope.Run`: records a training run.

    run.watch(model, optimizer)
    model(x), loss.backward(), optimizer.step() ─► hooks ─► steps.py ─► measured ─► writer thread

What the user says to a run stands here; what happens in a step is driven by `Steps`.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch

from endoscope.errors import BadArgument
from endoscope.markup.notebook import Shown, run_block
from endoscope.markup.tags import Markup
from endoscope.recording import forks, telling
from endoscope.recording.deciding.budget import CREDIT_SECONDS, Budget
from endoscope.recording.deciding.policies import When
from endoscope.recording.deciding.schedule import Schedule
from endoscope.recording.failures.shield import Shield
from endoscope.recording.log import flat, number
from endoscope.recording.modules import module_tree
from endoscope.recording.output.finishing import Finisher
from endoscope.recording.output.raw import Keep
from endoscope.recording.output.spectra import Spectra
from endoscope.recording.output.worker import Worker
from endoscope.recording.ranks.job import member_of
from endoscope.recording.ranks.meshes import Mesh
from endoscope.recording.ranks.relations import Relations
from endoscope.recording.silent import Silent
from endoscope.recording.status import Status
from endoscope.recording.steps.step import Step
from endoscope.recording.steps.steps import Steps
from endoscope.recording.steps.strangers import Strangers
from endoscope.recording.steps.watch import OptimizerLike, make_watch
from endoscope.recording.voice import make_voice
from endoscope.schema import plugins
from endoscope.schema.recording import GapRecord
from endoscope.store.resuming import bytes_in, iteration_before
from endoscope.store.vacancy import withdraw, withdraw_rank
from endoscope.store.writer import TrialWriter

#: What holds where `when` is not said: whoever says which steps to record may have all of them.
BUDGET = 0.05
MAX_BYTES = 64 * 2**20
_DEFAULT: Any = object()


class Run(Shown):
    """Records a training as one trial; see `docs/reference/recording.md`."""

    def __new__(cls, *_: Any, enabled: bool = True, **__: Any) -> Run:
        if not enabled and cls is Run:
            return super().__new__(SilentRun)
        return super().__new__(cls)

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        trial: str = "trial",
        when: When = None,
        budget: float | None = _DEFAULT,
        keep: int | dict[str, int] = 4,
        max_bytes: int | None = _DEFAULT,
        strict: bool = False,
        config: Mapping[str, Any] | None = None,
        resume: bool = False,
        enabled: bool = True,
        status: bool = False,
    ) -> None:
        self.strict = strict
        kept = Keep.of(keep)
        if budget is _DEFAULT:
            budget = BUDGET if when is None else None
        if max_bytes is _DEFAULT:
            max_bytes = MAX_BYTES if when is None else None
        self._budget = None if budget is None else Budget(budget)
        self._when_was_said = when is not None
        self._limits = {"budget_fraction": budget, "max_bytes": max_bytes}
        self._schedule = Schedule(when, self._budget)
        self.shield = Shield(strict, self._gap)
        about = {**dict(config or {}), "endoscope": self._limits}
        plugins.load()  # before the files get their columns
        member, problem = member_of(os.path.join(os.path.abspath(root), trial))
        self._writer = TrialWriter.create(root, trial, member=member, config=about, max_bytes=max_bytes, resume=resume)
        self._member = member
        self._worker = Worker(self._writing_failed, self._writer.commit, self._writer.name)
        self._finisher = Finisher(self._writer, self._worker, kept, self.shield)
        self._steps = Steps(self._schedule, self._budget, self._finisher, self._worker, self.shield, self._gap)
        if member is not None:
            self._steps.names.relations = Relations(member.rank, self._write_meshes)
        self._steps.next, self._steps.last = self._writer.next_step, self._writer.next_step - 1
        self._go_on_from(self._writer.next_step)
        self._strangers = Strangers(self._steps)
        self._strangers.begin()
        self._gaps = self._logged = 0
        self._was_watched = self._has_failed = False
        self._born = forks.count
        self.closed = False
        self._at_exit = functools.partial(_close_quietly, weakref.ref(self))
        atexit.register(self._at_exit)
        if problem:
            self.shield.say("job", f"Endoscope: {problem}")
            self._gap("", problem)
        self._voice = make_voice(is_heard=member is None or member.rank == 0)
        self._voice.begin(telling.beginning(self.path, trial, resume and self._writer.next_step > 0))
        self._status = Status(self.path, self._voice.status, self._so_far) if status else None

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
        optimizer: OptimizerLike | Sequence[OptimizerLike] | None = None,
        what: str | Iterable[str] | None = None,
        *,
        name: str | None = None,
        batch_dim: int | None = 0,
        spectra: When = None,
    ) -> torch.nn.Module:
        """Record `model` from now on: a step begins with its forward pass and ends with `optimizer.step()`.

        `spectra` is a policy that chooses recorded steps in which singular values are computed, too.
        """
        self._require_open()
        steps = self._steps
        if any(watch.outer is model for watch in steps.watches):
            raise BadArgument("This model is being watched already; one call of run.watch(model) is enough.")
        watch = make_watch(model, optimizer, what, name, batch_dim, [w.name for w in steps.watches])
        if spectra is not None:
            steps.spectra = Spectra(spectra)
        steps.watch(watch)
        tree = module_tree(steps.watches)
        self._worker.put(lambda: self._writer.write_modules(tree))
        self._was_watched = True
        self._strangers.look(watch)
        return model

    def step(self, n: int | None = None, type: str | None = None) -> Step:
        """`with run.step() as step:` around one training step, for types, tags, losses and late decisions."""
        number = self._steps.next if n is None else int(n)
        if number < self._first:  # resumed from a checkpoint: what is there of later steps is superseded
            self._worker.put(lambda: self._writer.supersede(number))
            self._go_on_from(number)
        return Step(self._steps, number, type, explicit=True)

    def _go_on_from(self, number: int) -> None:
        """Steps before this one are those of earlier sessions."""
        self._first = number
        if number:
            place = self._writer.place
            before = max(place.attempt - 1, 0)
            self._steps.optimizers.iteration = iteration_before(place.trial, place.rank, number, before)

    def _write_meshes(self, meshes: Sequence[Mesh]) -> None:
        found = [mesh.to_dict() for mesh in meshes]
        self._worker.put(lambda: self._writer.write_meshes(found))

    @property
    def current_step(self) -> Step:
        """The step that runs, for callbacks and the `forward` of a model. Between steps, metrics go to the last one."""
        return self._steps.current

    def pause(self) -> None:
        """Record nothing until `resume`; steps are counted all the same."""
        self._steps.paused = True

    def resume(self) -> None:
        self._steps.paused = False

    def metric(self, name: str, value: Any) -> None:
        """A number of the current step, or of the step that ended last."""
        with self.shield(f"metric {name!r}"):
            self._require_open()
            self._steps.report(str(name), value)

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Report several metrics of the current step, or of step number `step`; nested ones get names such as `a/b`.

        If no model is watched and no `step` is given, each call begins a new step.
        """
        with self.shield("run.log"):
            self._require_open()
            found = flat(values)
            if step is None and not self._was_watched and self._steps.open is None:
                step, self._logged = self._logged, self._logged + 1
            for name, value in found.items():
                with self.shield(f"metric {name!r}"):
                    if step is None:
                        self._steps.report(name, number(name, value))
                    else:
                        self._finisher.metrics(int(step), "", {name: number(name, value)})

    def note(self, text: str) -> None:
        """A line of text at the current step."""
        with self.shield("note"):
            self._require_open()
            self._finisher.note(self._number(), str(text))

    def config(self, **settings: Any) -> None:
        """Add to the configuration of the trial."""
        with self.shield("config"):
            self._require_open()
            self._worker.put(lambda: self._writer.update_config(settings))

    def _number(self) -> int:
        """Of the step that is open, or of the last one."""
        return self._steps.last if self._steps.open is None else self._steps.open.number

    def _require_open(self) -> None:
        if self.closed:
            raise BadArgument("This run is closed, so nothing is recorded any more. Make a new endoscope.Run.")

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything recorded so far is written."""
        self._finisher.flush_metrics()
        self._worker.drain(timeout)

    def close(self) -> None:
        """End the trial. What was recorded is complete without it."""
        if self.closed or forks.count != self._born:
            return
        self._strangers.end()
        self._steps.close()
        self.closed = True
        report = self._limits | self._finisher.report(self._schedule.counts(), self._budget, self._worker.seconds)
        report["passes"] = self._steps.forwards.outside_of_steps
        if self._steps.ends_nonfinite:
            report["nonfinite_parameters"] = self._steps.ends_nonfinite
        self._finisher.flush_metrics()
        self._worker.put(lambda: self._writer.update_config({"endoscope": report}))
        self._worker.put(self._writer.close)
        self._worker.stop()
        atexit.unregister(self._at_exit)
        if self._status is not None:
            self._status.stop()
        is_withdrawn = self._has_failed and self._withdraw()
        if self._voice.is_heard:
            self._voice.end([telling.WITHDRAWN] if is_withdrawn else self._last_words())

    def _withdraw(self) -> bool:
        """Take an empty trial away, or what is of this process in it."""
        place = self._writer.place
        return withdraw(place.trial) if self._member is None else withdraw_rank(place.trial, place.folder)

    def _last_words(self) -> list[str]:
        """How much there is, what went wrong, what looks wrong, and how to go on."""
        seen, recorded = telling.counts(self._schedule)
        size = bytes_in(self._writer.path)
        gaps = self._gaps + self._finisher.gaps
        missing = f"{gaps} gap{'s' * (gaps != 1)}" if gaps else "no gaps"
        cost = self._cost() + telling.allowed(self._budget, CREDIT_SECONDS)
        summary = f"{seen} steps, {recorded} recorded, {cost}, {telling.human_bytes(size)}, {missing}: {self.path}"
        concerns = [*self._strangers.said]
        if not self._was_watched and not self._writer.tensors:
            concerns.append(telling.NO_MODEL)
        else:
            concerns.append(telling.left_out(seen, recorded, self._budget, was_chosen=self._when_was_said))
        try:
            found = telling.findings(self.path, size)
        except Exception as error:  # a program that ends must not end with our error
            found = [f"the recording could not be checked: {type(error).__name__}: {error}"]
        return [summary, *filter(None, concerns), *found, telling.commands(self.path)]

    def _cost(self) -> str:
        return telling.cost(self._budget, self._finisher.seconds + self._worker.seconds)

    def _so_far(self, found: str) -> str:
        """For the status line."""
        return telling.status(telling.counts(self._schedule), self._cost(), bytes_in(self._writer.path), found)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        self._has_failed = error is not None
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.trial!r}: step {self._steps.last}{', closed' if self.closed else ''}>"

    def _block(self) -> Markup:
        seen, recorded = telling.counts(self._schedule)
        state = "closed" if self.closed else "running"
        facts = f"{state}, {seen} steps, {recorded} recorded, {telling.human_bytes(bytes_in(self._writer.path))}"
        return run_block(str(self.trial), facts, str(self.path))

    # ---- failures --------------------------------------------------------------------------------

    def _gap(self, where: str, reason: str) -> None:
        number, now = self._number(), time.time()
        self._gaps += 1
        self._worker.put(lambda: self._writer.write_gap(number, now, GapRecord(where, "", reason)))

    def _writing_failed(self, where: str, error: BaseException) -> None:
        self.shield.say("writing", f"Endoscope: {where} to {self.path} failed: {error} Training goes on.")
        self._finisher.writing_failed(error)


def _close_quietly(reference: weakref.ref[Run]) -> None:
    run = reference()
    if run is not None:
        run._has_failed = getattr(sys, "last_value", None) is not None  # an exception has ended the script
        run.close()


class SilentRun(Silent, Run):
    """What `Run(enabled=False)` is."""

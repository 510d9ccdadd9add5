"""The end of a step: choose samples, measure, describe, hand over to the writer thread."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from endoscope.errors import BadArgument
from endoscope.recording.deciding.verdicts import Decision
from endoscope.recording.failures.incidents import Incidents
from endoscope.recording.failures.shield import Shield
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.output.measuring import Package, batch_size, measure_step
from endoscope.recording.output.meter import Meter
from endoscope.recording.output.metrics import means
from endoscope.recording.output.raw import Keep, RawCollector, choose
from endoscope.recording.output.worker import Worker
from endoscope.recording.steps.step import Step
from endoscope.recording.structure.learned import Structure
from endoscope.recording.structure.selection import Selection
from endoscope.recording.structure.structures import structure_of
from endoscope.schema.recording import GapRecord, Key, RawValues, StepRecord, TimesRecord
from endoscope.store.writer import TrialWriter

if TYPE_CHECKING:
    from endoscope.analysis.user_rules.anomalies import Look
    from endoscope.analysis.user_rules.rules import Where


FUSED = "scaled_dot_product_attention"
FUSED_ATTENTION = (
    "this model computes attention in a fused kernel, which has no attention weights, so none are recorded; to "
    "record them, use attn_implementation='eager' (Hugging Face) or a softmax of your own"
)
NO_GRAPH = (
    "the graph is not known: this step called other modules, or computed more or less, than the steps that were "
    "traced; the next one is traced"
)


class Finisher:
    """Knows what earlier steps left behind: graphs that are written, raw bytes that are used up."""

    def __init__(self, writer: TrialWriter, worker: Worker, keep: Keep, shield: Shield) -> None:
        self._writer = writer
        self._worker = worker
        worker.regularly = self.write_metrics
        self._keep = keep
        self._shield = shield
        self._raw_bytes = 0
        self._said: set[GapRecord] = set()
        self._categories: Counter[str] = Counter()  # how often samples of each were kept raw
        self._incidents = Incidents()
        self._last_keys: list[Key] = []
        self._last_numbers: list[int] = []
        self._last_array = np.array([], np.int32)  # the same
        self._listed: set[str] = set()  # graphs whose tensors have their numbers
        self._lost: list[str] = []
        self._metrics: deque[tuple[int, str, float, Mapping[str, Any]]] = deque()  # of steps that are not recorded
        self._times: deque[TimesRecord] = deque()
        self._ready: tuple[Callable[[], None], int] | None = None  # what the writer is to do, and how many bytes it is
        self.seconds = 0.0
        self.gaps = 0  # of recorded steps
        self._said_fused = False

    def look(self, step: Step, captured: Captured, selection: Selection, where: Where, samples: bool) -> list[Look]:
        """Statistics of what is held, for triggers; before it is decided whether the step is recorded."""
        from endoscope.recording.deciding.looking import look_at  # here: most runs have no anomalies of their own

        structure = self.structure(step, captured, selection)
        return look_at(captured, structure, (step.number, step.type or ""), where, samples)

    def record(
        self, step: Step, captured: Captured, selection: Selection, decision: Decision, started: float, detail: int = 0
    ) -> None:
        """Measure everything, or less where the budget asks for that; `hand_over` then gives it to the writer."""
        samples = [] if detail else self._samples(step, captured, decision)
        structure = self.structure(step, captured, selection)
        raw = self.raw_collector(samples, detail)
        meter = Meter(raw, with_parts=detail < 2) if captured.stream is None else captured.stream.meter
        meter.raw = raw
        package = measure_step(captured, structure, meter, step.skipped)
        if structure.graph is None:
            package.gaps.append(GapRecord("", "", NO_GRAPH))
        with self._shield("the search for what made NaN or infinity"):
            package.extra |= self._incidents.look(captured, structure, package, step.number)
        package.extra |= {"optimizers": step.settings_of} if step.settings_of else {}
        self._raw_bytes += package.raw_bytes
        gaps = [*package.gaps, *self._new(package.left_out)]
        self.gaps += len(gaps)
        gaps += self._new(package.too_large)
        seconds = time.perf_counter() - started
        self.seconds += seconds
        record = StepRecord(
            number=step.number, type=decision.type, time=time.time(), why=decision.why, recording_seconds=seconds,
            graph_hash="" if structure.graph is None else structure.graph["hash"], graph=structure.graph,
            raw_samples=samples,
            categories=step.categories or [], passes=max(step.forwards, 1), iteration=step.iteration,
            skipped=step.skipped, metrics=means(step.metrics), config=step.settings,
            gaps=gaps, extra=package.extra, measured=package.measured,
        )  # fmt: skip
        self._ready = (lambda: self._write(record, package)), package.bytes

    def note(self, number: int, text: str) -> None:
        now = time.time()
        self._worker.put(lambda: self._writer.write_note(number, now, text), len(text))

    def hand_over(self) -> None:
        """Wake the writer for a step that was recorded, if one was.

        Only when its tensors are gone: torch gives the interpreter away whenever it frees one, and the training thread
        would get it back from a writer that has just begun.
        """
        ready, self._ready = self._ready, None
        if ready is not None:
            self._worker.put(*ready)
            self._worker.let_catch_up()

    def structure(self, step: Step, captured: Captured, selection: Selection) -> Structure:
        """Items and graph of a step; says which patterns mean nothing in it."""
        if captured.structure is None:
            structure = captured.structure = structure_of(captured, selection)
            for text in captured.unmatched:
                error = BadArgument(f"the pattern {text!r} selects nothing that was computed in step {step.number}.")
                self._shield.report(f"what={text!r}", error)
            captured.unmatched = []
            if captured.tracer is not None and not self._said_fused and captured.tracer.has_called(FUSED):
                self._said_fused = True
                self.note(step.number, FUSED_ATTENTION)
            if captured.tracer is None:
                said = captured.learned.count(step.type or "", structure.graph is not None)
                if said:
                    self._shield.note(said)
        return captured.structure

    def raw_collector(self, samples: Sequence[int], detail: int) -> RawCollector:
        keep = Keep.of(0) if detail else self._keep
        return RawCollector(keep, self._raw_bytes, samples)

    def _samples(self, step: Step, captured: Captured, decision: Decision) -> list[int]:
        count, size = self._keep.samples, batch_size(captured)
        if step.samples is not None:
            return [s for s in step.samples if 0 <= s < size] if size else step.samples
        categories = step.categories
        if categories is not None and size and len(categories) != size:
            error = BadArgument(
                f"{len(categories)} categories were given for a batch of {size} samples. Give one category for "
                "each sample."
            )
            self._shield.report("categories", error)
            step.categories = categories = None
        chosen = choose(
            size, count, categories=categories, worst=decision.samples, so_far=self._categories, seed=step.number
        )
        if categories is not None:
            self._categories.update(categories[sample] for sample in chosen)
        return list(chosen)

    def _new(self, gaps: list[GapRecord]) -> list[GapRecord]:
        """What a limit leaves out at every step is said once."""
        new = [gap for gap in gaps if gap not in self._said]
        self._said.update(new)
        return new

    def _write(self, record: StepRecord, package: Package) -> None:
        writer = self._writer
        if record.graph_hash not in self._listed:  # nodes are listed in the order of the graph, not of measuring
            self._listed.add(record.graph_hash)
            places = {(n["node"], n["role"], n["pass"]): i for i, n in enumerate((record.graph or {}).get("nodes", ()))}
            for key in sorted(package.keys, key=lambda key: places.get((key.node, key.role, key.pass_), 0)):
                writer.key_id(key)
        if package.keys != self._last_keys:  # most are the very same objects as in the step before
            self._last_keys = package.keys
            self._last_numbers = [writer.key_id(key) for key in package.keys]
            self._last_array = np.array(self._last_numbers, np.int32)
        record.keys, numbers = self._last_array, self._last_numbers
        record.raw = [RawValues(numbers[row], array, samples) for row, array, samples in package.raw]
        try:
            writer.write_step(record)
        except Exception as error:  # what is small is kept until there is room again
            writer.write_metrics(record.number, record.type, record.time, record.metrics)
            writer.write_gap(record.number, record.time, GapRecord("", "", f"the step was not written: {error}"))
            raise

    def metrics(self, number: int, type_: str, metrics: Mapping[str, Any]) -> None:
        """Of a step that is not recorded; written together with those of other steps."""
        self._metrics.append((number, type_, time.time(), metrics))

    def times(self, record: TimesRecord) -> None:
        """Written together with metrics."""
        self._times.append(record)

    def flush_metrics(self) -> None:
        if self._metrics or self._times:
            self._worker.put(self.write_metrics)

    def write_metrics(self) -> bool:
        """In the writer thread; whether there was anything to write."""
        found = bool(self._metrics or self._times)
        while self._times:
            self._writer.write_times(self._times.popleft())
        while self._metrics:
            number, type_, now, metrics = self._metrics.popleft()
            try:
                self._writer.write_metrics(number, type_, now, means(metrics))
            except (TypeError, ValueError, RuntimeError) as error:
                self._writer.write_gap(number, now, GapRecord("", "", f"metrics {sorted(metrics)}: {error}"))
        return found

    def writing_failed(self, error: BaseException) -> None:
        self._lost.append(f"{type(error).__name__}: {error}")

    def report(self, counts: Any, budget: Any, writer_seconds: float) -> dict[str, Any]:
        """What recording did and cost, for whoever reads the trial."""
        report: dict[str, Any] = {
            "steps": {type_: {"seen": seen, "recorded": recorded} for type_, (seen, recorded) in counts.items()},
            "recording_seconds": self.seconds,
            "writer_seconds": writer_seconds,
            "raw_bytes": self._raw_bytes,
        }
        if budget is not None:
            report["budget"] = budget.report()
        if self._lost:
            report["failed_writes"] = len(self._lost)
            report["failed_writes_last"] = self._lost[-1]
        return report

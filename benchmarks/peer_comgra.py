"""Measures Comgra; runs in the peer's own environment. Started by ``peer.py``, result written as JSON.

python peer_comgra.py RESULT [--models NAMES] [--quick]

Comgra records what it is told, tensor by tensor, so hooks tell it the output of every module, as a user would in each
`forward`. Its singular values are switched off, because no other side computes any; with them, its default, it is
several times slower. Tensors of whole numbers (tokens, class labels) are left out: they end the training.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import measure

measure.one_thread()

import step_clock  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
import torch  # noqa: E402
from comgra.objects import (  # noqa: E402
    DecisionMakerForRecordings,
    DecisionMakerForRecordingsFrequencyPerType,
    DecisionMakerForRecordingsHardcoded,
)
from comgra.recorder import ComgraRecorder  # noqa: E402
from disk import folder_bytes  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from training import TrainingCase, select  # noqa: E402

# Where a ratio is in the hundreds a few percent of noise do not matter.
EFFORT = measure.Effort(budget_secs=40.0, min_rounds=1, max_rounds=15)
QUICK = measure.Effort(budget_secs=4.0, min_rounds=1, max_rounds=5)
LONG_SECS = 10.0
SAMPLES = 5
RAW = "+ raw values of 5 samples"
MINUTES = ("transformer",)  # a step with raw values takes minutes: not in a quick run
MEMORY_BYTES = 20e9  # and 17.5 GB were seen


class Recorded:
    """A training that Comgra records: the calls of its documentation, in their order."""

    def __init__(self, case: TrainingCase, folder: Path, trial: str, raw: bool = False, late: bool = False) -> None:
        self.training = case.make()
        self.batch = case.batch
        self.raw = raw
        self.late = late  # whether a step is recorded is decided at its end, and decided against
        self.steps = 0
        self.folder = folder / "group" / "trials" / trial
        self.recorder = ComgraRecorder(
            comgra_root_path=folder,
            group="group",
            trial_id=trial,
            decision_maker_for_recordings=self._when(trial),
            max_num_batch_size_to_record=SAMPLES if raw else None,
            calculate_svd_and_other_expensive_operations_of_parameters=False,
        )
        self.recorder.track_module("model", self.training.model)
        self.seen: set[int] = set()
        for name, module in self.training.model.named_modules():
            if name:
                module.register_forward_hook(self._hook(name))

    def _when(self, trial: str) -> DecisionMakerForRecordings:
        if trial == "not" or self.late:
            return DecisionMakerForRecordingsHardcoded(fixed_training_steps=set())
        return DecisionMakerForRecordingsFrequencyPerType(min_training_steps_difference=1)

    def _hook(self, name: str) -> Any:
        def register(module: nn.Module, args: Any, out: Tensor) -> None:
            if id(out) not in self.seen:  # a container hands on what its last module gave
                self.seen.add(id(out))
                self._register(name, out)

        return register

    def _register(self, name: str, tensor: Tensor, **kind: bool) -> None:
        how = "neuron" if self.raw else "kpis"
        self.recorder.register_tensor(name, tensor, recording_type=how, record_per_batch_index=self.raw, **kind)

    def step(self) -> None:
        recorder, training = self.recorder, self.training
        self.seen.clear()
        recorder.start_batch(self.steps, self.batch, type_of_execution=None if self.late else "step")
        recorder.start_iteration()
        if training.inputs.is_floating_point():
            self._register("inputs", training.inputs, is_input=True)
        loss = training.loss()
        recorder.register_tensor("loss", loss, is_loss=True)
        loss.backward()
        training.optimizer.step()
        if self.late:
            recorder.decide_recording_of_batch("step", [""] * self.batch)
        recorder.record_current_gradients("gradients")
        recorder.finish_iteration()
        recorder.finish_batch()
        training.optimizer.zero_grad()
        self.steps += 1

    def bytes_per_step(self) -> float:
        return folder_bytes(self.folder) / self.steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--models")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    cases = {}
    for case in select(options.models):
        print(f"Comgra: {case.name} ...", file=sys.stderr, flush=True)
        cases[case.name] = measured(case, options.quick)
    answer = {"comgra": version("comgra"), "torch": torch.__version__, "cases": cases}
    options.result.write_text(json.dumps(answer))


def measured(case: TrainingCase, quick: bool) -> dict[str, Any]:
    """Ratios by both clocks of every way of recording, what it wrote, and what did not run."""
    plain = step_clock.Trained(case.make().step)
    with tempfile.TemporaryDirectory(prefix="comgra-") as folder:
        ways = {
            "not recorded": Recorded(case, Path(folder), "not"),
            "decided against": Recorded(case, Path(folder), "against", late=True),
            "all statistics": Recorded(case, Path(folder), "statistics"),
        }
        working, failures = measure.runnable({name: way.step for name, way in ways.items()})
        sides = {name: step_clock.Trained(step) for name, step in working.items()}
        timing = step_clock.compare({"plain": plain, **sides}, case.steps, QUICK if quick else EFFORT)
        clocks = {"cpu": timing.cpu, "wall": timing.wall}
        answer = {
            clock: {side: comparison.ratio(side, "plain") for side in sides} for clock, comparison in clocks.items()
        }
        if case.name in MINUTES and _memory_bytes() < MEMORY_BYTES:
            failures[RAW] = f"needs {MEMORY_BYTES / 1e9:.0f} GB of memory"
        elif not (quick and case.name in MINUTES):
            print(f"Comgra: {case.name}, raw values ...", file=sys.stderr, flush=True)
            ways[RAW] = Recorded(case, Path(folder), "raw", raw=True)
            secs, reason = _slow(ways[RAW].step)
            failures.update({RAW: reason} if reason else {})
            if not reason:
                for (clock, comparison), own in zip(clocks.items(), secs, strict=True):
                    answer[clock][RAW] = own / comparison.median_secs("plain")
        sizes = {name: way.bytes_per_step() for name, way in ways.items() if name not in failures}
    return {**answer, "bytes": sizes, "failures": failures}


def _memory_bytes() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _slow(step: Callable[[], object]) -> tuple[tuple[float, float], str]:
    """CPU and wall seconds of a step: of a second one, unless the first took so long that it needed no warming up."""
    side = step_clock.Trained(step)
    try:
        secs = step_clock.sample(side, 1)
        return (secs if secs[0] > LONG_SECS else step_clock.sample(side, 1)), ""
    except Exception as error:
        return (0.0, 0.0), f"{type(error).__name__}: {error}".splitlines()[0]


if __name__ == "__main__":
    main()

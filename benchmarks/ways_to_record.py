"""The ways of recording that are timed, each on a training of its own, with a check that it did what it says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from disk import folder_bytes, raw_numbers
from step_clock import Trained
from training import TrainingCase

import endoscope

SAMPLES = 5


class Recorded:
    """A training with everything watched; counts its steps and how many of them should be found on disk."""

    def __init__(self, case: TrainingCase, folder: Path, trial: str, **settings: Any) -> None:
        self.training = case.make()
        self.steps = 0
        self.run = endoscope.Run(folder, trial=trial, **settings)
        self.run.watch(self.training.model, self.training.optimizer)

    def step(self) -> None:
        self.training.step()
        self.steps += 1

    def expected(self) -> int | None:
        """Steps that the recording must hold; None where that is left to the budget."""
        return self.steps

    def side(self) -> Trained:
        return Trained(self.step, self.run.flush)

    def found(self) -> int:
        """Close the run and count what a reader finds."""
        self.run.close()
        return len(endoscope.open(self.run.path).steps)

    def complaint(self) -> str:
        """What is wrong with the recording, or nothing: a step that was left out would make the row too cheap."""
        found, expected = self.found(), self.expected()
        return "" if expected in (None, found) else f"{found} of {expected} steps were recorded"

    def bytes_per_step(self) -> float:
        return folder_bytes(Path(self.run.path)) / self.steps

    def raw_numbers_per_step(self) -> float:
        return raw_numbers(Path(self.run.path)) / self.steps


class NotRecorded(Recorded):
    """Watched, and only the first step recorded."""

    def __init__(self, case: TrainingCase, folder: Path, trial: str) -> None:
        super().__init__(case, folder, trial, when=lambda info: info.number == 0)

    def expected(self) -> int:
        return 1


class Budgeted(Recorded):
    """Every step is wished for, and the budget says how many there are."""

    def expected(self) -> None:
        return None

    def steps_and_close(self, steps: int) -> Callable[[], None]:
        """The whole run, to be timed."""

        def whole() -> None:
            for _ in range(steps):
                self.step()
            self.run.close()

        return whole


class DecidedAgainst(Recorded):
    """Held until the end of the step and then thrown away; ``early`` says so as soon as the loss is known."""

    def __init__(self, case: TrainingCase, folder: Path, trial: str, early: bool = False) -> None:
        super().__init__(case, folder, trial, when=lambda info: True)
        self.early = early
        self.held = 0

    def step(self) -> None:
        with self.run.step() as step:
            self.held += step.recording
            loss = self.training.loss()
            if self.early:
                step.decide(keep=False)
            loss.backward()
            self.training.update()
            if not self.early:
                step.decide(keep=False)
        self.steps += 1

    def expected(self) -> int:
        return 0

    def complaint(self) -> str:
        held = "" if self.held == self.steps else f"values were held in {self.held} of {self.steps} steps"
        return super().complaint() or held


Way = Callable[[TrainingCase, Path], Recorded]

RECORDED: dict[str, Way] = {
    "all statistics": lambda case, folder: Recorded(case, folder, "statistics", when=lambda info: True, keep=0),
    "+ raw values of 5 samples": lambda case, folder: Recorded(
        case, folder, "raw", when=lambda info: True, keep=SAMPLES
    ),
}
NOT_RECORDED: dict[str, Way] = {
    "not recorded": lambda case, folder: NotRecorded(case, folder, "not"),
    "decided against": lambda case, folder: DecidedAgainst(case, folder, "against"),
    "decided against early": lambda case, folder: DecidedAgainst(case, folder, "early", early=True),
}


@contextlib.contextmanager
def opened(ways: dict[str, Way], case: TrainingCase, folder: Path) -> Iterator[dict[str, Recorded]]:
    """Every way with its run open; closed at the end, so that none writes while another is timed."""
    with contextlib.ExitStack() as stack:
        recorded = {}
        for name, way in ways.items():
            recorded[name] = way(case, folder)
            stack.callback(recorded[name].run.close)
        yield recorded

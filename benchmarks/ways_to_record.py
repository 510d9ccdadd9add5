"""The ways of recording that are timed, each on a training of its own, with a check that it did what it says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from disk import folder_bytes
from plain_hooks import PlainRecorder
from step_clock import Trained
from zoo import Net

import endoscope

SAMPLES = 5  # that are kept raw, in the line with raw values
NO_LIMITS = {"budget": None, "max_bytes": None}


def open_run(folder: Path | str, trial: str, **settings: Any) -> endoscope.Run:
    """A run without budget and limit, unless the settings have one."""
    return endoscope.Run(folder, trial=trial, **{**NO_LIMITS, **settings})


def watch(run: endoscope.Run, training: Any) -> None:
    """Tell a run about all models of a training."""
    for model, optimizer, name in training.watched():
        run.watch(model, optimizer, name=name)


class Way(Protocol):
    """One way to record a training."""

    def side(self) -> Trained: ...

    def close(self) -> None: ...

    def complaint(self) -> str:
        """What is wrong with the recording, or nothing: a step that was left out would make the side too cheap."""
        ...

    def bytes_per_step(self) -> float: ...


class Recorded:
    """Every step is recorded."""

    def __init__(self, net: Net, folder: Path, trial: str, **settings: Any) -> None:
        self.training = net.make()
        self.steps = 0
        self.run = open_run(folder, trial, **settings)
        watch(self.run, self.training)

    def step(self) -> None:
        self.training.step()
        self.steps += 1

    def side(self) -> Trained:
        return Trained(self.step, self.run.flush)

    def close(self) -> None:
        self.run.close()

    def expected(self) -> int:
        """Steps that the recording must hold."""
        return self.steps * self.training.updates

    def complaint(self) -> str:
        recording, expected = endoscope.open(self.run.path), self.expected()
        found = len(recording.steps)
        said = [f"{found} of {expected} steps were recorded"] * (found != expected)
        blind = sum(not step.graph for step in recording.steps)
        said += [f"{blind} of {found} without a graph"] * bool(blind)
        # A tensor whose raw values are too large is left out by design.
        reasons = {gap.reason for gap in recording.gaps if not gap.reason.startswith("raw values:")}
        return "; ".join([*said, *(f"gap: {reason}" for reason in sorted(reasons))])

    def bytes_per_step(self) -> float:
        return folder_bytes(Path(self.run.path)) / max(self.expected(), 1) if self.expected() > 1 else 0.0


class NotRecorded(Recorded):
    """Watched, and only the first step recorded."""

    def __init__(self, net: Net, folder: Path, trial: str) -> None:
        super().__init__(net, folder, trial, when=lambda info: info.number == 0, keep=0)

    def expected(self) -> int:
        return 1


class DecidedAgainst(Recorded):
    """Held until the very end of the step and then thrown away."""

    def __init__(self, net: Net, folder: Path, trial: str) -> None:
        super().__init__(net, folder, trial, when=1)
        self.held = 0

    def step(self) -> None:
        with self.run.step() as step:
            self.held += step.recording
            self.training.step()
            step.decide(keep=False)
        self.steps += 1

    def expected(self) -> int:
        return 0

    def complaint(self) -> str:
        held = "" if self.held == self.steps else f"values were held in {self.held} of {self.steps} steps"
        return "; ".join(filter(None, [held, super().complaint()]))


class PlainHooks:
    """The sketch in `plain_hooks.py`."""

    def __init__(self, net: Net, folder: Path, trial: str, keep: bool) -> None:
        self.training = net.make()
        models, optimizers, _ = zip(*self.training.watched(), strict=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.recorder = PlainRecorder(models, optimizers, folder / trial, keep)

    def side(self) -> Trained:
        return Trained(self.training.step, self.recorder.flush)

    def close(self) -> None:
        self.recorder.close()

    def complaint(self) -> str:
        return ""

    def bytes_per_step(self) -> float:
        return 0.0


RAW = f"+ raw values of {SAMPLES} samples"
WAYS: dict[str, Callable[[Net, Path], Way]] = {
    "not recorded": lambda net, folder: NotRecorded(net, folder, "not"),
    "decided against": lambda net, folder: DecidedAgainst(net, folder, "against"),
    "all statistics": lambda net, folder: Recorded(net, folder, "statistics", when=1, keep=0),
    RAW: lambda net, folder: Recorded(net, folder, "raw", when=1, keep=SAMPLES),
    "sketch, against": lambda net, folder: PlainHooks(net, folder, "sketch-against", keep=False),
    "sketch, statistics": lambda net, folder: PlainHooks(net, folder, "sketch", keep=True),
}


@contextlib.contextmanager
def opened(names: list[str], net: Net, folder: Path) -> Iterator[Mapping[str, Way]]:
    """Some ways with their runs open; closed at the end, so that none writes while another is timed."""
    with contextlib.ExitStack() as stack:
        ways = {}
        for name in names:
            ways[name] = WAYS[name](net, folder)
            stack.callback(ways[name].close)
        yield ways

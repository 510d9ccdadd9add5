"""What a run of the suite is: a training, what is wrong with it, and the recorded number that shows it.

case("dying_relu_mlp", "mlp", Fault(…))(body) ─► CASES ─► Case.record(folder, seed) ─► path of a recording
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import endoscope

STEPS = 40  # of every run, unless it says otherwise
Body = Callable[[endoscope.Run], Any]


@dataclass(frozen=True)
class Shown:
    """The number in the recording that shows the fault, and the limit it is beyond."""

    what: str
    figure: Callable[[Any], float]
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below

    def limit(self) -> str:
        return f"> {self.above:g}" if self.above is not None else f"< {self.below:g}"


@dataclass(frozen=True)
class Fault:
    """What was planted: the check that is to find it, and the nodes that may rightly be named for it."""

    check: str
    shown: Shown
    nodes: tuple[str, ...] = ()  # empty: the fault is in no particular place, such as a loss that stands still
    also: tuple[str, ...] = ()  # checks that name the same cause by another right word

    def is_named_by(self, finding: Any) -> bool:
        """Whether a finding is about this fault: the right check at the right place."""
        if finding.check not in {self.check, *self.also}:
            return False
        named = (finding.node, *finding.also)  # one entry stands for all nodes with the same symptom
        return not self.nodes or not finding.node or any(_same_place(a, b) for a in named for b in self.nodes)


@dataclass(frozen=True)
class Case:
    """One run of the suite; healthy if it has no fault."""

    name: str
    architecture: str
    body: Body
    fault: Fault | None = None
    description: str = ""

    @property
    def kind(self) -> str:
        return self.fault.check if self.fault else "healthy"

    def record(self, folder: Path, seed: int = 0) -> Path:
        """Train, and return the recording."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            with endoscope.Run(folder, trial=self.name, when=1, strict=True) as run:
                self.body(run)
        return Path(run.path)


CASES: dict[str, Case] = {}


def case(architecture: str, fault: Fault | None = None) -> Callable[[Body], Body]:
    """Make the function below a run of the suite; its docstring says what is wrong in it."""

    def register(body: Body) -> Body:
        name = body.__name__
        assert name not in CASES, f"two runs are called {name}"
        CASES[name] = Case(name, architecture, body, fault, (body.__doc__ or "").strip())
        return body

    return register


def kinds() -> dict[str, list[Case]]:
    """Class of fault, or `healthy` -> its runs, in an order that nobody chose: by the hash of the name."""
    found: dict[str, list[Case]] = {}
    for one in sorted(CASES.values(), key=lambda one: hashlib.sha256(one.name.encode()).hexdigest()):
        found.setdefault(one.kind, []).append(one)
    return found


def half(which: str) -> list[Case]:
    """Runs on which thresholds are chosen ("tune"), or those that are only reported ("report").

    Of every class the runs take turns, so that both halves hold every class.
    """
    first = {"tune": 0, "report": 1}[which]
    return [one for runs in kinds().values() for one in _every_other(runs, first)]


def _every_other(runs: list[Case], first: int) -> Iterable[Case]:
    return runs[first::2]


def _same_place(found: str, planted: str) -> bool:
    """A module and its own parameters are one place."""
    return found == planted or found.startswith(planted + ".") or planted.startswith(found + ".weight")

"""Something that happens at some steps, or to some samples; and many of them, ready to be counted together.

Steps stand in the order of their numbers. A sample is a place in the batch of one step: a cell. Cells are numbered step
by step, `step · width + sample`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from endoscope.findings.structure import Place

LOSS, CHECK, ANOMALY, OUTLIER, TYPE, CATEGORY = "loss", "check", "anomaly", "outlier", "type", "category"
LABELS = (TYPE, CATEGORY)  # what the user said about data
#: What is explained comes first, what explains it last: "high loss: 87 % of its samples are of category '3'".
ORDER = (LOSS, CHECK, ANOMALY, OUTLIER, TYPE, CATEGORY)

VALUE, GRADIENT, UPDATE = range(3)  # forward, backward, optimizer


def stage_of(of: str) -> int:
    """When in a step a tensor is computed."""
    return GRADIENT if of.startswith("gradient") else UPDATE if of == "update" else VALUE


@dataclass(frozen=True, slots=True)
class Event:
    """What happens."""

    name: str
    kind: str
    node: str = ""  # empty if it belongs to no node
    place: Place | None = None  # of the tensor in the graph
    stage: int = VALUE  # of a step, in which it is computed
    also: tuple[str, ...] = ()  # nodes at which the same happens at the same time
    subject: str = ""  # what it is about: events of one subject say nothing new about each other


@dataclass(slots=True)
class OverSamples:
    """Events that are known for every sample."""

    steps: int
    width: int  # places in the largest batch
    there: np.ndarray  # bool[steps, width]: which cells there are
    events: list[Event] = field(default_factory=list)
    cells: list[np.ndarray] = field(default_factory=list)  # of each event, ascending
    present: list[np.ndarray] = field(default_factory=list)  # bool[steps]: where it could happen

    def add(self, event: Event, mask: np.ndarray, present: np.ndarray) -> None:
        """`mask` is bool[steps, width], `present` bool[steps]."""
        self.events.append(event)
        self.cells.append(np.flatnonzero(mask & self.there).astype(np.int32))
        self.present.append(present)

    @property
    def sizes(self) -> np.ndarray:
        """int64[steps]: samples in every step."""
        return np.asarray(self.there.sum(axis=1))

    def counts(self) -> np.ndarray:
        """float32[events, steps]: how many samples of each step have it."""
        found = [np.bincount(cells // self.width, minlength=self.steps) for cells in self.cells]
        return np.array(found, np.float32).reshape(len(found), self.steps)

    def dense(self, number: int) -> np.ndarray:
        """float32[steps, width]: one event, cell by cell."""
        found = np.zeros(self.steps * self.width, np.float32)
        found[self.cells[number]] = 1.0
        return found.reshape(self.steps, self.width)

    def keep(self, numbers: list[int]) -> None:
        """Only some events."""
        self.events = [self.events[number] for number in numbers]
        self.cells = [self.cells[number] for number in numbers]
        self.present = [self.present[number] for number in numbers]


@dataclass(slots=True)
class OverSteps:
    """Events that are known for every step."""

    steps: int
    events: list[Event] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)  # bool[steps]
    present: list[np.ndarray] = field(default_factory=list)

    def add(self, event: Event, mask: np.ndarray, present: np.ndarray | None = None) -> None:
        present = np.ones(self.steps, dtype=bool) if present is None else present
        self.events.append(event)
        self.masks.append(mask & present)
        self.present.append(present)

    def matrix(self) -> np.ndarray:
        """float32[events, steps]."""
        return np.array(self.masks, np.float32).reshape(len(self.masks), self.steps)

    def keep(self, numbers: list[int]) -> None:
        self.events = [self.events[number] for number in numbers]
        self.masks = [self.masks[number] for number in numbers]
        self.present = [self.present[number] for number in numbers]

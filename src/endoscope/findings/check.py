"""The form of a check, and of what its function sees.

Facts, limits ─► Check.run ─► Seen (where, when, how much) ─► diagnose ─► Finding (with causes, remedies, link)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from endoscope.findings.facts import Facts
from endoscope.findings.rows import Tensor

Limits = Mapping[str, float]
Fits = Callable[[Facts], bool]  # whether something makes sense for a model: architecture.py


class Stage(IntEnum):
    """Where in a training a symptom stands; causes come before what they cause."""

    RECORDING = 0
    DATA = 1
    START = 2
    OPTIMIZER = 3
    FORWARD = 4
    BACKWARD = 5
    WEIGHTS = 6
    LOSS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One tensor, or one metric, with a symptom."""

    severity: str
    title: str  # what is seen, in words that read on behind the name of the place: titles.py
    detail: str
    value: float
    threshold: float
    tensor: Tensor | None = None
    node: str = ""  # if there is no tensor: the metric
    steps: np.ndarray  # numbers of the steps at which it was seen, ascending
    types: tuple[str, ...] = ()
    samples: tuple[int, ...] = ()
    also: tuple[str, ...] = ()  # nodes that certainly have it from here
    source: str = ""  # file:line, if it is another one than that of the tensor
    of_the_run: bool = False  # about its whole course: the title says so itself, and names no other step
    cause: str = ""  # symptoms with different causes are never put together
    causes: tuple[str, ...] | None = None  # where they are known better than the check knows them in general
    remedies: tuple[str, ...] | None = None  # the same

    @property
    def name(self) -> str:
        return self.tensor.node if self.tensor is not None else self.node


# Checks that often stand behind others; for `explained_by`.
LEARNING_RATE = ("update_ratio", "gradients_not_zeroed")
START = ("bad_initialisation", "inputs_not_normalised")
STANDSTILL = ("unchanged_parameters", "missing_gradient", "zero_gradient", "dead_units", "vanishing_gradient")


@dataclass(frozen=True, slots=True)
class Evidence:
    """In which numbers a finding is seen: the report draws them, the page colours the graph by one of them."""

    statistics: tuple[str, ...] = ("std", "abs_max")  # of the whole tensor, over steps
    of: str = "own"  # of what the finding is about, of the "gradient" of every loss, or of the "update"
    units: str = ""  # statistic of units of which the report has a picture; empty: none
    page: str = ""  # the statistic that the page shows; empty: the first of `statistics`
    past: bool = False  # the page shows it against the layer's own past: it is a change, and not a size


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing to look for, and all that is known about it."""

    name: str
    description: str  # one sentence: what is reported
    stage: Stage
    run: Callable[[Facts, Limits], Iterable[Seen]]
    causes: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    causes_where: tuple[tuple[Fits, str], ...] = ()  # told after `causes`, of models for which they make sense
    remedies_where: tuple[tuple[Fits, str], ...] = ()  # the same
    thresholds: Limits = field(default_factory=dict)  # name -> default
    quantity: str = ""  # under which the table of healthy trainings has what `value` of a finding is
    needs_harm: bool = False  # where the loss falls as it should, what it warns of is told as an info only
    evidence: Evidence | None = None  # None: the page goes on to show what it shows
    explained_by: tuple[str, ...] = ()  # checks whose findings are probably causes of this one

    @property
    def page_statistic(self) -> str:
        """What the page colours the graph by and shows over training; empty if that does not matter."""
        return (self.evidence.page or self.evidence.statistics[0]) if self.evidence else ""

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
    title: str
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
    cause: str = ""  # symptoms with different causes are never put together
    causes: tuple[str, ...] | None = None  # where they are known better than the check knows them in general
    remedies: tuple[str, ...] | None = None  # the same

    @property
    def name(self) -> str:
        return self.tensor.node if self.tensor is not None else self.node


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing to look for."""

    name: str
    description: str  # one sentence: what is reported
    stage: Stage
    run: Callable[[Facts, Limits], Iterable[Seen]]
    causes: tuple[str, ...]
    remedies: tuple[str, ...]
    thresholds: Limits = field(default_factory=dict)  # name -> default

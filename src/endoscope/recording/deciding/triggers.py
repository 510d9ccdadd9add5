"""Policies that look at a finished step and keep it because something unusual happened in it.

Each type of step is compared with its own past. A trigger is asked about every step, recorded or not, so it knows what
is usual. Of one unusual stretch only the first steps are kept: a run that has turned to NaN is not recorded for ever.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from endoscope.errors import BadArgument
from endoscope.recording.arguments import whole
from endoscope.recording.deciding.unusual import Limits, Stretch, Window
from endoscope.recording.deciding.verdicts import Decision, StepInfo

#: After so many steps without what it looks at a trigger complains, once.
PATIENCE_STEPS = 100

NOTHING = Decision(False)


def on_nonfinite() -> Trigger:
    """Keep a step in which a NaN or an infinity appears, in a recorded tensor or in a metric."""
    return _OnNonfinite()


def on_spike(
    metric: str = "loss",
    *,
    window_steps: int = 100,
    warmup_steps: int = 20,
    deviations: float = 6.0,
    relative_floor: float = 0.2,
    absolute_floor: float = 1e-6,
) -> Trigger:
    """Keep a step whose metric lies far above its recent median.

    Far means all of: more than `deviations` standard deviations (estimated from the median absolute deviation of the
    last `window_steps` steps of the type), more than `relative_floor` times the median, more than `absolute_floor`.
    A value that is not finite is a spike, too. The first `warmup_steps` steps are only learned from.
    """
    return _OnSpike(metric, Limits(window_steps, warmup_steps, deviations, relative_floor, absolute_floor))


def on_outlier_samples(
    metric: str = "loss",
    k: int = 5,
    *,
    window_steps: int = 100,
    warmup_steps: int = 20,
    deviations: float = 6.0,
    relative_floor: float = 0.2,
) -> Trigger:
    """Keep a step with a sample that is far worse than the worst samples of recent steps, and its `k` worst raw.

    The metric has one number for each sample. The largest of them is compared with the largest of earlier steps, as
    in `on_spike`. If the step is recorded for another reason, its `k` worst samples are the first to be kept raw.
    """
    limits = Limits(window_steps, warmup_steps, deviations, relative_floor)
    return _OnOutlierSamples(metric, limits, whole("k", k, 1))


@dataclass(repr=False, eq=False)
class Trigger(ABC):
    """What a trigger remembers of earlier steps stands in fields that are not arguments."""

    urgent: bool = field(default=True, init=False)  # among the last to be given up when the budget is short
    _missed: int = field(default=0, init=False)  # steps without what it looks at; -1: it was there once

    @abstractmethod
    def __call__(self, info: StepInfo) -> Decision: ...

    def fresh(self) -> Trigger:
        """The same policy without memory: two runs that are given one object do not share what they saw."""
        return replace(self)

    def is_missing(self, there: bool) -> bool:
        """Whether what it looks at was in none of the first steps; True only once."""
        self._missed = -1 if there or self._missed < 0 else self._missed + 1
        return self._missed == PATIENCE_STEPS


@dataclass(repr=False, eq=False)
class _OnNonfinite(Trigger):
    # Counted apart: a model with an infinite mask in every step can still have its loss turn to NaN.
    _tensors: dict[str, Stretch] = field(default_factory=lambda: defaultdict(Stretch), init=False)
    _metrics: dict[str, Stretch] = field(default_factory=lambda: defaultdict(Stretch), init=False)

    def __call__(self, info: StepInfo) -> Decision:
        bad = [name for name, value in info.metrics.items() if not _is_finite(value)]
        new_in_metrics = self._metrics[info.type].keeps(bool(bad))
        new_in_tensors = self._tensors[info.type].keeps(info.nonfinite)
        if not (new_in_metrics or new_in_tensors):
            return NOTHING
        where = [f"metric {name}" for name in bad] + ["recorded tensors"] * info.nonfinite
        return Decision(True, why=f"NaN or infinity in {', '.join(where)}")

    def __repr__(self) -> str:
        return "on_nonfinite()"


@dataclass(repr=False, eq=False)
class _OfMetric(Trigger):
    """A trigger that compares one number of each step with its past."""

    metric: str
    limits: Limits
    _stretches: dict[str, Stretch] = field(default_factory=lambda: defaultdict(Stretch), init=False)
    _windows: dict[str, Window] = field(init=False)
    _others: dict[str, None] = field(default_factory=dict, init=False)  # metrics that were there instead

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str) or not self.metric:
            raise BadArgument(f"metric={self.metric!r} is no name of a metric. Use one such as 'loss'.")
        self._windows = defaultdict(partial(Window, self.limits.window_steps))

    def __call__(self, info: StepInfo) -> Decision:
        value = info.metrics.get(self.metric)
        if 0 <= self._missed < PATIENCE_STEPS and value is None:
            self._others |= dict.fromkeys(info.metrics)
        if self.is_missing(value is not None):
            others, self._others = ", ".join(map(repr, self._others)) or "none", {}
            raise BadArgument(
                f"{self!r}: none of the first {PATIENCE_STEPS} steps had a metric {self.metric!r}; there were: "
                f"{others}. Report it with step.metric({self.metric!r}, value)."
            )
        is_there = value is not None and (isinstance(value, float) or np.size(value) > 0)
        return self._judge(info.type, value) if is_there else NOTHING

    @abstractmethod
    def _judge(self, type: str, value: Any) -> Decision: ...

    def _is_kept(self, type: str, value: float) -> str:
        """Why to keep the step because of this value, "" if not; then learn from the value."""
        window, why = self._windows[type], ""
        if self._stretches[type].keeps(self.limits.exceeded(value, window)):
            why = f"{value:.4g}" + (f", usually {window.median():.4g}" if len(window) else "")
        if math.isfinite(value):
            window.add(value)
        return why


@dataclass(repr=False, eq=False)
class _OnSpike(_OfMetric):
    def _judge(self, type: str, value: Any) -> Decision:
        why = self._is_kept(type, value if isinstance(value, float) else float(np.mean(_numbers(value))))
        return Decision(True, why=f"spike: {self.metric} {why}") if why else NOTHING

    def __repr__(self) -> str:
        return f"on_spike({self.metric!r}{self.limits})"


@dataclass(repr=False, eq=False)
class _OnOutlierSamples(_OfMetric):
    k: int = 5

    def _judge(self, type: str, value: Any) -> Decision:
        losses = _numbers(value)
        if losses.ndim == 0:
            raise BadArgument(
                f"{self!r}: the metric {self.metric!r} is one number ({float(losses):.4g}), so no sample can be told "
                f"from another. Report one number for each sample, such as step.metric({self.metric!r}, losses) with "
                "the losses of reduction='none'."
            )
        losses = losses.reshape(len(losses), -1).mean(axis=1)
        badness = np.where(np.isnan(losses), np.inf, losses)  # nothing is worse than NaN
        worst: list[int] = np.argsort(-badness, kind="stable")[: self.k].tolist()
        why = self._is_kept(type, float(losses[worst[0]]))
        return Decision(bool(why), tuple(worst), f"outlier: {self.metric} of sample {worst[0]} {why}" if why else "")

    def __repr__(self) -> str:
        return f"on_outlier_samples({self.metric!r}, {self.k}{self.limits})"


def _is_finite(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else bool(np.isfinite(_numbers(value)).all())


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value, dtype=np.float64)

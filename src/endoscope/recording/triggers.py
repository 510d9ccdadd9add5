"""Late policies: they look at a finished step and keep it because something unusual happened in it.

Each type of step is compared with its own past. A trigger is asked about every step, recorded or not, so it knows what
is usual. Of one unusual stretch only the first steps are kept: a run that has turned to NaN is not recorded for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from endoscope.errors import BadArgument
from endoscope.recording.arguments import whole
from endoscope.recording.unusual import ByType, Limits, Stretch, Window
from endoscope.recording.verdicts import Decision, StepInfo

#: After so many steps without its metric a trigger complains, once.
PATIENCE_STEPS = 100

_NOTHING = Decision(False)


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
    return _OnOutlierSamples(metric, k, Limits(window_steps, warmup_steps, deviations, relative_floor))


class Trigger:
    """A late policy that may remember earlier steps."""

    late: ClassVar[bool] = True  # asked when the step has ended
    urgent: ClassVar[bool] = True  # among the last to be given up when the budget is short

    def __call__(self, info: StepInfo) -> Decision:
        raise NotImplementedError

    def fresh(self) -> Trigger:
        """The same policy without memory: two runs that are given one object do not share what they saw."""
        raise NotImplementedError


class _OnNonfinite(Trigger):
    def __init__(self) -> None:
        self._tensors = ByType(Stretch)
        self._metrics = ByType(Stretch)

    def __call__(self, info: StepInfo) -> Decision:
        # Counted apart: a model with an infinite mask in every step can still have its loss turn to NaN.
        bad = [name for name, value in info.metrics.items() if not _all_finite(value)]
        new_in_metrics = self._metrics[info.type].keeps(bool(bad))
        new_in_tensors = self._tensors[info.type].keeps(info.nonfinite)
        if not (new_in_metrics or new_in_tensors):
            return _NOTHING
        where = [f"metric {name}" for name in bad] + ["recorded tensors"] * info.nonfinite
        return Decision(True, why=f"NaN or infinity in {', '.join(where)}")

    def fresh(self) -> Trigger:
        return _OnNonfinite()

    def __repr__(self) -> str:
        return "on_nonfinite()"


class _Past:
    """What is remembered of one type of step."""

    __slots__ = ("stretch", "window")

    def __init__(self, size: int) -> None:
        self.window = Window(size)
        self.stretch = Stretch()


class _OfMetric(Trigger):
    """A trigger that compares one number of each step with its past."""

    def __init__(self, metric: str, limits: Limits) -> None:
        if not isinstance(metric, str) or not metric:
            raise BadArgument(f"metric={metric!r} is no name of a metric. Use one such as 'loss'.")
        self.metric = metric
        self._limits = limits
        self._past = ByType(lambda: _Past(limits.window_steps))
        self._found = False
        self._missed = 0  # steps without the metric, as long as it was never there
        self._others: dict[str, None] = {}  # names of the metrics that were there instead

    def _read(self, info: StepInfo) -> Any:
        """The metric of this step; None if it has none, or one of no samples."""
        value = info.metrics.get(self.metric)
        if value is not None:
            if not isinstance(value, float) and not np.size(value):
                return None
            self._found = True
        elif not self._found:
            self._miss(info.metrics)
        return value

    def _miss(self, metrics: Mapping[str, Any]) -> None:
        self._missed += 1
        if self._missed <= PATIENCE_STEPS:
            self._others.update(dict.fromkeys(metrics))
        if self._missed == PATIENCE_STEPS:
            there = ", ".join(map(repr, self._others)) or "none"
            raise BadArgument(
                f"{self!r}: none of the first {PATIENCE_STEPS} steps had a metric {self.metric!r}; there were: "
                f"{there}. Report it with step.metric({self.metric!r}, value)."
            )

    def _judge(self, type: str, value: float) -> str:
        """Why to keep the step because of this value, "" if not; then learn from the value."""
        past = self._past[type]
        why = ""
        if past.stretch.keeps(self._limits.exceeded(value, past.window)):
            usual = f", usually {past.window.median():.4g}" if len(past.window) else ""
            why = f"{value:.4g}{usual}"
        if math.isfinite(value):
            past.window.add(value)
        return why


class _OnSpike(_OfMetric):
    def __call__(self, info: StepInfo) -> Decision:
        value = self._read(info)
        if value is None:
            return _NOTHING
        why = self._judge(info.type, _mean(value))
        return Decision(True, why=f"spike: {self.metric} {why}") if why else _NOTHING

    def fresh(self) -> Trigger:
        return _OnSpike(self.metric, self._limits)

    def __repr__(self) -> str:
        return f"on_spike({self.metric!r}{self._limits})"


class _OnOutlierSamples(_OfMetric):
    def __init__(self, metric: str, k: int, limits: Limits) -> None:
        super().__init__(metric, limits)
        self.k = whole("k", k, 1)

    def __call__(self, info: StepInfo) -> Decision:
        value = self._read(info)
        if value is None:
            return _NOTHING
        losses = self._per_sample(value)
        worst = _largest(losses, self.k)
        why = self._judge(info.type, float(losses[worst[0]]))
        return Decision(bool(why), tuple(worst), f"outlier: {self.metric} of sample {worst[0]} {why}" if why else "")

    def _per_sample(self, value: Any) -> np.ndarray[Any, Any]:
        values = np.asarray(value, dtype=np.float64)
        if values.ndim == 0:
            raise BadArgument(
                f"{self!r}: the metric {self.metric!r} is one number ({float(values):.4g}), so no sample can be told "
                f"from another. Report one number for each sample, such as step.metric({self.metric!r}, losses) with "
                "the losses of reduction='none'."
            )
        if values.ndim > 1:
            values = values.reshape(len(values), -1).mean(axis=1)
        return values

    def fresh(self) -> Trigger:
        return _OnOutlierSamples(self.metric, self.k, self._limits)

    def __repr__(self) -> str:
        return f"on_outlier_samples({self.metric!r}, {self.k}{self._limits})"


def _mean(value: Any) -> float:
    """The number of a metric; the mean of one that has a number for each sample."""
    if isinstance(value, float):
        return value
    return float(np.mean(np.asarray(value, dtype=np.float64)))


def _largest(values: np.ndarray[Any, Any], k: int) -> list[int]:
    """Where the `k` largest values are, the largest first; nothing is larger than NaN."""
    if math.isnan(values.max()):
        values = np.where(np.isnan(values), np.inf, values)
    largest: list[int] = np.argsort(-values, kind="stable")[:k].tolist()
    return largest


def _all_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(np.isfinite(np.asarray(value, dtype=np.float64)).all())

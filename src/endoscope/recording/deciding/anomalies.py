"""Own anomalies as triggers: a step is kept because a rule of the user's own is true of its tensors.

The rule is that of `endoscope.anomaly`, and is asked about the same statistics that a recording would hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from endoscope.analysis.user_rules.anomalies import Anomaly, Look
from endoscope.analysis.user_rules.conditions import OF_SAMPLE, Condition
from endoscope.errors import BadArgument
from endoscope.recording.deciding.triggers import NOTHING, PATIENCE_STEPS, Trigger
from endoscope.recording.deciding.unusual import Stretch
from endoscope.recording.deciding.verdicts import Decision, StepInfo


@dataclass(repr=False, eq=False)
class OnAnomaly(Trigger):
    """Keeps the steps with an anomaly, and its samples raw."""

    anomaly: Anomaly
    _stretches: dict[str, Stretch] = field(default_factory=lambda: defaultdict(Stretch), init=False)

    def __call__(self, info: StepInfo) -> Decision:
        where, held = self.anomaly.where, info.held
        if held is None or where.type not in (None, info.type):
            return NOTHING
        condition = self.anomaly.rule.condition if self.anomaly.rule is not None else None
        looks = held(where, condition is None or condition.per_sample)
        if self.is_missing(bool(looks)):
            raise BadArgument(
                f"{self.anomaly!r}: in none of the first {PATIENCE_STEPS} steps is there a tensor that "
                f"{where.text!r} means. Use a node that is recorded; `endoscope.open(path).nodes` lists them."
            )
        if not looks:
            return NOTHING
        with np.errstate(all="ignore"):
            found = list(self._found(looks, condition))
        keep = self._stretches[info.type].keeps(bool(found))
        samples = dict.fromkeys(sample for _, samples in found for sample in samples)
        return Decision(keep, tuple(samples), f"{self.anomaly.name}: {found[0][0]}" if keep else "")

    def _found(self, looks: list[Look], condition: Condition | None) -> Iterator[tuple[str, list[int]]]:
        """Where the anomaly is, and in which samples, for every tensor with it."""
        for look in looks:
            if condition is None:
                assert self.anomaly.function is not None
                holds, told = np.asarray(self.anomaly.function(look)), ""
            else:
                numbers: dict[str, Any] = {OF_SAMPLE + name: values for name, values in look.samples.items()}
                numbers |= {name: np.float64(value) for name, value in look.statistics.items()}
                # A tensor without samples has nothing to say about them.
                is_askable = all(OF_SAMPLE + name in numbers for name in condition.sample_statistics)
                holds, told = np.asarray(is_askable and condition.holds(numbers)), f", {condition.text}"
            if holds.any():
                of = "" if look.of in ("value", "parameter") else f" ({look.of})"
                yield f"{look.node}{of}{told}", np.flatnonzero(holds).tolist() if holds.ndim else []

    def __repr__(self) -> str:
        return repr(self.anomaly)

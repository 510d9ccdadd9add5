"""Own anomalies as late policies: a step is kept because a rule of the user's own is true of its tensors.

The rule is that of `endoscope.anomaly`, and is asked about the same statistics that a recording would hold. Of one
unusual stretch only the first steps are kept, as by the other triggers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from endoscope.analysis.anomalies import Anomaly, Look
from endoscope.analysis.conditions import OF_SAMPLE, Condition
from endoscope.errors import BadArgument
from endoscope.recording.triggers import PATIENCE_STEPS, Trigger
from endoscope.recording.unusual import ByType, Stretch
from endoscope.recording.verdicts import Decision, StepInfo

_NOTHING = Decision(False)


class OnAnomaly(Trigger):
    """Keeps the steps with an anomaly, and its samples raw."""

    def __init__(self, anomaly: Anomaly) -> None:
        self.anomaly = anomaly
        self._stretches = ByType(Stretch)
        self._missed = 0  # steps in which it meant nothing, as long as it never meant anything

    def __call__(self, info: StepInfo) -> Decision:
        where = self.anomaly.where
        if info.held is None or where.type not in (None, info.type):
            return _NOTHING
        condition = self.anomaly.rule.condition if self.anomaly.rule is not None else None
        looks = info.held(where, condition is None or condition.per_sample)
        if not looks:
            self._miss(info)
            return _NOTHING
        self._missed = -1
        with np.errstate(all="ignore"):
            found = list(self._found(looks, condition))
        keep = self._stretches[info.type].keeps(bool(found))
        samples = dict.fromkeys(sample for _, _, true in found for sample in true)
        why = f"{self.anomaly.name}: {found[0][0]}{found[0][1]}" if found else ""
        return Decision(keep, tuple(samples), why if keep else "")

    def _found(self, looks: list[Look], condition: Condition | None) -> Iterator[tuple[str, str, list[int]]]:
        """Node, what was measured there, and samples, of every tensor with the anomaly."""
        for look in looks:
            if condition is None:
                assert self.anomaly.function is not None
                holds, told = np.asarray(self.anomaly.function(look)), ""
            else:
                numbers: dict[str, Any] = {OF_SAMPLE + name: values for name, values in look.samples.items()}
                numbers |= {name: np.float64(value) for name, value in look.statistics.items()}
                holds = np.asarray(condition.holds(numbers)) if _can_be_asked(condition, numbers) else np.array(False)
                told = f", {condition.text}"
            if holds.any():
                where = look.node + ("" if look.of in ("value", "parameter") else f" ({look.of})")
                yield where, told, np.flatnonzero(holds).tolist() if holds.ndim else []

    def _miss(self, info: StepInfo) -> None:
        if self._missed < 0:
            return
        self._missed += 1
        if self._missed == PATIENCE_STEPS:
            raise BadArgument(
                f"{self.anomaly!r}: in none of the first {PATIENCE_STEPS} steps is there a tensor that "
                f"{self.anomaly.where.text!r} means. Use a node that is recorded; `endoscope.open(path).nodes` lists "
                "them."
            )

    def fresh(self) -> Trigger:
        return OnAnomaly(self.anomaly)

    def __repr__(self) -> str:
        return repr(self.anomaly)


def _can_be_asked(condition: Condition, numbers: dict[str, Any]) -> bool:
    """A tensor without samples has nothing to say about them."""
    return all(OF_SAMPLE + name in numbers for name in condition.sample_statistics)

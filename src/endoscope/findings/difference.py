"""What differs between two sides of a training, as a user reads it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup, tag
from endoscope.schema.stats import registered


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Shown):
    """One tensor, or one unit of it, that differs consistently between side a and side b."""

    a: str  # name of the type, trial or category
    b: str
    trial: str  # of side a
    node: str
    role: str = ""
    pass_: int = 1  # where it is strongest
    of: str = "value"  # value, parameter, update or gradient:<loss>
    unit: tuple[int, ...] | None = None  # None: the tensor as a whole
    statistic: str  # the one that differs most
    also: tuple[str, ...] = ()  # other statistics of the same that differ
    passes: tuple[int, ...] = (1,)  # in which it differs
    a_mean: float  # the statistic on side a, at the same moment of the training
    b_mean: float
    effect: float  # Cohen's d: the difference in standard deviations; above zero if a is larger
    interval: tuple[float, float]  # of the effect
    p: float  # probability that chance alone does this, corrected for the number of comparisons
    size: float  # of the difference, as a share of the numbers that are compared
    agreement: float  # share of comparisons of neighbours that go the same way
    n_a: int  # steps, or samples
    n_b: int
    first_step: int  # since when
    source: str = ""
    link: str = ""

    @property
    def where(self) -> str:
        """The tensor in words."""
        told = self.node + (f" ({self.role})" if self.role else "")
        told += f", {self.of}" if self.of not in ("value", "parameter") else ""
        if self.unit is not None:
            told += f", unit {self.unit[0] if len(self.unit) == 1 else self.unit}"
        return told

    @property
    def sentence(self) -> str:
        """All of it, in one sentence."""
        one = next((one for one in registered() if one.name == self.statistic), None)
        statistic = f"share of {one.label}" if one and one.is_count else one.label if one else self.statistic
        chance = "p < 1e-6" if self.p < 1e-6 else f"p = {self.p:.2g}"
        low, high = self.interval
        return (
            f"{self.where}: the {statistic} is {self._compared()} ({self.a_mean:.3g} and {self.b_mean:.3g}; "
            f"d = {self.effect:.2f}, {low:.2f} to {high:.2f}; {chance}; n = {self.n_a} and {self.n_b}), "
            f"since step {self.first_step}."
        )

    def _compared(self) -> str:
        """`2.1 times as large for 'long' as for 'short'`."""
        high, low, high_name, low_name = self.a_mean, self.b_mean, self.a, self.b
        if low > high:
            high, low, high_name, low_name = low, high, low_name, high_name
        if low > 0 and high / low >= 1.5:
            return f"{high / low:.3g} times as large for {high_name!r} as for {low_name!r}"
        return f"higher for {high_name!r} than for {low_name!r}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no NaN and no infinity."""
        found = asdict(self) | {"sentence": self.sentence}
        found["interval"] = [_plain(value) for value in self.interval]
        return {name: _plain(value) if isinstance(value, float) else value for name, value in found.items()}

    def _block(self) -> Markup:
        return tag("p", self.sentence)

    def __str__(self) -> str:
        return self.sentence


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""Two things that happen together, as a user reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from endoscope.findings.event import CATEGORY, OUTLIER, TYPE
from endoscope.markup.notebook import Shown
from endoscope.markup.tags import Markup, tag

FEWEST = 20  # samples or steps with what is explained: fewer are no base for advice


class Interval(NamedTuple):
    """Confidence intervals, corrected for the number of pairs: all of a trial hold at once."""

    lift: tuple[float, float]
    phi: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation(Shown):
    """Two events, and how much more often they happen together than by chance."""

    a: str  # what is explained: a loss, a finding, an anomaly
    b: str  # what it comes with
    share: float  # of the samples (or steps) with a, those that also have b
    lift: float  # that share, divided by the share of b among all
    phi: float  # the correlation of the two, from -1 to 1
    interval: Interval
    n: int  # samples (or steps) with a
    over: str  # "samples" or "steps": what is counted
    first_step: int  # at which both happen
    leads: str | None  # in time: "a", "b", or None if that cannot be told
    upstream: str | None  # in the graph: "a" if b is computed from it, "b", or None
    trial: str
    a_kind: str  # loss, check, anomaly, outlier, type or category
    b_kind: str
    a_node: str = ""
    b_node: str = ""
    a_also: tuple[str, ...] = ()  # other nodes at which the same happens
    b_also: tuple[str, ...] = ()

    @property
    def between_outliers(self) -> bool:
        """Whether neither is more than an unusual number at some node; such pairs come last."""
        return self.a_kind == self.b_kind == OUTLIER

    @property
    def sentence(self) -> str:
        """All of it in words."""
        name = self.a[:1].upper() + self.a[1:]
        verb = f"are of {self.b}" if self.b_kind in (TYPE, CATEGORY) else f"also have {self.b!r}"
        more = len(self.b_also)
        also = f" (and at {more} more node{'s' if more > 1 else ''})" if more else ""
        told = (
            f"{name}: {_percent(self.share)} of its {self.over} {verb}{also} (lift {self.lift:.3g}, n = {self.n}), "
            f"first at step {self.first_step}."
        )
        names = {"a": self.a, "b": self.b}
        order = [f"{names[self.leads]} comes first in time"] if self.leads else []
        order += [f"{names[self.upstream]} is upstream"] if self.upstream else []
        said = "; ".join(order)
        return told + (f" {said[0].upper()}{said[1:]}." if said else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no infinity."""
        found = asdict(self)
        found["interval"] = {
            name: [end if math.isfinite(end) else None for end in ends]
            for name, ends in self.interval._asdict().items()
        }
        return {**found, "sentence": self.sentence}

    def _block(self) -> Markup:
        return tag("p", self.sentence)

    def __str__(self) -> str:
        return self.sentence


def worth_telling(pairs: Sequence[Correlation]) -> list[Correlation]:
    """Those that are shown to people: about something that matters, and seen often enough."""
    return [pair for pair in pairs if not pair.between_outliers and pair.n >= FEWEST]


def _percent(share: float) -> str:
    """Rounded, but never up to all of them."""
    rounded = round(100 * share)
    return "more than 99 %" if rounded == 100 and share < 1 else f"{rounded} %"

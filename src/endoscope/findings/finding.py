"""What a check has found, as a user reads it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from endoscope.markup.notebook import Shown, folded
from endoscope.markup.tags import Markup, tag

INFO, WARNING, ERROR = "info", "warning", "error"
SEVERITIES = (INFO, WARNING, ERROR)  # from harmless to harmful
NO_STEPS = "no_steps"  # the check that says that there was nothing to check; its findings are about no step


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Shown):
    """One thing that looks wrong: what, where, since when, how far beyond the threshold, and what to do about it."""

    check: str  # name of the check
    severity: str  # "info", "warning" or "error"
    title: str  # one sentence that names the place, without a full stop
    detail: str  # one sentence, with the numbers
    trial: str
    node: str  # where it begins; empty if it is about no single tensor
    role: str = ""
    of: str = "value"  # value, parameter, update or gradient:<loss>
    first_step: int
    last_step: int
    types: tuple[str, ...] = ()  # of the steps at which it was seen
    samples: tuple[int, ...] = ()  # of the batch of the first step, where known
    value: float  # what was measured
    threshold: float  # beyond which it is reported
    strength: float = 1.0  # how many times beyond what healthy trainings show, or else beyond the threshold
    usual: tuple[float, float] | None = None  # where 98 of 100 healthy ones of this kind lie; None: not known
    steps: int = 0  # recorded steps at which it was seen
    source: str = ""  # file:line of the user's code that made the tensor
    causes: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    link: str = ""  # into the page, relative to its address
    follows: str = ""  # the finding that probably explains this one, as "check at node"
    also: tuple[str, ...] = ()  # other nodes with the same symptom, which probably has the same cause

    @property
    def rank(self) -> int:
        """Errors, warnings, what follows from these, and the rest; smaller is more important."""
        if self.severity == INFO:
            return 3
        return 2 if self.follows else SEVERITIES[::-1].index(self.severity)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no NaN and no infinity."""
        found = asdict(self)
        for name in ("value", "threshold", "strength"):
            if not math.isfinite(found[name]):
                found[name] = None
        return found

    def _block(self) -> Markup:
        steps = f"steps {self.first_step} to {self.last_step}" if self.check != NO_STEPS else ""
        where = " · ".join(filter(None, (self.trial, steps, self.source)))
        causes = [tag("li", text) for text in self.causes]
        remedies = [tag("li", text) for text in self.remedies]
        return tag(
            "div",
            tag("p", tag("span", self.severity, class_=f"badge {self.severity}"), " ", tag("b", self.title)),
            tag("p", self.detail),
            tag("p", where, class_="soft"),
            folded("causes and remedies", tag("ul", causes), tag("ul", remedies)) if causes or remedies else None,
        )

    def __str__(self) -> str:
        return f"{self.severity}: {self.title}. {self.detail}"

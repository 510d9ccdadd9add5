"""What a policy is told about a step, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from endoscope.errors import EndoscopeError
from endoscope.recording.output.metrics import plain_numbers

if TYPE_CHECKING:  # what patterns need takes long to load, and most runs have none
    from endoscope.analysis.user_rules.anomalies import Look
    from endoscope.analysis.user_rules.rules import Where


class NotKnownYet(EndoscopeError):
    """A policy asked, while the step begins, for something that only its end can tell.

    The schedule takes it as a wish: it asks that policy at the end of each step from then on.
    """


#: Statistics of the tensors of a finished step that are meant, with what is known of earlier steps; of samples, too?
Held = Callable[["Where", bool], "list[Look]"]


class StepInfo:
    """One step, and what is known of the earlier steps of its type."""

    def __init__(
        self,
        number: int,  # the step's number, as the training loop counts
        type: str = "",  # of the step; "" where the training loop tells no types apart
        seen: int = 0,  # steps of this type before this one
        recorded: int = 0,  # how many of those were recorded
        last_recorded: int | None = None,  # number of the last one that was recorded
        unrecorded: int | None = None,  # steps of this type since then; all of them if none was recorded
        metrics: Mapping[str, Any] | None = None,  # name -> number or one number a sample; None: not known yet
        nonfinite: bool | Callable[[], bool] | None = None,  # None: not known yet
        held: Held | None = None,  # looks at held values; None: there are none
    ) -> None:
        self.number = number
        self.type = type
        self.seen = seen
        self.recorded = recorded
        self.last_recorded = last_recorded
        self.unrecorded = seen if unrecorded is None else unrecorded
        self._metrics, self._nonfinite, self._held = metrics, nonfinite, held

    @cached_property
    def metrics(self) -> Mapping[str, Any]:
        """Metrics of this step: name to number, or to one number for each sample. A device is waited for only here."""
        if self._metrics is None:
            raise NotKnownYet("The metrics of a step are known when it ends; this one is beginning.")
        return plain_numbers(self._metrics)

    @cached_property
    def nonfinite(self) -> bool:
        """Whether a NaN or an infinity was seen in this step. Looking through the values takes time, so only once."""
        if self._nonfinite is None:
            raise NotKnownYet("Whether values are finite is known when the step ends; this one is beginning.")
        return bool(self._nonfinite() if callable(self._nonfinite) else self._nonfinite)

    @property
    def held(self) -> Held | None:
        """Looks at the held values of this step; None if there are none."""
        if self._metrics is None and self._held is None:
            raise NotKnownYet("The values of a step are held when it ends; this one is beginning.")
        return self._held

    def __repr__(self) -> str:
        known = f"number={self.number}, type={self.type!r}, seen={self.seen}, recorded={self.recorded}"
        return f"StepInfo({known}, last_recorded={self.last_recorded}, unrecorded={self.unrecorded})"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of a policy that says more than yes or no; also what the schedule makes of all answers."""

    keep: bool  # record the step
    samples: Sequence[int] = ()  # worth keeping raw, the most important first, if the step is recorded
    why: str = ""  # one line for whoever reads the recording
    type: str = ""  # under which the step was counted; policies leave it empty


#: What a policy may return; anything else counts by its truth value.
Answer = bool | Decision
Policy = Callable[[StepInfo], Answer]

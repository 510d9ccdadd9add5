"""Which steps are recorded: counts each type of step, asks the policies, listens to the user and to the budget.

    begin(number, type) ─► Verdict    policies are asked that need nothing of the step itself; values are captured if
         │                            one says yes, or if the end of the step may still say so
         ▼
    … the step runs; the user may decide its type, and whether to keep it …
         │
         ▼
    finish(type, keep, metrics, …) ─► Decision    late policies are asked; the user has the last word, then the budget

A policy that raises never stops training: its error is kept to be reported, once, and the default policy answers in its
place. A policy that looks at metrics, which only the end of a step can tell, is asked at the end from then on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from endoscope.recording.budget import RARE, ROUTINE, URGENT, Budget
from endoscope.recording.policies import decaying, is_late, is_urgent, name_of, parts_of, policy_of
from endoscope.recording.verdicts import Decision, Held, NotKnownYet, Policy, StepInfo, Verdict

__all__ = ["Decision", "Schedule", "StepInfo", "Verdict"]

_LET_GO = Verdict(capture=False, decided=True)
_RECORD = Verdict(capture=True, decided=True)
_RECORD_FOR_SURE = Verdict(capture=True, decided=True, final=True)
_HOLD = Verdict(capture=True, decided=False)
_NO_METRICS: Mapping[str, Any] = MappingProxyType({})
_RARE_RECORDED = 3  # a type with fewer recorded steps is rare
_MOST_PROBLEMS = 20  # that are told; a policy that fails in ever new ways is no news after that


class Counts:
    """Steps of one type."""

    __slots__ = ("last_recorded", "last_seen", "passed", "recorded", "seen", "type")

    def __init__(self, type: str) -> None:
        self.type = type
        self.seen = 0
        self.recorded = 0
        self.last_recorded: int | None = None  # number of the last recorded step
        self.last_seen = -1  # how many of the type came before that one
        self.passed = Decision(False, type=type)  # how most steps end; made once

    def info(
        self,
        number: int,
        metrics: Mapping[str, Any] | None = None,
        nonfinite: bool | Callable[[], bool] | None = None,
        held: Held | None = None,
    ) -> StepInfo:
        """What policies are told about the next step of this type."""
        unrecorded = self.seen - self.last_seen - 1
        known = (self.seen, self.recorded, self.last_recorded, unrecorded)
        return StepInfo(number, self.type, *known, metrics, nonfinite, held)

    def count(self, number: int, recorded: bool) -> None:
        if recorded:
            self.recorded += 1
            self.last_recorded = number
            self.last_seen = self.seen
        self.seen += 1


class _Wish(NamedTuple):
    """What one policy wants of a step."""

    policy: Policy
    urgent: bool
    keep: bool = True
    samples: tuple[int, ...] = ()
    said: str = ""

    @property
    def why(self) -> str:
        return self.said or name_of(self.policy)


class Schedule:
    """Decides about the steps of one run, one after the other, in the thread that trains."""

    def __init__(self, when: Policy | int | None = None, budget: Budget | None = None) -> None:
        self.policy = policy_of(when)
        self.budget = budget
        parts = parts_of(self.policy)
        self._early = tuple(policy for policy in parts if not is_late(policy))
        self._late = tuple(policy for policy in parts if is_late(policy))
        self._default = decaying()
        self._types: dict[str, Counts] = {}
        self.user_decides = False  # late: then every step is held until its end
        self.problems: list[str] = []  # of policies, to be told
        self._reported: set[tuple[int, str]] = set()
        # Of the step that runs:
        self._open = False
        self._number = 0
        self._counts = self._counts_of("")
        self._captured = False
        self._paid = False  # the budget has agreed to a recording
        self._wishes: list[_Wish] | None = None  # of the early policies; None while they were not asked

    # ---- one step --------------------------------------------------------------------------------

    def begin(self, number: int, type: str | None = None) -> Verdict:
        """A step begins. If the one before was never finished, it counts as seen and not recorded."""
        if self._open:
            self.abandon()
        self._open, self._number, self._wishes, self._paid = True, number, None, False
        if self._counts.type != (type or ""):
            self._counts = self._counts_of(type or "")
        # What the user decides late may be the type, so the policies are asked about it at the end.
        if not self.user_decides:
            verdict = self._judge()
        else:
            verdict = _HOLD if self.budget is None else self._hold()
        self._captured = verdict.capture
        return verdict

    def finish(
        self,
        *,
        type: str | None = None,  # if the user gave it another one
        keep: bool | None = None,  # what the user decided
        metrics: Mapping[str, Any] = _NO_METRICS,
        nonfinite: bool | Callable[[], bool] = False,  # a function is called only if a policy wants to know
        held: Held | None = None,  # the same for statistics of held values
    ) -> Decision:
        """The step has ended, captured or not: is it recorded, under which type, and why.

        If it should have been recorded and could not be, `why` says so although `keep` is False.
        """
        counts = self._counts
        retyped = type is not None and type != counts.type
        if retyped or keep is not None:
            self.user_decides = True
            if retyped:
                counts = self._counts = self._counts_of(type or "")
        elif not self._captured and not self._late:
            if self._open:  # what `_close` does, for most steps end here
                counts.seen, self._open = counts.seen + 1, False
            return counts.passed
        info = counts.info(self._number, metrics, nonfinite, held)
        if keep is False:  # whatever anybody wishes; but who remembers steps must see each of them
            unasked = self._early if self._wishes is None or retyped else ()
            self._ask(unasked + self._late, info, wishes_count=False)
            counts.seen, self._open = counts.seen + self._open, False
            return counts.passed
        if self._wishes is None or retyped:
            self._wishes = self._ask(self._early, info)
        wishes = self._wishes + self._ask(self._late, info) if self._late else self._wishes
        return self._close(self._decide(keep, wishes))

    def could_not_capture(self) -> None:
        """Against the verdict no values are held, for lack of room or because of an error."""
        self._captured = False

    def pass_over(self, type: str | None) -> Decision:
        """A step in a pause: it counts, and nobody is asked."""
        counts = self._counts_of(type or "")
        counts.seen += 1
        return counts.passed

    def abandon(self) -> None:
        """The step ended in an exception, or was left: it counts as seen and not recorded."""
        self._close(self._counts.passed)

    def withdraw(self) -> None:
        """It was no step: another one has its number."""
        self._open = False

    # ---- what to tell ----------------------------------------------------------------------------

    def take_problems(self) -> list[str]:
        """What went wrong in policies since the last call; each thing is told once."""
        problems, self.problems = self.problems, []
        return problems

    def counts(self) -> dict[str, tuple[int, int]]:
        """Steps seen and recorded of each type."""
        return {type: (counts.seen, counts.recorded) for type, counts in self._types.items() if counts.seen}

    # ---- how it is decided -----------------------------------------------------------------------

    def _judge(self) -> Verdict:
        self._wishes = wishes = self._ask(self._early, self._counts.info(self._number))
        if not wishes or not any(wish.keep for wish in wishes):
            return self._hold() if self._late else _LET_GO
        self._paid = self._affordable(any(wish.keep and wish.urgent for wish in wishes))
        if not self._paid:
            return _LET_GO
        return _RECORD if self._late or any(wish.samples for wish in wishes) else _RECORD_FOR_SURE

    def _hold(self) -> Verdict:
        if self.budget is None or self.budget.allows(self._counts.type, tentative=True):
            return _HOLD
        return _LET_GO

    def _decide(self, keep: bool | None, wishes: list[_Wish]) -> Decision:
        passed, wanted = self._counts.passed, [wish for wish in wishes if wish.keep]
        if keep is None and not wanted:
            return passed
        why = "; ".join(dict.fromkeys(wish.why for wish in wanted)) if keep is None else "decided in the step"
        if not self._captured:
            return replace(passed, why=f"{why}, but no values were held")
        urgent = keep is not None or any(wish.urgent for wish in wanted)
        if not self._paid and not self._affordable(urgent):
            return replace(passed, why=f"{why}, but the budget is used up")
        samples = dict.fromkeys(sample for wish in wishes for sample in wish.samples)
        return Decision(True, tuple(samples), why, passed.type)

    def _affordable(self, urgent: bool) -> bool:
        if self.budget is None:
            return True
        importance = URGENT if urgent else RARE if self._counts.recorded < _RARE_RECORDED else ROUTINE
        return self.budget.allows(self._counts.type, importance)

    def _close(self, decision: Decision) -> Decision:
        if self._open:
            self._counts.count(self._number, decision.keep)
            self._open = False
        return decision

    def _counts_of(self, type: str) -> Counts:
        counts = self._types.get(type)
        if counts is None:
            counts = self._types[type] = Counts(type)
        return counts

    # ---- policies are other people's code --------------------------------------------------------

    def _ask(self, policies: tuple[Policy, ...], info: StepInfo, wishes_count: bool = True) -> list[_Wish]:
        """What those that want anything want. All are asked: one that remembers steps must see each of them."""
        wishes = []
        for policy in policies:
            try:
                answer = policy(info)
                counts = wishes_count and answer is not False
                wish = _wish_of(policy, answer, policies is self._late) if counts else None
            except NotKnownYet:
                self._ask_at_the_end(policy)
                continue
            except Exception as error:
                wish = self._answer_instead(policy, error, info)
            if wish is not None:
                wishes.append(wish)
        return wishes

    def _ask_at_the_end(self, policy: Policy) -> None:
        self._early = tuple(other for other in self._early if other is not policy)
        self._late = self._late + (policy,)

    def _answer_instead(self, policy: Policy, error: Exception, info: StepInfo) -> _Wish | None:
        name, kind = name_of(policy), type(error).__name__
        if (id(policy), kind) not in self._reported and len(self._reported) < _MOST_PROBLEMS:
            self._reported.add((id(policy), kind))
            # Only the text is kept: an exception holds its frames, and these would hold the user's tensors.
            said = "".join(traceback.format_exception_only(error)).strip()
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.problems.append(
                f"The policy {name} raised {said} ({place.filename}:{place.lineno}) at step {info.number}. "
                f"Where it fails, {self._default!r} decides in its place."
            )
        said = f"{self._default!r}, because {name} failed"
        return _Wish(policy, urgent=False, said=said) if self._default(info) else None


def _wish_of(policy: Policy, answer: Any, late: bool) -> _Wish | None:
    urgent = late or is_urgent(policy)
    if not isinstance(answer, Decision):
        return _Wish(policy, urgent) if answer else None
    if not answer.keep and not answer.samples:
        return None
    return _Wish(policy, urgent, bool(answer.keep), tuple(int(sample) for sample in answer.samples), answer.why)

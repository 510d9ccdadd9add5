"""Which steps are recorded: counts each type of step, asks the policies, listens to the user and to the budget.

    begin(number, type) ─► Verdict    the policies are asked. Values are captured if one says yes, or if the end of the
         │                            step may still say so
         ▼
    … the step runs; the user may decide its type, and whether to keep it …
         │
         ▼
    finish(type, keep, metrics, …) ─► Decision    those are asked that need the end of the step; the user has the last
                                                  word, then the budget

A policy that looks at what only the end can tell raises `NotKnownYet` when it is asked at the beginning. From then on
it is *late*: asked at the end of each step. A policy that raises anything else never stops training: its error is kept
to be reported, once, and the default policy answers in its place.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from endoscope.recording.deciding.budget import Budget
from endoscope.recording.deciding.policies import When, decaying, name_of, parts_of, policy_of
from endoscope.recording.deciding.verdicts import Decision, Held, NotKnownYet, Policy, StepInfo

_NO_METRICS: Mapping[str, Any] = MappingProxyType({})
_MOST_PROBLEMS = 20  # that are told; a policy that fails in ever new ways is no news after that


class Verdict(NamedTuple):
    """What to do while a step runs, as decided at its beginning."""

    capture: bool  # hold on to values
    decided: bool  # True: they are recorded unless the user objects; False: the end of the step tells


class Counts:
    """Steps of one type."""

    def __init__(self, type: str) -> None:
        self.type = type
        self.seen = 0
        self.recorded = 0
        self.last_recorded: int | None = None  # number of the last recorded step
        self.unrecorded = 0  # steps since then
        self.passed = Decision(False, type=type)  # how most steps end; made once

    def info(self, number: int, *known_at_the_end: Any) -> StepInfo:
        """What policies are told about the next step of this type."""
        counts = (self.seen, self.recorded, self.last_recorded, self.unrecorded)
        return StepInfo(number, self.type, *counts, *known_at_the_end)


class _Wish(NamedTuple):
    """What one policy wants of a step."""

    keep: bool
    urgent: bool  # among the last to be given up when the budget is short
    samples: tuple[int, ...]
    why: str


class Schedule:
    """Decides about the steps of one run, one after the other, in the thread that trains."""

    def __init__(self, when: When = None, budget: Budget | None = None) -> None:
        self._early = parts_of(policy_of(when))
        self._late: tuple[Policy, ...] = ()
        self._budget = budget
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
        self._open, self._number, self._wishes, self._paid, self._captured = True, number, None, False, False
        self._counts = self._counts_of(type or "")
        # What the user decides late may be the type, so the policies are asked about it at the end.
        wanted: list[_Wish] = []
        if not self.user_decides:
            self._wishes = self._ask(self._early, self._counts.info(number))
            wanted = [wish for wish in self._wishes if wish.keep]
        if wanted:
            self._paid = self._captured = self._affordable(any(wish.urgent for wish in wanted))
        elif self.user_decides or self._late:
            self._captured = self._budget is None or self._budget.allows(self._counts.type, tentative=True)
        return Verdict(self._captured, bool(wanted) or not self._captured)

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
        if type is not None and type != self._counts.type:
            self._counts, self._wishes, self.user_decides = self._counts_of(type), None, True
        elif keep is not None:
            self.user_decides = True
        elif not self._captured and not self._late:
            return self._close(self._counts.passed)
        # All late policies are asked, whatever anybody else wants: one that remembers steps must see each of them.
        info = self._counts.info(self._number, metrics, nonfinite, held)
        if self._wishes is None:
            self._wishes = self._ask(self._early, info)
        return self._close(self._decide(keep, self._wishes + self._ask(self._late, info)))

    def _decide(self, keep: bool | None, wishes: list[_Wish]) -> Decision:
        passed, wanted = self._counts.passed, [wish for wish in wishes if wish.keep]
        if keep is False or (keep is None and not wanted):
            return passed
        why = "decided in the step" if keep else "; ".join(dict.fromkeys(wish.why for wish in wanted))
        if not self._captured:
            return replace(passed, why=f"{why}, but no values were held")
        if not self._paid and not self._affordable(bool(keep) or any(wish.urgent for wish in wanted)):
            return replace(passed, why=f"{why}, but the budget is used up")
        samples = dict.fromkeys(sample for wish in wishes for sample in wish.samples)
        return Decision(True, tuple(samples), why, passed.type)

    def could_not_capture(self) -> None:
        """Against the verdict no values are held, for lack of room or because of an error."""
        self._captured = False

    def pass_over(self, type: str | None) -> Decision:
        """A step in a pause: it counts, and nobody is asked."""
        self._open, self._counts = True, self._counts_of(type or "")
        return self._close(self._counts.passed)

    def abandon(self) -> None:
        """The step ended in an exception, or was left: it counts as seen and not recorded."""
        self._close(self._counts.passed)

    def withdraw(self) -> None:
        """It was no step: another one has its number."""
        self._open = False

    def _close(self, decision: Decision) -> Decision:
        if self._open:
            self._open, counts = False, self._counts
            counts.seen += 1
            counts.unrecorded += 1
            if decision.keep:
                counts.recorded, counts.last_recorded, counts.unrecorded = counts.recorded + 1, self._number, 0
        return decision

    def _affordable(self, urgent: bool) -> bool:
        return self._budget is None or self._budget.allows(self._counts.type, urgent)

    def _counts_of(self, type: str) -> Counts:
        counts = self._types.get(type)
        if counts is None:
            counts = self._types[type] = Counts(type)
        return counts

    def counts(self) -> dict[str, tuple[int, int]]:
        """Steps seen and recorded of each type."""
        return {type: (counts.seen, counts.recorded) for type, counts in self._types.items() if counts.seen}

    # ---- policies are other people's code --------------------------------------------------------

    def _ask(self, policies: tuple[Policy, ...], info: StepInfo) -> list[_Wish]:
        """What those that want anything want. All are asked: one that remembers steps must see each of them."""
        wishes = []
        for policy in policies:
            try:
                answer = policy(info)
                if answer is False:  # of most policies about most steps
                    continue
                wish = _wish_of(policy, answer, policies is self._late)
            except NotKnownYet:
                self._early = tuple(other for other in self._early if other is not policy)
                self._late += (policy,)
                continue
            except Exception as error:
                wish = self._answer_instead(policy, error, info)
            if wish.keep or wish.samples:
                wishes.append(wish)
        return wishes

    def _answer_instead(self, policy: Policy, error: Exception, info: StepInfo) -> _Wish:
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
        return _Wish(bool(self._default(info)), False, (), f"{self._default!r}, because {name} failed")

    def take_problems(self) -> list[str]:
        """What went wrong in policies since the last call; each thing is told once."""
        problems, self.problems = self.problems, []
        return problems


def _wish_of(policy: Policy, answer: Any, is_late: bool) -> _Wish:
    if not isinstance(answer, Decision):
        answer = Decision(bool(answer))
    why = (answer.why or name_of(policy)) if answer.keep else ""
    urgent = is_late or getattr(policy, "urgent", False)
    return _Wish(bool(answer.keep), urgent, tuple(int(sample) for sample in answer.samples), why)

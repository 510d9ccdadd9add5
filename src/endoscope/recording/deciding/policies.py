"""When to record: policies for `Run(when=…)`.

A policy is a function of what is known about a step (`StepInfo`) that returns True or False. It is asked when the step
begins, or when it has ended if it looks at what only the end can tell. Those below count each type of step by itself,
so a type that appears late is recorded as densely as the others were at their beginning. A step that is due but could
not be recorded, for lack of budget, stays due until one of its type is recorded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from endoscope.analysis.user_rules.anomalies import Anomaly
from endoscope.errors import BadArgument
from endoscope.recording.arguments import whole
from endoscope.recording.deciding.triggers import Trigger, on_nonfinite, on_outlier_samples, on_spike
from endoscope.recording.deciding.verdicts import Decision, NotKnownYet, Policy, StepInfo

__all__ = [
    "Decision",
    "StepInfo",
    "at",
    "decaying",
    "either",
    "every",
    "first",
    "on_nonfinite",
    "on_outlier_samples",
    "on_spike",
    "preview",
]

#: What users may pass as `when`; None is the default.
When = Policy | Anomaly | int | None

_LAST_STEP = 2**63  # later than any step


class _Rule(partial[bool]):
    """A function of what is known about a step, with the text that a reader of the recording sees."""

    text = ""
    urgent = False  # among the last to be given up when the budget is short

    def __repr__(self) -> str:
        return self.text


def _rule(text: str, says: Callable[..., bool], *settings: Any, urgent: bool = False) -> Policy:
    rule = _Rule(says, *settings)
    rule.text, rule.urgent = text, urgent
    return rule


def every(n: int) -> Policy:
    """Record every `n`-th step of each type, beginning with the first."""
    return _rule(f"every({n})", _is_multiple, whole("n", n, 1))


def _is_multiple(n: int, info: StepInfo) -> bool:
    # Due once a multiple of n lies behind the last recorded step: one that could not be recorded is made up for.
    return info.seen // n > (info.seen - info.unrecorded - 1) // n


def first(n: int) -> Policy:
    """Record the first `n` steps of each type."""
    return _rule(f"first({n})", _is_among_first, whole("n", n, 1))


def _is_among_first(n: int, info: StepInfo) -> bool:
    return info.recorded < n


def decaying(dense_steps: int = 20, *, growth: float = 1.03, max_recorded: int = 500) -> Policy:
    """Record the first `dense_steps` steps of each type, then ever fewer: each time after `growth` times as many steps.

    At most `max_recorded` steps of a type are recorded for this reason, however long training goes on.
    """
    dense, most = whole("dense_steps", dense_steps, 1), whole("max_recorded", max_recorded, 1)
    if isinstance(growth, bool) or not isinstance(growth, (int, float)) or not 1 < growth <= 1000:
        raise BadArgument(
            f"growth={growth!r} must be above 1, and at most 1000: growth=1.03 records again when 3 % more steps "
            "have been seen than at the last time. To record without end use every(n)."
        )
    text = f"decaying({dense_steps}, growth={growth!r}, max_recorded={max_recorded})"
    return _rule(text, _is_planned, _geometric(min(dense, most), growth, most))


def _is_planned(plan: list[int], info: StepInfo) -> bool:
    # Due if the plan has an entry behind the last recorded step: each entry causes at most one recording.
    return bisect_right(plan, info.seen) > bisect_left(plan, info.seen - info.unrecorded)


def _geometric(dense: int, growth: float, most: int) -> list[int]:
    """0, 1, 2, … up to `dense` of them, then growing by a factor but at least by one; at most `most` numbers."""
    plan = list(range(dense))
    exact = float(dense - 1)
    while len(plan) < most and exact < _LAST_STEP:
        exact = max(exact * growth, exact + 1)
        plan.append(int(exact))
    return plan


def at(numbers: Iterable[int]) -> Policy:
    """Record the steps with these numbers, whatever their type."""
    if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
        raise BadArgument(f"at({numbers!r}) needs a collection of step numbers: at({{0, 10, 100}}).")
    # A range is asked as it is: it may be long, and knows its members without listing them.
    meant = numbers if isinstance(numbers, range) else frozenset(whole("number", n, 0) for n in numbers)
    shown = [] if isinstance(meant, range) else [str(number) for number in sorted(meant)]
    text = repr(meant) if isinstance(meant, range) else f"{{{', '.join(shown[:5] + ['…'] * (len(shown) > 5))}}}"
    return _rule(f"at({text})", _is_one_of, meant, urgent=True)  # nothing makes up for a step that is named


def _is_one_of(numbers: Collection[int], info: StepInfo) -> bool:
    return info.number in numbers


def either(*policies: Policy | Anomaly | int) -> Policy:
    """Record a step if at least one of the policies says so."""
    if not policies:
        raise BadArgument("either() needs at least one policy: either(every(100), on_nonfinite()).")
    return _Either(tuple(policy_of(policy) for policy in policies))


class _Either:
    def __init__(self, policies: tuple[Policy, ...]) -> None:
        self.policies = policies

    def __call__(self, info: StepInfo) -> bool:
        answers = [policy(info) for policy in self.policies]  # of all: one that remembers steps must see each of them
        return any(_says_yes(answer) for answer in answers)

    def __repr__(self) -> str:
        return f"either({', '.join(map(name_of, self.policies))})"


def preview(when: When, steps: int, type_of: Callable[[int], str] | None = None) -> list[int]:
    """The numbers of the steps, of the first `steps`, that a policy would record.

    `type_of` gives the type of a step from its number. Late policies are left out: nothing happens in these steps.
    """
    policies = parts_of(policy_of(when))
    found = []
    counts: dict[str, tuple[int, int, int]] = {}  # type -> steps seen, recorded, and seen since the last recorded
    for number in range(steps):
        type = "" if type_of is None else type_of(number)
        seen, recorded, unrecorded = counts.get(type, (0, 0, 0))
        info = StepInfo(number, type, seen, recorded, None, unrecorded)
        if any(_wants(policy, info) for policy in policies):
            found.append(number)
            recorded, unrecorded = recorded + 1, -1
        counts[type] = (seen + 1, recorded, unrecorded + 1)
    return found


def _wants(policy: Policy, info: StepInfo) -> bool:
    try:
        return _says_yes(policy(info))
    except NotKnownYet:
        return False


def _says_yes(answer: Any) -> bool:
    return answer.keep if isinstance(answer, Decision) else bool(answer)


# ---- what users mean by `when` -------------------------------------------------------------------

#: What is easily passed without being called, and what to write instead.
_FACTORIES: tuple[tuple[Any, str], ...] = (
    (every, "every(100)"),
    (first, "first(10)"),
    (decaying, "decaying()"),
    (at, "at({0, 10, 100})"),
    (either, "either(every(100), on_nonfinite())"),
    (on_nonfinite, "on_nonfinite()"),
    (on_spike, "on_spike('loss')"),
    (on_outlier_samples, "on_outlier_samples('loss', 5)"),
)


def policy_of(when: Any) -> Policy:
    """The policy that a user means by `when`: a policy, a number of steps, any function; None is the default."""
    if when is None:
        return decaying()
    if isinstance(when, int) and not isinstance(when, bool):
        return every(when)
    if isinstance(when, Anomaly):
        from endoscope.recording.deciding.anomalies import OnAnomaly  # here: it needs patterns, which take long to load

        return OnAnomaly(when)
    if isinstance(when, (list, tuple, set, frozenset)):
        raise BadArgument(f"when={when!r} holds several policies. Say how they go together: either(a, b).")
    if not callable(when):
        raise BadArgument(
            f"when={when!r} does not say when to record. Use a policy such as every(100), a number of steps such as "
            "100, or a function of what is known about the step that returns True or False."
        )
    for factory, example in _FACTORIES:
        if when is factory:
            raise BadArgument(f"{factory.__name__} is no policy, it makes one. Write {example}.")
    return when  # type: ignore[no-any-return]


def parts_of(policy: Policy) -> tuple[Policy, ...]:
    """The policies that are combined in one, each without what it may remember of another run."""
    if isinstance(policy, _Either):
        return tuple(part for inner in policy.policies for part in parts_of(inner))
    return (policy.fresh() if isinstance(policy, Trigger) else policy,)


def name_of(policy: Policy) -> str:
    """The policy as a reader of the recording would like to see it."""
    text = repr(policy)
    name = getattr(policy, "__name__", type(policy).__name__ if " at 0x" in text else text)
    return "a function" if name == "<lambda>" else str(name)

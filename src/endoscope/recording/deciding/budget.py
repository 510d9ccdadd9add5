"""How much of the training time recording may take, and how far apart the recorded steps are therefore.

    step_ended(type, seconds, how)   durations of whole steps ─► what a recorded step costs more than its neighbours
    allows(type)   before a step ─► is it on the grid?      distance = cost of a recorded step ÷ what may be spent

All is arithmetic on durations that are handed in. A step is `IDLE` (not captured), `DROPPED` (captured and decided
against) or `KEPT` (recorded). What a captured step costs is its duration minus that of its idle neighbours, the median
of the last few. The processor time of the writer thread is added. What our hooks take in an idle step is measured in
one idle step of many.

What may be spent is `fraction` of the training time, and an opening credit on top. The distance is the smallest that
will not have used up more by the time the run is twice as long as it is now. It is a power of two, and the steps of a
type that it divides are recorded, so that several processes record the same ones. It is never more than a tenth of the
steps so far: where that is more than may be spent, a step is recorded with less in it (`detail`).

The very first recorded step loads kernels: it is reported as start-up and not charged.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from statistics import median
from typing import Any

from endoscope.errors import BadArgument

IDLE, DROPPED, KEPT = "idle", "dropped", "kept"

# That may be spent beyond the share. Without it the first steps, at which people look first, would hardly be recorded:
# no time has passed yet that they could take a share of. In a run of a few seconds it is most of what is spent.
CREDIT_SECONDS = 0.5
HORIZON_STEPS = 256  # what may be spent is looked at for so many steps ahead at least
MOST_DISTANT = 10  # recorded steps of a type are never further apart than this share of its steps: one tenth
SAMPLE_EVERY = 61  # idle steps: in one of so many our hooks look at the clock
_SPENDABLE = 0.8  # of the share; the rest is for what was not expected
_REMEMBERED = 15  # durations of each kind
_PACE_STEPS = 128
_IDLE_WITHIN = 32  # steps: so often one is left idle, or nobody would know what the others cost
_HOOKS_UNSEEN = 1.5  # what hooks cost, calls and caches included ÷ what passes inside of them
_NEVER = 1 << 40  # a distance


class _Steps:
    """The steps of one type: how many there were, and how long the last ones took."""

    def __init__(self) -> None:
        self.seen = 0
        self.last_kept = self.last_idle = -1
        self.plain = 0.0  # seconds of an idle step, or the best guess
        self.costs: dict[str, float] = {}  # by kind: what it adds
        self._recent: dict[str, deque[float]] = {kind: deque(maxlen=_REMEMBERED) for kind in (IDLE, DROPPED, KEPT)}

    @property
    def idle(self) -> deque[float]:
        return self._recent[IDLE]

    @property
    def most(self) -> int:
        """The largest distance between recorded ones; a power of two, too: it lies on the grid of all processes."""
        return 1 << (self.seen // MOST_DISTANT + 1).bit_length() - 1

    def add(self, kind: str, seconds: float, own: float) -> float:
        """Returns what the step has cost more than an idle one; `own` is what our own clock says."""
        cost = 0.0
        if kind == IDLE:
            self.last_idle = self.seen
            self.idle.append(seconds)
            self.plain = median(self.idle)
        else:
            self.last_kept = self.seen if kind == KEPT else self.last_kept
            cost = max(seconds - self.plain, own) if self.idle else own
            self.plain = self.plain if self.idle else max(seconds - own, 0.0)
            self._recent[kind].append(cost)
            self.costs[kind] = median(self._recent[kind])
        self.seen += 1
        return cost

    def forget_start_up(self, cost: float) -> None:
        """The first recorded step of a run says little: the next ones will be cheaper."""
        self._recent[KEPT].clear()
        self.costs[KEPT] = min(cost, 2 * self.plain)


class Budget:
    """Keeps what recording adds below `fraction` of the training time. For one thread: the one that trains."""

    def __init__(self, fraction: float) -> None:
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
            raise BadArgument(
                f"budget={fraction!r} must be a share of the training time, above 0 and at most 1: budget=0.05 for 5 %."
            )
        self.fraction = float(fraction)
        self.steps = 0
        self.trained_seconds = 0.0  # without us
        self.spent_seconds = 0.0  # by recorded and dropped steps and the writer, without start-up
        self.start_up_seconds = 0.0
        self.hook_seconds = 0.0  # of an idle step
        self.detail = 0  # 0: everything, 1: no raw values, 2: no samples and units either
        self.refused: Counter[str] = Counter()  # type -> steps that should have been recorded
        self.unwatched = 0  # steps whose values were not even held for a late decision
        self._types: dict[str, _Steps] = {}
        self._hooks: deque[float] = deque(maxlen=_REMEMBERED)
        self._written = 0.0  # seconds of the writer that are accounted for
        self._idle_steps = 0
        self._pace = 0.0  # seconds of a step, nowadays

    # ---- what happened ---------------------------------------------------------------------------

    def step_ended(self, type: str, seconds: float, kind: str, own: float = 0.0, writer: float = 0.0) -> None:
        """A step took so long, `own` of it in our own code; `writer` is what the writer thread has taken in all."""
        steps = self._steps_of(type)
        is_first = kind == KEPT and not self._cost_of_any()
        cost = steps.add(kind, seconds, own)
        written, self._written = writer - self._written, writer
        self.steps += 1
        self._idle_steps += kind == IDLE
        plain = max(seconds - cost, 0.0)
        self.trained_seconds += plain
        self._pace += (plain - self._pace) / min(self.steps, _PACE_STEPS)
        if is_first:
            self.start_up_seconds += cost + written
            steps.forget_start_up(cost)
        else:
            self.spent_seconds += cost + written
            if kind == KEPT:
                steps.costs[KEPT] += written

    def hooks_took(self, seconds: float) -> None:
        """In an idle step, inside of our hooks."""
        self._hooks.append(_HOOKS_UNSEEN * seconds)
        self.hook_seconds = median(self._hooks)

    @property
    def wants_hooks_timed(self) -> bool:
        return self._idle_steps % SAMPLE_EVERY == 5

    # ---- what may happen -------------------------------------------------------------------------

    def allows(self, type: str = "", urgent: bool = False, *, tentative: bool = False) -> bool:
        """Whether a step may be recorded or, `tentative`, captured until it is decided. A refusal is counted."""
        steps = self._steps_of(type)
        if tentative:
            allowed = self._is_on_grid(steps, steps.costs.get(DROPPED, 0.0) + 0.1 * self._cost(steps))
            self.unwatched += not allowed
            return allowed
        if self._is_affordable(steps, urgent):
            self.detail = 0
        elif steps.last_kept < 0 or steps.seen % steps.most == 0:
            self.detail = 0 if self._balance() > 0 else min(self.detail + 1, 2)
        else:
            self.refused[type] += 1
            return False
        return True

    def _is_affordable(self, steps: _Steps, urgent: bool) -> bool:
        if urgent:
            return self._balance() > self._cost(steps) or not steps.costs
        if steps.seen - steps.last_idle > _IDLE_WITHIN and len(steps.idle) < _REMEMBERED:
            return False
        return self._is_on_grid(steps, self._cost(steps))

    def _is_on_grid(self, steps: _Steps, cost: float) -> bool:
        """Of the smallest distance at which so costly steps keep within what may be spent in the next steps."""
        ahead = max(self.steps, HORIZON_STEPS)
        rest = self._balance() + ahead * (_SPENDABLE * self.fraction * self._pace - self.hook_seconds)
        if cost <= 0.0:
            distance = 1
        else:
            distance = _power_above(cost * ahead / rest) if rest > 0.0 else _NEVER
        return steps.seen % distance == 0

    def _balance(self) -> float:
        """What may be spent now."""
        share = _SPENDABLE * self.fraction * self.trained_seconds
        return share + CREDIT_SECONDS - self.spent_seconds - self._hooks_in_all

    def _cost(self, steps: _Steps) -> float:
        """Of a recorded step; a type that was never recorded is taken to be as costly as any."""
        known = steps.costs.get(KEPT)
        return self._cost_of_any() if known is None else known

    def _cost_of_any(self) -> float:
        return max((steps.costs.get(KEPT, 0.0) for steps in self._types.values()), default=0.0)

    def _steps_of(self, type: str) -> _Steps:
        steps = self._types.get(type)
        if steps is None:
            steps = self._types[type] = _Steps()
        return steps

    # ---- what to tell ----------------------------------------------------------------------------

    @property
    def _hooks_in_all(self) -> float:
        return self.hook_seconds * self._idle_steps

    @property
    def share(self) -> float:
        """Of the training time that recording has taken so far, hooks included."""
        return (self.spent_seconds + self._hooks_in_all) / self.trained_seconds if self.trained_seconds else 0.0

    @property
    def hooks_alone_break_it(self) -> bool:
        return len(self._hooks) >= 3 and self.hook_seconds > self.fraction * self._pace

    def report(self) -> dict[str, Any]:
        """What recording cost so far, and what it had to leave out."""
        return {
            "fraction": self.fraction,
            "share": self.share,
            "spent_seconds": self.spent_seconds,
            "hook_seconds": self._hooks_in_all,
            "start_up_seconds": self.start_up_seconds,
            "trained_seconds": self.trained_seconds,
            "steps": self.steps,
            "refused": dict(self.refused),
            "unwatched": self.unwatched,
            "expected_seconds": {type: s.costs[KEPT] for type, s in self._types.items() if KEPT in s.costs},
        }


def _power_above(number: float) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(math.ceil(number) - 1, 0).bit_length()

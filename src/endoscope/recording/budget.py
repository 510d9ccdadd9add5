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

from collections import Counter, deque
from statistics import median
from typing import Any

from endoscope.errors import BadArgument

# How important a recording is. The less important leave more for what may come.
ROUTINE = 0  # one step of many
RARE = 1  # a type of step that was hardly recorded so far
URGENT = 2  # triggers, and what the user asks for

IDLE, DROPPED, KEPT = "idle", "dropped", "kept"

CREDIT_SECONDS = 0.5  # that may be spent beyond the share
HORIZON_STEPS = 256  # what may be spent is looked at for so many steps ahead at least
MOST_DISTANT = 10  # recorded steps of a type are never further apart than this share of its steps: one tenth
SAMPLE_EVERY = 61  # idle steps: in one of so many our hooks look at the clock
_SPENDABLE = 0.8  # of the share; the rest is for what was not expected
_REMEMBERED = 15  # durations of each kind
_PACE_STEPS = 128
_IDLE_WITHIN = 32  # steps: so often one is left idle, or nobody would know what the others cost
_HOOKS_UNSEEN = 1.5  # what hooks cost, calls and caches included ÷ what passes inside of them


class Durations:
    """Of the last steps of one type."""

    def __init__(self) -> None:
        self.seen = 0
        self.last_kept = -1
        self.last_idle = -1
        self.idle: deque[float] = deque(maxlen=_REMEMBERED)
        self.captured: dict[str, deque[float]] = {kind: deque(maxlen=_REMEMBERED) for kind in (DROPPED, KEPT)}
        self.plain = 0.0  # of an idle step, or the best guess
        self.costs: dict[str, float] = {}  # by kind: what it adds

    def add(self, kind: str, seconds: float, own: float) -> float:
        """Returns what the step has cost more than an idle one; `own` is what our own clock says."""
        if kind == IDLE:
            self.last_idle = self.seen
            self.idle.append(seconds)
            self.plain = median(self.idle)
            cost = 0.0
        else:
            if kind == KEPT:
                self.last_kept = self.seen
            cost = max(seconds - self.plain, own) if self.idle else own
            self.plain = self.plain if self.idle else max(seconds - own, 0.0)
            self.captured[kind].append(cost)
            self.costs[kind] = median(self.captured[kind])
        self.seen += 1
        return cost


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
        self._types: dict[str, Durations] = {}
        self._hooks: deque[float] = deque(maxlen=_REMEMBERED)
        self._written = 0.0  # seconds of the writer that are accounted for
        self._idle_steps = 0
        self._pace = 0.0  # seconds of a step, nowadays

    # ---- what happened ---------------------------------------------------------------------------

    def step_ended(self, type: str, seconds: float, kind: str, own: float = 0.0, writer: float = 0.0) -> None:
        """A step took so long, `own` of it in our own code; `writer` is what the writer thread has taken in all."""
        durations = self._durations(type)
        is_first = kind == KEPT and not any(d.costs.get(KEPT) for d in self._types.values())
        cost = durations.add(kind, seconds, own)
        written, self._written = writer - self._written, writer
        self.steps += 1
        self._idle_steps += kind == IDLE
        plain = max(seconds - cost, 0.0)
        self.trained_seconds += plain
        self._pace += (plain - self._pace) / min(self.steps, _PACE_STEPS)
        if is_first:
            self.start_up_seconds += cost + written
            durations.captured[KEPT].clear()
            durations.costs[KEPT] = min(cost, 2 * durations.plain)  # the next ones will be cheaper
        else:
            self.spent_seconds += cost + written
            if kind == KEPT:
                durations.costs[KEPT] += written

    def hooks_took(self, seconds: float) -> None:
        """In an idle step, inside of our hooks."""
        self._hooks.append(_HOOKS_UNSEEN * seconds)
        self.hook_seconds = median(self._hooks)

    @property
    def wants_hooks_timed(self) -> bool:
        return self._idle_steps % SAMPLE_EVERY == 5

    # ---- what may happen -------------------------------------------------------------------------

    def allows(self, type: str = "", importance: int = ROUTINE, *, tentative: bool = False) -> bool:
        """Whether a step may be recorded or, `tentative`, captured until it is decided. A refusal is counted."""
        durations = self._durations(type)
        if tentative:
            allowed = self._fits(durations, durations.costs.get(DROPPED, 0.0) + 0.1 * self._cost(durations))
            self.unwatched += not allowed
            return allowed
        must = durations.last_kept < 0 or durations.seen - durations.last_kept >= self._most(durations)
        if self._is_affordable(durations, importance):
            self.detail = 0
            return True
        if must:
            self.detail = 0 if self._balance() > 0 else min(self.detail + 1, 2)
            return True
        self.refused[type] += 1
        return False

    def distance(self, type: str = "") -> int:
        """Between the next recorded steps of a type."""
        durations = self._durations(type)
        return min(self._distance_for(self._cost(durations), durations), _power_below(self._most(durations)))

    def _is_affordable(self, durations: Durations, importance: int) -> bool:
        if importance == URGENT:
            return self._balance() > self._cost(durations) or not durations.costs
        if durations.seen - durations.last_idle > _IDLE_WITHIN and len(durations.idle) < _REMEMBERED:
            return False
        return self._fits(durations, self._cost(durations))

    def _fits(self, durations: Durations, cost: float) -> bool:
        distance = self._distance_for(cost, durations)
        return bool(distance) and durations.seen % distance == 0

    def _distance_for(self, cost: float, durations: Durations) -> int:
        """The smallest distance at which so costly steps keep within what may be spent in the next steps."""
        ahead = max(self.steps, HORIZON_STEPS)
        rest = self._balance() + ahead * (_SPENDABLE * self.fraction * self._pace - self.hook_seconds)
        if cost <= 0.0:
            return 1
        if rest <= 0.0:
            return 1 << 40
        return _power_above(cost * ahead / rest)

    def _balance(self) -> float:
        """What may be spent now."""
        hooks = self.hook_seconds * self._idle_steps
        return _SPENDABLE * self.fraction * self.trained_seconds + CREDIT_SECONDS - self.spent_seconds - hooks

    def _most(self, durations: Durations) -> int:
        return durations.seen // MOST_DISTANT + 1

    def _cost(self, durations: Durations) -> float:
        """Of a recorded step; a type that was never recorded is taken to be as costly as any."""
        known = durations.costs.get(KEPT)
        return known if known is not None else max((d.costs.get(KEPT, 0.0) for d in self._types.values()), default=0.0)

    def _durations(self, type: str) -> Durations:
        found = self._types.get(type)
        if found is None:
            found = self._types[type] = Durations()
        return found

    # ---- what to tell ----------------------------------------------------------------------------

    @property
    def share(self) -> float:
        """Of the training time that recording has taken so far, hooks included."""
        spent = self.spent_seconds + self.hook_seconds * self._idle_steps
        return spent / self.trained_seconds if self.trained_seconds else 0.0

    @property
    def hooks_alone_break_it(self) -> bool:
        return len(self._hooks) >= 3 and self.hook_seconds > self.fraction * self._pace

    def report(self) -> dict[str, Any]:
        """What recording cost so far, and what it had to leave out."""
        return {
            "fraction": self.fraction,
            "share": self.share,
            "spent_seconds": self.spent_seconds,
            "hook_seconds": self.hook_seconds * self._idle_steps,
            "start_up_seconds": self.start_up_seconds,
            "trained_seconds": self.trained_seconds,
            "steps": self.steps,
            "refused": dict(self.refused),
            "unwatched": self.unwatched,
            "expected_seconds": {type: d.costs[KEPT] for type, d in self._types.items() if KEPT in d.costs},
        }


def _power_above(number: float) -> int:
    return 1 << max(0, (max(1, -int(-number // 1)) - 1).bit_length())


def _power_below(number: int) -> int:
    return 1 << (max(number, 1).bit_length() - 1)

"""How much of the training time recording may take, and whether one more step fits.

    allows(type)  before a step: may it be recorded? ─► step_ended ─► spent(seconds)    what recording it took
                                                                   ─► trained(seconds)  what the step itself took

Two accounts in seconds of our own time. The *purse* spreads recording evenly: every step pays in a share of the time it
trained, a recording takes out what it cost, and savings are capped. The *window* keeps the promise: what was spent on
the last steps, and what is expected now, must be covered by the training time of any 300 steps around them, those that
have passed as measured, those to come at the present pace. So the share holds over every 300 steps, also when training
becomes faster. Costs are known only afterwards; for wrong guesses a tenth of the income is held back. What our hooks
take in a step that is not recorded is too little to be measured in every step, so it is estimated and charged, too.

In the beginning the purse may be overdrawn, so that the first steps are recorded densely; what may be overdrawn shrinks
to nothing over the first 300 steps. The very first recording loads kernels: it is reported as start-up and not charged.
"""

from __future__ import annotations

from collections import Counter, deque
from time import perf_counter
from typing import Any

from endoscope.errors import BadArgument

# How important a recording is. The less important leave more money for what may come.
ROUTINE = 0  # one step of many
RARE = 1  # a type of step that was hardly recorded so far
URGENT = 2  # triggers, and what the user asks for

WINDOW_STEPS = 300  # over which the share holds
LOAN_STEPS = 100  # the income of so many steps may be overdrawn at the start
_PURSE_STEPS = 60  # the income of so many steps can be saved
_BLOCK_STEPS = 10  # the window is remembered in blocks
_SPENDABLE = 0.9  # of the income; the rest is for costs that were not expected
_RESERVE = (0.5, 0.25, 0.0)  # what is left in the purse, by importance, as a share of what it can hold
_WINDOW_USE = (0.9, 0.95, 1.0)  # how much of the window is used, by importance
_FASTER, _SLOWER = 0.5, 0.05  # how quickly the pace follows; it would rather be too fast, which is the careful side
_LEARNING = 0.25  # weight of the newest cost in the expected one
_HOOKS_SECONDS = 1e-4  # of our hooks, in every step
_HOOKS_SHARE = 0.2  # of the income at most: where steps are very short, hooks must not silence everything
_WORST_SURPRISE = 3.0  # a cost teaches at most so many times the expected one: a disk that stalls is no rule


class Cost:
    """What a recording of one type is expected to cost, learned from what the last ones did."""

    __slots__ = ("careful", "count", "expected", "spread")

    def __init__(self, seconds: float) -> None:
        self.count = 1
        self.expected = seconds
        self.spread = 0.0  # mean distance from what was expected
        self.careful = seconds  # what is reckoned with

    def learn(self, seconds: float) -> None:
        self.count += 1
        weight = max(_LEARNING, 1 / self.count)
        surprise = min(seconds, _WORST_SURPRISE * self.expected) - self.expected
        self.spread += weight * (abs(surprise) - self.spread)
        self.expected += weight * surprise
        self.careful = self.expected + self.spread


class Costs:
    """The same for all types."""

    def __init__(self) -> None:
        self.types: dict[str, Cost] = {}
        self.largest = 0.0

    def learn(self, type: str, seconds: float) -> None:
        cost = self.types.get(type)
        if cost is None:
            cost = self.types[type] = Cost(seconds)
            before = 0.0
        else:
            before = cost.careful
            cost.learn(seconds)
        if cost.careful >= self.largest:
            self.largest = cost.careful
        elif before == self.largest:  # it has become cheaper, so another one may be the dearest now
            self.largest = max(cost.careful for cost in self.types.values())

    def guess(self, type: str) -> float:
        """A type that was never recorded is taken to be as expensive as any."""
        cost = self.types.get(type)
        return self.largest if cost is None else cost.careful


class Budget:
    """Keeps our own time below `fraction` of the training time. For one thread: the one that trains."""

    def __init__(self, fraction: float) -> None:
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
            raise BadArgument(
                f"budget={fraction!r} must be a share of the training time, above 0 and at most 1: budget=0.05 for 5 %."
            )
        self.fraction = float(fraction)
        self._clock = perf_counter()  # when the previous step ended
        self._written = 0.0  # seconds of the writer that are accounted for
        self.steps = 0
        self.spent_seconds = 0.0  # without start-up
        self.start_up_seconds = 0.0
        self.refused: Counter[str] = Counter()  # type -> steps that should have been recorded
        self.unwatched = 0  # steps whose values were not even held for a late decision
        self._kept, self._dropped = Costs(), Costs()  # recorded steps; steps held, then decided against
        self._started: set[bool] = set()
        self._pace = 0.0  # seconds of a step, as it would be at its fastest nowadays
        self._purse = 0.0
        self._blocks: deque[tuple[float, float]] = deque(maxlen=WINDOW_STEPS // _BLOCK_STEPS - 1)  # trained, spent
        self._block_steps, self._block_trained, self._block_spent = 0, 0.0, 0.0
        self._blocks_trained = 0.0  # in all blocks that have ended
        self._window_spent, self._window_pace = 0.0, 0.0  # of the blocks: sum, and the fastest of them

    @property
    def trained_seconds(self) -> float:
        return self._blocks_trained + self._block_trained

    # ---- what happened ---------------------------------------------------------------------------

    def step_ended(self, type: str, spent: float, kept: bool, writer: float) -> None:
        """A step has just ended. We spent so long on it; `writer` is what the writer thread has taken in all."""
        now = perf_counter()
        if spent:
            written = 0.0
            if kept:  # what the writer took for the recorded step before this one
                written, self._written = writer - self._written, writer
            self.spent(spent + written, type, kept=kept)
        self.trained(now - self._clock - spent)
        self._clock = now

    def trained(self, seconds: float) -> None:
        """A step has ended, and took so long without us."""
        # Called in every step, so all in one piece.
        if seconds < 0.0:
            seconds = 0.0
        self.steps += 1
        self._block_steps += 1
        self._block_trained += seconds
        pace = self._pace
        if self.steps > _BLOCK_STEPS:
            pace += (_FASTER if seconds < pace else _SLOWER) * (seconds - pace)
        elif seconds < pace or self.steps == 1:
            pace = seconds  # the first steps warm up: only the fastest of them tells the pace
        self._pace = pace
        income = self.fraction * seconds
        hooks = _HOOKS_SHARE * income
        if hooks > _HOOKS_SECONDS:
            hooks = _HOOKS_SECONDS
        self._block_spent += hooks
        purse, capacity = self._purse + _SPENDABLE * income - hooks, self._capacity()
        self._purse = purse if purse < capacity else capacity
        if self._block_steps == _BLOCK_STEPS:
            self._end_block()

    def _end_block(self) -> None:
        self._blocks_trained += self._block_trained
        self._blocks.append((self._block_trained, self._block_spent))
        self._block_steps, self._block_trained, self._block_spent = 0, 0.0, 0.0
        self._window_spent = sum(spent for _, spent in self._blocks)
        self._window_pace = min(trained for trained, _ in self._blocks) / _BLOCK_STEPS

    def spent(self, seconds: float, type: str = "", *, kept: bool = True) -> None:
        """We took so long for a step that was recorded, or held and then decided against."""
        seconds = max(seconds, 0.0)
        if kept not in self._started:
            self._started.add(kept)
            self.start_up_seconds += seconds
            return
        self.spent_seconds += seconds
        self._block_spent += seconds
        # A debt that no window remembers is forgiven, otherwise one stalled disk would silence the rest of a run.
        floor = -self.fraction * WINDOW_STEPS * self._pace
        self._purse = max(self._purse - seconds, floor)
        (self._kept if kept else self._dropped).learn(type, seconds)

    # ---- what may happen -------------------------------------------------------------------------

    def allows(self, type: str = "", importance: int = ROUTINE, *, tentative: bool = False) -> bool:
        """Whether a step may be recorded or, `tentative`, held until it is decided. A refusal is counted."""
        # Holding is of no use if there is not enough to record the step afterwards.
        cost = self._kept.guess(type) + (self._dropped.guess(type) if tentative else 0.0)
        first = (not tentative) not in self._started
        allowed = first or (self._affords(cost, importance) and self._fits(cost, importance))
        if not allowed:
            if tentative:
                self.unwatched += 1
            else:
                self.refused[type] += 1
        return allowed

    def _affords(self, cost: float, importance: int) -> bool:
        left = max(0.0, 1 - self.steps / WINDOW_STEPS)
        overdraft = self.fraction * LOAN_STEPS * self._pace * left
        return self._purse + overdraft - cost >= _RESERVE[importance] * self._capacity()

    def _capacity(self) -> float:
        """What the purse can hold: enough for two of the most expensive recordings, so that none is out of reach."""
        saved, two = self.fraction * _PURSE_STEPS * self._pace, 2 * (self._kept.largest + self._dropped.largest)
        return saved if saved > two else two

    def _fits(self, cost: float, importance: int) -> bool:
        share, pace = self.fraction * _WINDOW_USE[importance], self._pace
        # One that fills more than a window by itself is left to the purse, which makes it rare enough.
        if cost > share * pace * WINDOW_STEPS:
            cost = 0.0
        spent, trained, ahead = cost + self._block_spent, self._block_trained, WINDOW_STEPS - self._block_steps
        # Usually all that was spent fits into any window, even if each step were as fast as the fastest.
        fastest = min(pace, self._window_pace)
        if self._blocks and spent + self._window_spent <= share * fastest * (WINDOW_STEPS - 2 * _BLOCK_STEPS):
            return True
        # Windows begin anywhere in the past. For each block: all that was spent since it began against what was
        # trained since it ended, because a window may begin inside it.
        if spent > share * (trained + pace * ahead):
            return False
        for block_trained, block_spent in reversed(self._blocks):
            spent += block_spent
            if spent > share * (trained + pace * ahead):
                return False
            trained += block_trained
            ahead -= _BLOCK_STEPS
        return True

    # ---- what to tell ----------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """What recording cost so far, and what it had to leave out."""
        return {
            "fraction": self.fraction,
            "share": self.spent_seconds / self.trained_seconds if self.trained_seconds else 0.0,
            "spent_seconds": self.spent_seconds,
            "start_up_seconds": self.start_up_seconds,
            "trained_seconds": self.trained_seconds,
            "steps": self.steps,
            "refused": dict(self.refused),
            "unwatched": self.unwatched,
            "expected_seconds": {type: cost.expected for type, cost in self._kept.types.items()},
        }

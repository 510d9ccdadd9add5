"""The budget, with simulated clocks: the share holds over every window, and important steps are the last to go."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endoscope.errors import BadArgument
from endoscope.recording import policies
from endoscope.recording.budget import LOAN_STEPS, RARE, ROUTINE, URGENT, WINDOW_STEPS, Budget, Costs
from endoscope.recording.schedule import Schedule


@dataclass
class Clocks:
    """What was really spent and trained, step by step, kept apart from the budget's own books."""

    budget: Budget
    own: list[float] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    started: set[bool] = field(default_factory=set)

    def end_step(self, training: float, *costs: tuple[str, float, bool]) -> None:
        charged = 0.0
        for type, seconds, kept in costs:
            self.budget.spent(seconds, type, kept=kept)
            charged += seconds if kept in self.started else 0.0  # the first of each kind is start-up
            self.started.add(kept)
        self.budget.trained(training)
        self.own.append(charged)
        self.training.append(training)

    def worst_share(self, window: int = WINDOW_STEPS) -> float:
        """The largest share of any window, as a multiple of what is allowed."""
        own, training = [0.0, *accumulate(self.own)], [0.0, *accumulate(self.training)]
        ends = range(window, len(own))
        shares = [(own[end] - own[end - window]) / (training[end] - training[end - window]) for end in ends]
        return max(shares) / self.budget.fraction

    def share(self) -> float:
        return sum(self.own) / sum(self.training) / self.budget.fraction


def simulate(
    fraction: float,
    steps: int,
    *,
    cost: Callable[[int], float],
    pace: Callable[[int], float] = lambda step: 1.0,
    importance: int = ROUTINE,
) -> tuple[Clocks, list[int]]:
    """A policy that wants every step; returns the clocks and which steps were allowed."""
    clocks, allowed = Clocks(Budget(fraction)), []
    for step in range(steps):
        if clocks.budget.allows("", importance):
            allowed.append(step)
            clocks.end_step(pace(step), ("", cost(step), True))
        else:
            clocks.end_step(pace(step))
    return clocks, allowed


# ---- the promise ---------------------------------------------------------------------------------


@dataclass
class Kind:
    """One type of step."""

    cost: float  # of a recording, as a part of what a window of the fastest steps allows
    holding: float  # cost of a step that is held and decided against, as a part of the other
    wanted: float  # how often a policy wants it
    triggered: float  # how often a trigger does, at the end


KINDS = st.builds(Kind, st.floats(0.001, 0.1), st.floats(0.01, 0.5), st.floats(0, 1), st.floats(0, 0.3))
PHASES = st.lists(st.tuples(st.integers(10, 600), st.floats(1, 10)), min_size=1, max_size=6)


def paces(phases: list[tuple[int, float]], noise: float, generator: random.Random) -> Iterator[float]:
    while True:
        for steps, pace in phases:
            for _ in range(steps):
                yield pace * generator.uniform(1 - noise, 1 + noise)


@given(
    fraction=st.sampled_from([0.01, 0.05, 0.1, 0.5]),
    kinds=st.lists(KINDS, min_size=1, max_size=4),
    phases=PHASES,
    noise=st.floats(0, 0.5),
    triggers=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_the_share_holds_over_every_window(
    fraction: float, kinds: list[Kind], phases: list[tuple[int, float]], noise: float, triggers: bool, seed: int
) -> None:
    """Random costs, training that changes its pace at once, several types, triggers that hold every step."""
    generator = random.Random(seed)
    clocks = Clocks(Budget(fraction))
    fastest = min(pace for _, pace in phases)
    pace = paces(phases, noise, generator)
    for _ in range(1500):
        number = generator.randrange(len(kinds))
        kind, type = kinds[number], str(number)
        recording = kind.cost * fraction * WINDOW_STEPS * fastest * generator.uniform(0.5, 1.5)
        costs = []
        if generator.random() < kind.wanted:
            if clocks.budget.allows(type, RARE if generator.random() < 0.05 else ROUTINE):
                costs = [(type, recording, True)]
        elif triggers and clocks.budget.allows(type, tentative=True):
            kept = generator.random() < kind.triggered and clocks.budget.allows(type, URGENT)
            costs = [(type, recording * (1 if kept else kind.holding), kept)]
        clocks.end_step(next(pace), *costs)
    assert clocks.worst_share() <= 1.1


@given(
    fraction=st.sampled_from([0.01, 0.05, 0.2]),
    size=st.floats(0.01, 0.3),
    pace=st.floats(1e-4, 10),
    seed=st.integers(0, 10**6),
)
def test_the_start_is_within_the_loan(fraction: float, size: float, pace: float, seed: int) -> None:
    """At any moment: no more than the share of what was trained, and the loan."""
    generator = random.Random(seed)
    cost = size * fraction * LOAN_STEPS * pace
    clocks, _ = simulate(
        fraction, 300, cost=lambda step: cost, pace=lambda step: pace * generator.uniform(1, 1.2), importance=URGENT
    )
    own, training = list(accumulate(clocks.own)), list(accumulate(clocks.training))
    slack = 2 * cost  # the first two costs were not known before
    for step in range(300):
        assert own[step] <= fraction * (training[step] + LOAN_STEPS * 1.2 * pace) + slack
    assert LOAN_STEPS <= 200


def test_training_that_becomes_ten_times_faster() -> None:
    """What was saved in slow times must not be spent in fast ones."""
    clocks, allowed = simulate(0.05, 3000, cost=lambda step: 0.5, pace=lambda step: 10.0 if step // 700 % 2 else 1.0)
    assert clocks.worst_share() <= 1.1
    assert all(any(start <= step < start + 700 for step in allowed) for start in range(0, 2800, 700))


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_a_schedule_with_triggers_keeps_the_promise(seed: int) -> None:
    generator = random.Random(seed)
    budget = Budget(0.05)
    schedule = Schedule(policies.either(policies.decaying(), 3, policies.on_spike("loss")), budget)
    clocks = Clocks(budget)
    for step in range(1500):
        type = "rare" if generator.random() < 0.02 else "usual"
        captured = schedule.begin(step, type).capture
        loss = 50.0 if generator.random() < 0.02 else generator.uniform(1, 1.2)
        kept = schedule.finish(metrics={"loss": loss}).keep
        seconds = generator.uniform(0.3, 0.6) if kept else generator.uniform(0.01, 0.03)
        clocks.end_step(generator.uniform(0.8, 1.2), *[(type, seconds, kept)] * captured)
    assert clocks.worst_share() <= 1.1
    assert clocks.share() >= 0.5  # and it is used


# ---- it is used, and evenly ----------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("cost", [0.02, 0.1, 0.5])
def test_most_of_the_budget_is_used(fraction: float, cost: float) -> None:
    clocks, _ = simulate(fraction, 3000, cost=lambda step: cost)
    assert min(0.8 * fraction, 0.95 * cost) <= clocks.share() * fraction <= fraction


def test_recordings_are_spread_evenly() -> None:
    _, allowed = simulate(0.05, 3000, cost=lambda step: 0.5)
    gaps = [after - before for before, after in pairwise(allowed) if before > 300]
    assert max(gaps) <= 2 * min(gaps)


def test_the_first_steps_are_recorded_densely() -> None:
    _, allowed = simulate(0.05, 300, cost=lambda step: 0.5)
    assert allowed[:6] == [0, 1, 2, 3, 4, 5]
    assert sum(step < 50 for step in allowed) >= 8


def test_a_recording_too_large_for_the_window_is_made_rarely_instead_of_never() -> None:
    clocks, allowed = simulate(0.01, 20_000, cost=lambda step: 10.0)
    assert len(allowed) >= 10
    assert clocks.share() <= 1.0


# ---- what goes first -----------------------------------------------------------------------------


def test_rare_types_and_triggers_are_the_last_to_go() -> None:
    generator, asked, granted = random.Random(0), Counter[int](), Counter[int]()
    clocks = Clocks(Budget(0.05))
    for step in range(5000):
        importance = RARE if step % 50 == 7 else URGENT if step % 50 == 31 else ROUTINE
        allowed = clocks.budget.allows(str(importance), importance)
        asked[importance] += 1
        granted[importance] += allowed
        clocks.end_step(1.0, *[(str(importance), generator.uniform(0.3, 0.6), True)] * allowed)
    assert granted[RARE] / asked[RARE] > 0.95
    assert granted[URGENT] / asked[URGENT] > 0.99
    assert 0.02 < granted[ROUTINE] / asked[ROUTINE] < 0.1
    assert clocks.budget.refused[str(ROUTINE)] == asked[ROUTINE] - granted[ROUTINE]


def test_holding_steps_for_triggers_leaves_something_for_the_others() -> None:
    """Holding alone would cost more than the budget; what a policy wants is still recorded."""
    clocks, recorded, fired = Clocks(Budget(0.05)), 0, Counter[bool]()
    chance = random.Random(0)  # a trigger that fires at fixed times would meet the held steps always or never
    for step in range(5000):
        costs, fires = [], chance.random() < 1 / 50
        if step % 100 < 50 and recorded * 100 <= step:  # one of a hundred is due, and stays due
            if clocks.budget.allows("a"):
                costs, recorded = [("a", 0.5, True)], recorded + 1
        elif clocks.budget.allows("a", tentative=True):
            kept = fires and clocks.budget.allows("a", URGENT)
            fired[kept] += fires
            costs = [("a", 0.5 if kept else 0.1, kept)]
        clocks.end_step(1.0, *costs)
    assert recorded >= 45
    assert fired[True] >= 15 and fired[False] == 0  # whatever was held could be recorded
    assert clocks.budget.unwatched > 1000
    assert clocks.worst_share() <= 1.1


def test_steps_are_not_held_without_limit_while_no_trigger_has_fired() -> None:
    clocks = Clocks(Budget(0.05))
    for _ in range(2000):
        allowed = clocks.budget.allows("a", tentative=True)
        clocks.end_step(1.0, *[("a", 0.2, False)] * allowed)
    assert clocks.worst_share() <= 1.1
    assert clocks.budget.unwatched > 1000


# ---- what it learns ------------------------------------------------------------------------------


def test_costs_are_learned_for_each_type() -> None:
    costs = Costs()
    assert costs.guess("a") == 0.0
    for _ in range(20):
        costs.learn("a", 1.0)
        costs.learn("b", 5.0)
    assert costs.guess("a") == pytest.approx(1.0)
    assert costs.guess("b") == pytest.approx(5.0)
    assert costs.guess("new") == costs.largest == costs.guess("b")  # as expensive as any
    for _ in range(50):
        costs.learn("b", 0.5)
    assert costs.guess("b") == pytest.approx(0.5, rel=0.01)
    assert costs.guess("new") == costs.largest == costs.guess("a")


def test_guesses_are_careful_where_costs_vary() -> None:
    costs, generator = Costs(), random.Random(0)
    for _ in range(200):
        costs.learn("a", generator.uniform(0.0, 2.0))
    assert costs.types["a"].expected < costs.guess("a") < 2.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100)), max_size=60))
def test_the_dearest_type_is_known(learned: list[tuple[str, float]]) -> None:
    costs = Costs()
    for type, seconds in learned:
        costs.learn(type, seconds)
        assert costs.largest == max(cost.careful for cost in costs.types.values())


def test_a_disk_that_stalls_once_does_not_silence_the_run() -> None:
    _, allowed = simulate(0.05, 3000, cost=Stall(1000, 500.0))
    stalled = next(step for step in allowed if step >= 1000)
    after = [step for step in allowed if step > stalled]
    assert WINDOW_STEPS / 2 <= after[0] - stalled <= 3 * WINDOW_STEPS
    assert len([step for step in after if step >= 2500]) >= 30


class Stall:
    """Half a step for each recording, but very long for the first one from a certain step on."""

    def __init__(self, begin: int, seconds: float) -> None:
        self.begin = begin
        self.seconds = seconds

    def __call__(self, step: int) -> float:
        if step < self.begin:
            return 0.5
        seconds, self.seconds = self.seconds, 0.5
        return seconds


def test_slow_first_steps_and_a_slow_first_recording_spoil_nothing() -> None:
    """The first step of a model takes long, and the first recording loads kernels."""
    clocks, allowed = simulate(
        0.05, 600, cost=lambda step: 100.0 if step == 0 else 0.5, pace=lambda step: 100.0 if step == 0 else 1.0
    )
    assert clocks.budget.start_up_seconds == 100.0
    assert sum(step < 50 for step in allowed) >= 8
    clocks.training[0] = 1.0
    assert clocks.worst_share() <= 1.1


# ---- what it says --------------------------------------------------------------------------------


def test_the_report() -> None:
    budget = Budget(0.05)
    for step in range(20):
        if budget.allows("a"):
            budget.spent(2.0 if step == 0 else 1.0, "a")
        budget.trained(10.0)
    report = budget.report()
    recorded = 20 - report["refused"].get("a", 0)
    assert report == {
        "fraction": 0.05,
        "share": pytest.approx((recorded - 1) / 200),
        "spent_seconds": pytest.approx(recorded - 1.0),
        "start_up_seconds": 2.0,
        "trained_seconds": pytest.approx(200.0),
        "steps": 20,
        "refused": report["refused"],
        "unwatched": 0,
        "expected_seconds": {"a": pytest.approx(1.0)},
    }


def test_the_report_of_nothing() -> None:
    report = Budget(0.05).report()
    assert report["share"] == 0.0 and report["steps"] == 0


@pytest.mark.parametrize("fraction", [0, -0.1, 5, 1.01, True, "5%", None, float("nan")])
def test_a_budget_is_a_share(fraction: Any) -> None:
    with pytest.raises(BadArgument, match=r"must be a share of the training time.*budget=0\.05 for 5 %"):
        Budget(fraction)


def test_clocks_that_run_backwards_do_no_harm() -> None:
    budget = Budget(0.05)
    for _ in range(50):
        budget.allows("a")
        budget.spent(-1.0, "a")
        budget.trained(-1.0)
    assert budget.spent_seconds == budget.trained_seconds == 0.0

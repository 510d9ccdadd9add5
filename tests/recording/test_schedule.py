"""The schedule: counts for each type, late decisions, policies that fail, and what the budget has to say."""

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.recording.deciding import policies
from endoscope.recording.deciding.budget import Budget
from endoscope.recording.deciding.schedule import Schedule, Verdict
from endoscope.recording.deciding.verdicts import Decision, StepInfo

LET_GO, RECORD, HOLD = Verdict(False, True), Verdict(True, True), Verdict(True, False)


def run(schedule: Schedule, types: list[str], **finish: Any) -> list[int]:
    """Steps of these types; which are recorded."""
    recorded = []
    for number, type in enumerate(types):
        schedule.begin(number, type)
        if schedule.finish(**finish).keep:
            recorded.append(number)
    return recorded


# ---- early decisions -----------------------------------------------------------------------------


def test_a_step_is_recorded_or_let_go() -> None:
    schedule = Schedule(policies.at({1}))
    assert schedule.begin(0) == LET_GO
    assert schedule.finish() == Decision(False)
    assert schedule.begin(1) == RECORD
    assert schedule.finish() == Decision(True, why="at({1})")
    assert schedule.counts() == {"": (2, 1)}


def test_when_may_be_a_number_or_nothing() -> None:
    assert run(Schedule(3), [""] * 8) == [0, 3, 6]
    assert run(Schedule(), [""] * 5) == [0, 1, 2, 3, 4]


def test_a_rare_type_is_recorded_although_recording_has_become_rare() -> None:
    types = ["usual"] * 5000
    types[4000] = types[4500] = types[4999] = "rare"
    recorded = run(Schedule(), types)
    assert {4000, 4500, 4999} <= set(recorded)
    assert len([number for number in recorded if number >= 3900]) < 15


def test_policies_are_told_what_is_known() -> None:
    told = []

    def spy(info: StepInfo) -> bool:
        told.append((info.number, info.type, info.seen, info.recorded, info.last_recorded, info.unrecorded))
        return info.number in {10, 12}

    schedule = Schedule(spy)
    for number, type in [(10, "a"), (11, "a"), (12, "b"), (13, "a"), (14, None)]:
        schedule.begin(number, type)
        schedule.finish()
    assert told == [
        (10, "a", 0, 0, None, 0),
        (11, "a", 1, 1, 10, 0),
        (12, "b", 0, 0, None, 0),
        (13, "a", 2, 1, 10, 1),
        (14, "", 0, 0, None, 0),
    ]


def test_an_early_policy_may_return_a_decision() -> None:
    schedule = Schedule(lambda info: Decision(True, samples=(3, 1), why="because"))
    assert schedule.begin(0) == RECORD
    assert schedule.finish() == Decision(True, (3, 1), "because")


def test_all_reasons_are_given() -> None:
    schedule = Schedule(policies.either(1, policies.first(5), policies.every(1)))
    schedule.begin(0)
    assert schedule.finish().why == "every(1); first(5)"


# ---- late decisions ------------------------------------------------------------------------------


def test_late_policies_hold_every_step_until_its_end() -> None:
    schedule = Schedule(policies.either(100, policies.on_spike("loss")))
    verdicts, recorded = [], []
    for number in range(60):
        verdicts.append(schedule.begin(number))
        decision = schedule.finish(metrics={"loss": 9.0 if number == 50 else 1.0})
        recorded += [(number, decision.why)] * decision.keep
    assert verdicts == [RECORD] + [HOLD] * 59
    assert recorded == [(0, "every(100)"), (50, "spike: loss 9, usually 1")]


def test_triggers_learn_from_steps_that_another_policy_records() -> None:
    schedule = Schedule(policies.either(1, policies.on_spike("loss")))
    for number in range(30):
        schedule.begin(number)
        schedule.finish(metrics={"loss": 1.0})
    schedule.begin(30)
    assert schedule.finish(metrics={"loss": 9.0}).why == "every(1); spike: loss 9, usually 1"


def test_the_worst_samples_are_kept_whatever_the_reason() -> None:
    schedule = Schedule(policies.either(1, policies.on_outlier_samples("loss", 2)))
    schedule.begin(0)
    assert schedule.finish(metrics={"loss": [0.1, 0.3, 0.2]}) == Decision(True, (1, 2), "every(1)")


def test_whether_values_are_finite_is_only_looked_up_for_those_who_ask() -> None:
    def expensive() -> bool:
        raise AssertionError("looked through all values for nobody")

    schedule = Schedule(policies.either(1, policies.on_spike("loss")))
    schedule.begin(0)
    assert schedule.finish(nonfinite=expensive).keep
    schedule = Schedule(policies.on_nonfinite())
    schedule.begin(0)
    assert schedule.finish(nonfinite=lambda: True).why == "NaN or infinity in recorded tensors"


def test_a_function_that_looks_at_metrics_is_asked_at_the_end() -> None:
    schedule = Schedule(lambda info: info.seen < 2 or info.metrics["loss"] > 3)
    losses = [0, 0, 0, 4, 0, 5]
    verdicts, recorded = [], []
    for number, loss in enumerate(losses):
        verdicts.append(schedule.begin(number))
        recorded += [number] * schedule.finish(metrics={"loss": loss}).keep
    assert verdicts == [RECORD, RECORD, HOLD, HOLD, HOLD, HOLD]
    assert recorded == [0, 1, 3, 5]
    assert schedule.take_problems() == []


def test_two_runs_do_not_share_what_a_trigger_has_seen() -> None:
    policy = policies.on_spike("loss")
    for _ in range(2):
        schedule = Schedule(policy)
        recorded = []
        for number in range(10):
            schedule.begin(number)
            recorded += [number] * schedule.finish(metrics={"loss": 1.0 + 100 * (number == 9)}).keep
        assert recorded == []  # still warming up, both times


# ---- what the user decides -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", [policies.every(1), policies.on_nonfinite()])
def test_keep_overrides_every_policy(policy: Any) -> None:
    schedule = Schedule(policy)
    assert schedule.begin(0).capture
    assert schedule.finish(keep=True, nonfinite=True) == Decision(True, why="decided in the step")
    assert schedule.begin(1).capture
    assert schedule.finish(keep=False, nonfinite=True) == Decision(False)
    assert schedule.counts() == {"": (2, 1)}


def test_after_the_first_late_decision_every_step_is_held() -> None:
    schedule = Schedule(policies.at({7}))
    assert schedule.begin(0) == LET_GO
    assert schedule.finish(keep=True) == Decision(False, why="decided in the step, but no values were held")
    assert schedule.begin(1) == HOLD
    assert schedule.finish(keep=True).keep
    assert schedule.begin(2) == HOLD
    assert not schedule.finish().keep
    assert schedule.begin(7) == HOLD
    assert schedule.finish() == Decision(True, why="at({7})")


def test_a_late_decision_may_be_announced() -> None:
    schedule = Schedule(policies.at({7}))
    schedule.user_decides = True
    assert schedule.begin(0) == HOLD


def test_a_step_counts_under_the_type_that_it_gets_late() -> None:
    schedule = Schedule(policies.every(3))
    whole = []
    for number in range(12):
        schedule.begin(number)
        decision = schedule.finish(type="odd" if number % 2 else "even")
        whole += [(number, decision.type)] * decision.keep
    assert whole == [(0, "even"), (1, "odd"), (6, "even"), (7, "odd")]
    assert schedule.counts() == {"even": (6, 2), "odd": (6, 2)}


def test_a_step_that_was_due_under_its_first_type_stays_due_there() -> None:
    schedule = Schedule(policies.every(10))
    run(schedule, ["b"])
    assert schedule.begin(1, "a") == RECORD
    assert not schedule.finish(type="b").keep  # one of b was recorded just before
    assert schedule.begin(2, "a").capture
    assert schedule.finish().keep


def test_the_same_type_said_again_is_no_late_decision() -> None:
    schedule = Schedule(policies.at(()))
    schedule.begin(0, "a")
    schedule.finish(type="a")
    assert schedule.begin(1, "a") == LET_GO


@dataclass
class Step:
    type: str
    late_type: str | None
    keep: bool | None


@given(
    steps=st.lists(
        st.builds(
            Step, st.sampled_from("ab"), st.sampled_from(["a", "b", "c", None]), st.sampled_from([True, False, None])
        ),
        max_size=60,
    ),
    n=st.integers(1, 5),
)
def test_any_mixture_of_types_and_late_decisions(steps: list[Step], n: int) -> None:
    """The slow twin recounts the whole history for each step."""
    schedule = Schedule(policies.every(n))
    history: list[tuple[str, bool]] = []
    user_decides = False
    for number, step in enumerate(steps):
        captured = schedule.begin(number, step.type).capture
        decision = schedule.finish(type=step.late_type, keep=step.keep)
        type = step.late_type or step.type

        def due(type: str) -> bool:
            of_type = [kept for other, kept in history if other == type]
            since = len(of_type) - of_type[::-1].index(True) if True in of_type else 0
            return any(count % n == 0 for count in range(since, len(of_type) + 1))

        assert captured == (user_decides or due(step.type))
        wanted = due(type) if step.keep is None else step.keep
        assert decision.keep == (wanted and captured)
        assert decision.type == type
        user_decides = user_decides or step.keep is not None or type != step.type
        history.append((type, decision.keep))
    for type, (seen, recorded) in schedule.counts().items():
        assert (seen, recorded) == (len([1 for t, _ in history if t == type]), history.count((type, True)))


# ---- steps that go wrong -------------------------------------------------------------------------


def test_a_step_that_is_never_finished_counts_as_seen() -> None:
    schedule = Schedule(policies.first(2))
    assert schedule.begin(0) == RECORD
    assert schedule.begin(1) == RECORD
    schedule.abandon()
    schedule.abandon()
    assert schedule.counts() == {"": (2, 0)}
    assert run(schedule, [""] * 5) == [0, 1]
    assert schedule.counts() == {"": (7, 2)}


def test_a_step_for_which_there_was_no_room_is_not_counted_as_recorded() -> None:
    schedule = Schedule(policies.every(10))
    assert schedule.begin(0) == RECORD
    schedule.could_not_capture()
    assert schedule.finish() == Decision(False)
    assert schedule.begin(1) == RECORD


def test_to_finish_twice_counts_once() -> None:
    schedule = Schedule(1)
    schedule.begin(0)
    schedule.finish()
    schedule.finish()
    assert schedule.counts() == {"": (1, 1)}


# ---- policies that fail --------------------------------------------------------------------------


def test_a_policy_that_raises_is_told_once_and_replaced_by_the_default() -> None:
    def broken(info: StepInfo) -> bool:
        raise KeyError("loss")

    schedule = Schedule(broken)
    assert run(schedule, [""] * 3000) == policies.preview(None, 3000)
    (problem,) = schedule.take_problems()
    assert problem.startswith("The policy broken raised KeyError: 'loss' (")
    assert "test_schedule.py:" in problem
    assert problem.endswith(
        " at step 0. Where it fails, decaying(20, growth=1.03, max_recorded=500) decides in its place."
    )
    assert schedule.take_problems() == []
    schedule.begin(5000, "new")
    assert schedule.finish().why == "decaying(20, growth=1.03, max_recorded=500), because broken failed"


def test_the_other_policies_are_still_asked() -> None:
    def broken(info: StepInfo) -> bool:
        raise ValueError("no")

    recorded = run(Schedule(policies.either(broken, policies.at({1234}))), [""] * 1500)
    assert 1234 in recorded


def test_a_policy_is_asked_again_after_it_failed() -> None:
    schedule = Schedule(lambda info: 10 // (info.number - 30) > 0)  # type: ignore[arg-type, return-value]
    recorded = run(schedule, [""] * 50)
    assert recorded == [30, *range(31, 41)]
    assert len(schedule.take_problems()) == 1


class NotATruth:
    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def test_an_answer_that_is_neither_true_nor_false() -> None:
    schedule = Schedule(lambda info: NotATruth())  # type: ignore[arg-type, return-value]
    assert run(schedule, [""] * 3) == [0, 1, 2]
    assert "ambiguous" in schedule.take_problems()[0]
    assert run(Schedule(lambda info: None), [""] * 3) == []  # type: ignore[arg-type, return-value]


def test_a_late_policy_that_raises_is_replaced_too() -> None:
    schedule = Schedule(lambda info: info.metrics["lost"] > 1)
    assert run(schedule, [""] * 30, metrics={"loss": 2.0}) == policies.preview(None, 30)
    assert "KeyError: 'lost'" in schedule.take_problems()[0]


def test_a_trigger_without_its_metric_is_reported() -> None:
    schedule = Schedule(policies.either(50, policies.on_spike("los")))
    run(schedule, [""] * 300, metrics={"loss": 1.0})
    (problem,) = schedule.take_problems()
    assert "none of the first 100 steps had a metric 'los'; there were: 'loss'" in problem


def test_endless_new_errors_are_not_kept_endlessly() -> None:
    def inventive(info: StepInfo) -> bool:
        raise type(f"Error{info.number}", (Exception,), {})("again")

    schedule = Schedule(inventive)
    run(schedule, [""] * 200)
    assert len(schedule.take_problems()) == 20


def test_an_error_does_not_keep_tensors_alive() -> None:
    class Tensor:
        pass

    alive = []

    def broken(info: StepInfo) -> bool:
        tensor = Tensor()
        alive.append(weakref.ref(tensor))
        raise ValueError(tensor)

    schedule = Schedule(broken)
    run(schedule, [""])
    gc.collect()
    assert alive[0]() is None
    assert schedule.take_problems()


def test_an_interrupt_is_not_a_failure_of_a_policy() -> None:
    def interrupted(info: StepInfo) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Schedule(interrupted).begin(0)


# ---- the budget ----------------------------------------------------------------------------------


class Purse(Budget):
    """Answers as told, and remembers what it was asked."""

    def __init__(self, *answers: bool) -> None:
        super().__init__(0.5)
        self.answers = list(answers)
        self.asked: list[tuple[str, bool, bool]] = []

    def allows(self, type: str = "", urgent: bool = False, *, tentative: bool = False) -> bool:
        self.asked.append((type, urgent, tentative))
        return self.answers.pop(0)


def test_a_step_that_the_budget_refuses_stays_due() -> None:
    schedule = Schedule(policies.every(10), Purse(False, False, True))
    verdicts = []
    for number in range(4):
        verdicts.append(schedule.begin(number))
        schedule.finish()
    assert verdicts == [LET_GO, LET_GO, RECORD, LET_GO]
    assert schedule.counts() == {"": (4, 1)}


def test_nothing_is_asked_for_steps_that_nobody_wants() -> None:
    budget = Purse()
    assert run(Schedule(policies.at(()), budget), [""] * 10) == []
    assert budget.asked == []


def test_what_is_asked_for_by_number_is_urgent() -> None:
    budget = Purse(True, True)
    run(Schedule(policies.every(1), budget), ["a"])
    run(Schedule(policies.at({0}), budget), ["a"])
    assert budget.asked == [("a", False, False), ("a", True, False)]


def test_a_trigger_pays_for_holding_and_then_for_recording() -> None:
    budget = Purse(True, True, True, False)
    schedule = Schedule(policies.on_nonfinite(), budget)
    schedule.begin(0)
    assert schedule.finish(nonfinite=True).keep
    schedule.begin(1)
    assert schedule.finish(nonfinite=True) == Decision(
        False, why="NaN or infinity in recorded tensors, but the budget is used up"
    )
    assert budget.asked == [("", False, True), ("", True, False)] * 2


def test_a_trigger_learns_from_steps_that_could_not_be_held() -> None:
    schedule = Schedule(policies.on_spike("loss"), Purse(*[False] * 25, True, True))
    for number in range(25):
        assert schedule.begin(number) == LET_GO
        schedule.finish(metrics={"loss": 1.0})
    schedule.begin(25)
    assert schedule.finish(metrics={"loss": 9.0}).keep


def test_what_the_user_decides_is_urgent_and_paid_under_the_late_type() -> None:
    budget = Purse(True, True)
    schedule = Schedule(policies.at(()), budget)
    schedule.user_decides = True
    schedule.begin(0, "a")
    assert schedule.finish(type="b", keep=True).keep
    assert budget.asked == [("a", False, True), ("b", True, False)]


def test_a_step_is_paid_once() -> None:
    budget = Purse(True)
    schedule = Schedule(policies.every(1), budget)
    schedule.begin(0)
    assert schedule.finish(keep=True).keep
    assert len(budget.asked) == 1

"""Policies: which steps they pick, counted for each type, and what they say to odd arguments."""

import functools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import endoscope
from endoscope.errors import BadArgument
from endoscope.recording.deciding import policies as ours
from endoscope.recording.deciding.policies import name_of, parts_of, policy_of
from endoscope.recording.deciding.verdicts import NotKnownYet, Policy, StepInfo
from tests.house.pages import headings
from tests.house.tree import ROOT, run_python

policies = endoscope.policies


def refused_at_random(policy: Policy, steps: int, refusals: list[bool]) -> list[int]:
    """Which steps are recorded if some that the policy wants cannot be."""
    recorded: list[int] = []
    for seen in range(steps):
        unrecorded = seen - recorded[-1] - 1 if recorded else seen
        info = StepInfo(seen, "", seen, len(recorded), recorded[-1] if recorded else None, unrecorded)
        if policy(info) and not refusals[seen % len(refusals)]:
            recorded.append(seen)
    return recorded


# ---- which steps ---------------------------------------------------------------------------------


def test_every() -> None:
    assert policies.preview(policies.every(100), 350) == [0, 100, 200, 300]
    assert policies.preview(policies.every(1), 3) == [0, 1, 2]


def test_every_counts_each_type_by_itself() -> None:
    picked = policies.preview(policies.every(10), 40, lambda number: "odd" if number % 2 else "even")
    assert picked == [0, 1, 20, 21]


def test_first() -> None:
    assert policies.preview(policies.first(3), 100) == [0, 1, 2]
    assert policies.preview(policies.first(2), 100, lambda number: "rare" if number > 90 else "") == [0, 1, 91, 92]


def test_at_goes_by_number() -> None:
    assert policies.preview(policies.at({3, 5, 1000}), 10) == [3, 5]
    assert policies.preview(policies.at(range(0, 10**12, 4)), 10) == [0, 4, 8]
    assert policies.preview(policies.at(np.array([2, 3])), 10) == [2, 3]
    assert policies.preview(policies.at({3, 4}), 10, lambda number: str(number)) == [3, 4]


def test_either_is_the_union() -> None:
    both = policies.either(policies.every(4), policies.at({5, 6}))
    assert policies.preview(both, 10) == [0, 4, 5, 6, 8]


def test_either_takes_what_when_takes() -> None:
    assert policies.preview(policies.either(5, lambda info: info.number == 7), 12) == [0, 5, 7, 10]


def test_decaying_is_dense_at_first_and_thins_out() -> None:
    picked = policies.preview(policies.decaying(5, growth=2, max_recorded=100), 1000)
    assert picked == [0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512]


def test_decaying_with_a_growth_near_one_still_moves_on() -> None:
    assert policies.preview(policies.decaying(1, growth=1.0001, max_recorded=6), 100) == [0, 1, 2, 3, 4, 5]


def test_the_default_is_dense_for_every_new_type() -> None:
    picked = policies.preview(None, 3000, lambda number: "rare" if number in {2500, 2600, 2700} else "usual")
    assert picked[:20] == list(range(20))
    assert {2500, 2600, 2700} <= set(picked)
    assert len([number for number in picked if number >= 2400]) < 20


def test_the_default_over_a_long_run() -> None:
    """What the page about policies promises."""
    picked = policies.preview(None, 100_000)
    assert [sum(due < steps for due in picked) for steps in (100, 1000, 10_000, 100_000)] == [71, 149, 227, 305]


@given(
    dense=st.integers(1, 30),
    growth=st.floats(1.001, 5),
    most=st.integers(1, 60),
    refusals=st.lists(st.booleans(), min_size=1, max_size=20),
)
def test_decaying_is_bounded_in_total(dense: int, growth: float, most: int, refusals: list[bool]) -> None:
    policy = policies.decaying(dense, growth=growth, max_recorded=most)
    recorded = refused_at_random(policy, 2000, refusals)
    assert len(recorded) <= most
    far = StepInfo(2**80, "", seen=2**80, recorded=most, unrecorded=0)
    assert not policy(far)  # all entries of the plan lie behind


@given(dense=st.integers(1, 30), growth=st.floats(1.01, 3), steps=st.integers(1, 3000))
def test_decaying_thins_out_by_its_factor(dense: int, growth: float, steps: int) -> None:
    picked = policies.preview(policies.decaying(dense, growth=growth, max_recorded=10**4), steps)
    assert picked[:dense] == list(range(min(dense, steps)))
    for before, after in zip(picked[dense:], picked[dense + 1 :], strict=False):
        assert abs(after - max(before * growth, before + 1)) <= growth + 1


@given(n=st.integers(1, 20), refusals=st.lists(st.booleans(), min_size=1, max_size=20))
def test_a_step_that_could_not_be_recorded_stays_due(n: int, refusals: list[bool]) -> None:
    """The slow twin of `every`: a flag that is set at each multiple of n and cleared by a recording."""
    expected, due = [], False
    for seen in range(200):
        due = due or seen % n == 0
        if due and not refusals[seen % len(refusals)]:
            expected.append(seen)
            due = False
    assert refused_at_random(policies.every(n), 200, refusals) == expected


@given(n=st.integers(1, 20), refusals=st.lists(st.booleans(), min_size=1, max_size=20))
def test_first_is_not_content_with_fewer(n: int, refusals: list[bool]) -> None:
    allowed = [seen for seen in range(200) if not refusals[seen % len(refusals)]]
    assert refused_at_random(policies.first(n), 200, refusals) == allowed[:n]


@given(types=st.lists(st.sampled_from("abc"), min_size=1, max_size=200), n=st.integers(1, 7))
def test_each_type_is_counted_by_itself(types: list[str], n: int) -> None:
    picked = policies.preview(policies.every(n), len(types), types.__getitem__)
    for type in set(types):
        numbers = [number for number, other in enumerate(types) if other == type]
        assert [number for number in picked if types[number] == type] == numbers[::n]


# ---- what `when` means ---------------------------------------------------------------------------


def test_when_takes_a_number_a_policy_a_function_or_nothing() -> None:
    function = functools.partial(lambda info, n: info.number > n, n=3)
    assert repr(policy_of(7)) == "every(7)"
    assert policy_of(function) is function
    assert repr(policy_of(None)) == repr(policies.decaying())


@pytest.mark.parametrize("when", ["often", 0.5, True, {"every": 3}])
def test_when_says_what_it_takes(when: object) -> None:
    with pytest.raises(BadArgument, match=r"does not say when to record\. Use a policy such as every\(100\)"):
        policy_of(when)


def test_several_policies_need_either() -> None:
    with pytest.raises(BadArgument, match=r"holds several policies.*either\(a, b\)"):
        policy_of([policies.every(3), policies.first(3)])


@pytest.mark.parametrize("name", ["every", "first", "decaying", "at", "either", "on_nonfinite", "on_spike"])
def test_a_forgotten_call_is_noticed(name: str) -> None:
    with pytest.raises(BadArgument, match=rf"{name} is no policy, it makes one\. Write {name}\("):
        policies.either(getattr(policies, name))


@pytest.mark.parametrize("example", [example for _, example in ours._FACTORIES])
def test_what_is_suggested_instead_can_be_typed(example: str) -> None:
    assert policy_of(eval(example, vars(policies)))


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None, True])
def test_counts_are_whole_and_positive(n: object) -> None:
    for make in (policies.every, policies.first, policies.decaying):
        with pytest.raises(BadArgument, match=rf"={re.escape(repr(n))} must be a whole number of at least 1"):
            make(n)  # type: ignore[arg-type]


@pytest.mark.parametrize("growth", [1, 0.5, 1001, float("nan"), "2", True])
def test_growth_is_above_one(growth: object) -> None:
    with pytest.raises(BadArgument, match=r"must be above 1.*every\(n\)"):
        policies.decaying(growth=growth)  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [5, "12", None])
def test_at_takes_a_collection(numbers: object) -> None:
    with pytest.raises(BadArgument, match=r"needs a collection of step numbers: at\(\{0, 10, 100\}\)"):
        policies.at(numbers)  # type: ignore[arg-type]


def test_at_takes_whole_numbers() -> None:
    with pytest.raises(BadArgument, match=r"number=1\.5"):
        policies.at([1.5])  # type: ignore[list-item]


def test_either_of_nothing() -> None:
    with pytest.raises(BadArgument, match="at least one policy"):
        policies.either()


def test_names_in_a_recording() -> None:
    class Mine:
        def __call__(self, info: StepInfo) -> bool:
            return True

    def long_ones(info: StepInfo) -> bool:
        return info.type == "long"

    texts = [name_of(p) for p in (policies.every(3), policies.at(range(4)), long_ones, lambda info: True, Mine())]
    assert texts == ["every(3)", "at(range(0, 4))", "long_ones", "a function", "Mine"]
    assert repr(policies.at({9, 1, 2, 3, 4, 5, 6})) == "at({1, 2, 3, 4, 5, …})"
    assert repr(policies.either(3, policies.on_nonfinite(), long_ones)) == "either(every(3), on_nonfinite(), long_ones)"
    assert repr(policies.decaying(3)) == "decaying(3, growth=1.03, max_recorded=500)"


@pytest.mark.parametrize("example", [example for _, example in ours._FACTORIES])
def test_a_policy_can_be_sent_to_another_process(example: str) -> None:
    policy = eval(example, vars(policies))
    assert repr(pickle.loads(pickle.dumps(policy))) == repr(policy)


def test_parts_are_flat_and_triggers_among_them_fresh() -> None:
    spike = policies.on_spike("loss")
    every = policies.every(3)
    parts = parts_of(policies.either(policies.either(every, spike), every))
    assert [repr(part) for part in parts] == ["every(3)", "on_spike('loss')", "every(3)"]
    assert parts[0] is every
    assert parts[1] is not spike


def test_either_is_late_if_one_of_them_is() -> None:
    assert policies.either(3, policies.first(2))(StepInfo(0)) is True
    with pytest.raises(NotKnownYet):
        policies.either(3, policies.on_nonfinite())(StepInfo(0))


def test_either_asks_all_of_them() -> None:
    asked = []
    policy = policies.either(1, lambda info: asked.append(info.number))  # type: ignore[arg-type, return-value, func-returns-value]
    assert policy(StepInfo(4)) is True
    assert asked == [4]


def test_preview_leaves_late_policies_out() -> None:
    late = policies.either(5, policies.on_spike(), lambda info: info.metrics["loss"] > 1)
    assert policies.preview(late, 200) == list(range(0, 200, 5))


# ---- what is known about a step ------------------------------------------------------------------


def test_what_only_the_end_of_a_step_can_tell() -> None:
    info = StepInfo(3, "a")
    with pytest.raises(NotKnownYet, match="metrics of a step are known when it ends"):
        info.metrics["loss"]
    with pytest.raises(NotKnownYet, match="finite is known when the step ends"):
        bool(info.nonfinite)
    with pytest.raises(NotKnownYet, match="held when it ends"):
        bool(info.held)
    assert "number=3, type='a', seen=0" in repr(info)


def test_whether_values_are_finite_is_looked_up_once() -> None:
    asked = []
    info = StepInfo(3, metrics={}, nonfinite=lambda: not asked.append(1))  # type: ignore[func-returns-value]
    assert info.nonfinite is True and info.nonfinite is True
    assert asked == [1]


# ---- the page, and importing ---------------------------------------------------------------------


def test_every_public_name_has_a_heading() -> None:
    titles = " ".join(headings(ROOT / "docs" / "reference" / "policies.md"))
    assert not [name for name in policies.__all__ if not re.search(rf"`{name}\b", titles)]


def test_every_attribute_of_what_is_known_is_on_the_page() -> None:
    text = (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
    known = [name for name in dir(StepInfo(0)) if not name.startswith("_")]
    assert not [name for name in known if f"`{name}`" not in text]


def test_policies_need_no_torch() -> None:
    result = run_python("sys.modules['torch'] = None\nfrom endoscope import policies\nprint(policies.every(3))")
    assert (result.stdout, result.stderr) == ("every(3)\n", "")

"""Triggers: what they keep, what they learn from, and what they say about metrics that they cannot use."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.errors import BadArgument
from endoscope.recording.deciding.policies import on_nonfinite, on_outlier_samples, on_spike
from endoscope.recording.deciding.triggers import PATIENCE_STEPS, Trigger
from endoscope.recording.deciding.verdicts import Decision, StepInfo


def end_of(number: int, type: str = "", nonfinite: bool = False, **metrics: Any) -> StepInfo:
    return StepInfo(number, type, seen=number, metrics=metrics, nonfinite=nonfinite)


def kept(trigger: Trigger, losses: list[Any]) -> list[int]:
    return [number for number, loss in enumerate(losses) if trigger(end_of(number, loss=loss)).keep]


def noise(count: int, seed: int = 0) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(2.0, 0.1) for _ in range(count)]


# ---- on_spike ------------------------------------------------------------------------------------


def test_a_spike_is_kept_and_noise_is_not() -> None:
    losses = noise(500)
    losses[300] = 6.0
    assert kept(on_spike("loss"), losses) == [300]


def test_the_reason_says_what_was_seen_and_what_is_usual() -> None:
    trigger = on_spike("loss")
    for number in range(30):
        trigger(end_of(number, loss=2.0))
    assert trigger(end_of(30, loss=9.25)) == Decision(True, why="spike: loss 9.25, usually 2")


def test_spikes_do_not_hide_the_next_one() -> None:
    losses = noise(600)
    for number in (100, 110, 120, 130, 140):
        losses[number] = 50.0
    losses[150] = 5.0
    assert kept(on_spike("loss"), losses) == [100, 110, 120, 130, 140, 150]


def test_nothing_is_kept_during_warm_up() -> None:
    assert kept(on_spike("loss"), [1.0] * 10 + [100.0] + [1.0] * 50) == []


def test_a_new_level_is_kept_at_its_beginning_and_becomes_usual() -> None:
    losses = [1.0] * 100 + [5.0] * 200 + [30.0]
    assert kept(on_spike("loss"), losses) == [100, 101, 102, 300]


def test_a_falling_loss_is_no_spike() -> None:
    assert kept(on_spike("loss"), [10 * 0.99**number for number in range(500)]) == []


def test_a_loss_that_turns_to_nan_is_kept_at_its_beginning() -> None:
    assert kept(on_spike("loss"), noise(50) + [math.nan] * 50) == [50, 51, 52]
    assert kept(on_spike("loss"), [math.inf, 1.0, math.nan]) == [0, 2]


def test_nan_is_not_learned_from() -> None:
    trigger = on_spike("loss")
    assert kept(trigger, [1.0] * 50 + [math.nan] * 200) == [50, 51, 52]
    assert trigger(end_of(250, loss=1.0)).keep is False
    assert trigger(end_of(251, loss=3.0)).keep is True


def test_each_type_has_its_own_past() -> None:
    trigger = on_spike("loss")
    for number in range(200):
        assert not trigger(end_of(number, "easy", loss=1.0)).keep
        assert not trigger(end_of(number, "hard", loss=10.0)).keep
    assert trigger(end_of(200, "easy", loss=10.0)).keep


def test_of_a_metric_per_sample_the_mean_counts() -> None:
    trigger = on_spike("loss")
    assert kept(trigger, [np.array([1.0, 3.0])] * 30 + [np.array([1.0, 30.0])]) == [30]
    assert trigger(end_of(31, loss=np.array([]))).keep is False


def test_other_numbers_than_floats() -> None:
    assert kept(on_spike("loss"), [1] * 30 + [np.float32(50.0)]) == [30]


@given(seed=st.integers(0, 1000), spread=st.floats(0.0, 0.5), level=st.floats(0.01, 100))
def test_ordinary_noise_is_hardly_ever_kept(seed: int, spread: float, level: float) -> None:
    generator = random.Random(seed)
    losses = [level * math.exp(generator.gauss(0, spread) - number / 500) for number in range(400)]
    assert len(kept(on_spike("loss"), losses)) <= 8


# ---- on_outlier_samples --------------------------------------------------------------------------


def batches(count: int, seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).exponential(1.0, (count, 64)))


def test_an_outlier_is_kept_with_the_worst_samples() -> None:
    losses = batches(200)
    losses[150][[7, 3, 60]] = [80.0, 90.0, 70.0]
    trigger = on_outlier_samples("loss", 3)
    decisions = [trigger(end_of(number, loss=loss)) for number, loss in enumerate(losses)]
    assert [number for number, decision in enumerate(decisions) if decision.keep] == [150]
    assert decisions[150].samples == (3, 7, 60)
    assert decisions[150].why.startswith("outlier: loss of sample 3 90, usually ")


def test_a_long_tail_is_not_an_outlier_in_every_batch() -> None:
    assert len(kept(on_outlier_samples("loss", 5), batches(1000))) <= 5


def test_the_worst_samples_are_told_in_any_case() -> None:
    decision = on_outlier_samples("loss", 2)(end_of(0, loss=np.array([0.1, 0.9, 0.4])))
    assert decision == Decision(False, samples=(1, 2))


def test_a_batch_may_be_smaller_than_k() -> None:
    assert on_outlier_samples("loss", 5)(end_of(0, loss=[0.1, 0.9])).samples == (1, 0)
    assert on_outlier_samples("loss", 5)(end_of(0, loss=[])) == Decision(False)


def test_nothing_is_worse_than_nan() -> None:
    decision = on_outlier_samples("loss", 2)(end_of(0, loss=np.array([0.1, math.inf, math.nan, 5.0])))
    assert decision.keep
    assert set(decision.samples) == {1, 2}


def test_losses_of_tokens_are_averaged_for_each_sample() -> None:
    decision = on_outlier_samples("loss", 1)(end_of(0, loss=np.array([[1.0, 1.0], [0.0, 3.0]])))
    assert decision.samples == (1,)


def test_one_number_for_the_batch_names_no_sample() -> None:
    with pytest.raises(BadArgument, match=r"is one number \(1\.5\).*step\.metric\('loss', losses\).*reduction='none'"):
        on_outlier_samples("loss", 5)(end_of(0, loss=1.5))


@given(losses=st.lists(st.floats(allow_nan=True), min_size=1, max_size=30), k=st.integers(1, 10))
def test_the_k_worst(losses: list[float], k: int) -> None:
    samples = on_outlier_samples("loss", k)(end_of(0, loss=np.array(losses))).samples
    badness = [math.inf if math.isnan(loss) else loss for loss in losses]
    assert list(samples) == sorted(range(len(losses)), key=lambda sample: -badness[sample])[:k]


# ---- on_nonfinite --------------------------------------------------------------------------------


def test_nan_in_tensors_or_metrics_is_kept_at_its_beginning() -> None:
    trigger = on_nonfinite()
    answers = [trigger(end_of(number, nonfinite=number >= 5)).keep for number in range(20)]
    assert [number for number, keep in enumerate(answers) if keep] == [5, 6, 7]
    assert kept(on_nonfinite(), [1.0, math.nan, 1.0, np.array([1.0, math.inf]), 2]) == [1, 3]


def test_a_mask_of_infinities_does_not_hide_a_loss_that_turns_to_nan() -> None:
    trigger = on_nonfinite()
    answers = [trigger(end_of(n, nonfinite=True, loss=1.0 if n < 50 else math.nan)) for n in range(100)]
    assert [number for number, answer in enumerate(answers) if answer.keep] == [0, 1, 2, 50, 51, 52]
    assert answers[0].why == "NaN or infinity in recorded tensors"
    assert answers[50].why == "NaN or infinity in metric loss, recorded tensors"


def test_types_of_steps_are_told_apart() -> None:
    trigger = on_nonfinite()
    answers = [trigger(end_of(n, "masked" if n % 2 else "plain", nonfinite=bool(n % 2))).keep for n in range(50)]
    assert [number for number, keep in enumerate(answers) if keep] == [1, 3, 5]


# ---- all of them ---------------------------------------------------------------------------------


def test_a_metric_that_never_comes_is_complained_about_once() -> None:
    trigger = on_spike("los")
    for number in range(PATIENCE_STEPS - 1):
        assert trigger(end_of(number, loss=1.0, accuracy=0.5)) == Decision(False)
    with pytest.raises(BadArgument, match=r"first 100 steps had a metric 'los'; there were: 'loss', 'accuracy'"):
        trigger(end_of(PATIENCE_STEPS, loss=1.0))
    assert trigger(end_of(PATIENCE_STEPS + 1, loss=1.0)) == Decision(False)


def test_a_metric_that_comes_now_and_then_is_no_problem() -> None:
    trigger = on_spike("validation")
    trigger(end_of(0, validation=1.0))
    assert all(not trigger(end_of(number)).keep for number in range(1, 500))


@pytest.mark.parametrize("make", [on_spike, on_outlier_samples])
def test_a_metric_has_a_name(make: Any) -> None:
    with pytest.raises(BadArgument, match=r"metric=3 is no name of a metric\. Use one such as 'loss'\."):
        make(3)


def test_k_is_at_least_one() -> None:
    with pytest.raises(BadArgument, match="k=0 must be a whole number of at least 1"):
        on_outlier_samples("loss", 0)


def test_a_fresh_trigger_has_seen_nothing() -> None:
    for trigger in (on_spike("loss", deviations=3), on_outlier_samples("loss", 2), on_nonfinite()):
        losses = [np.array([1.0])] * 50
        assert kept(trigger, losses + [np.array([math.nan])] * 3)
        fresh = trigger.fresh()
        assert repr(fresh) == repr(trigger)
        assert kept(fresh, [np.array([100.0])]) == []


def test_how_triggers_are_shown() -> None:
    assert repr(on_spike("loss")) == "on_spike('loss')"
    assert repr(on_spike("loss", deviations=4, warmup_steps=5)) == "on_spike('loss', warmup_steps=5, deviations=4)"
    assert repr(on_outlier_samples("loss", 3, window_steps=50)) == "on_outlier_samples('loss', 3, window_steps=50)"

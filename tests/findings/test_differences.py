"""`endoscope.differences`: planted differences are found where they are, and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import endoscope
from endoscope.cli import main
from endoscope.findings import differences as module
from endoscope.findings.differing import student
from endoscope.findings.differing.contrasts import Contrasts, Subject
from endoscope.findings.differing.testing import beyond_chance
from endoscope.findings.differing.windows import make_windows
from endoscope.findings.facts import Facts
from endoscope.query.open import look
from endoscope.schema.recording import Key
from tests.findings.recorded_arrays import Moment, record

STEPS = 48
SAMPLES, UNITS = 8, 4
Change = Callable[[int, str, np.ndarray], np.ndarray]  # step, node, array -> array


def levels(place: int) -> dict[str, float]:
    """How large the numbers of each node are: everything drifts."""
    time = place / STEPS
    return {"x": 1.0, "falling": math.exp(-5 * time), "rising": 1 + 3 * time, "waving": 2 + math.sin(9 * time)}


def moments(seed: int, change: Change = lambda place, node, array: array, **fields: object) -> list[Moment]:
    """Steps of two types in turns, that differ by nothing but what `change` does."""
    rng = np.random.default_rng(seed)
    found = []
    for place in range(STEPS):
        arrays = {
            node: change(place, node, level * (1 + 0.3 * rng.standard_normal((SAMPLES, UNITS))))
            for node, level in levels(place).items()
        }
        found.append(Moment(10 * place, arrays, "even" if place % 2 == 0 else "odd", **fields))  # type: ignore[arg-type]
    return found


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing differs; categories are drawn at random."""
    rng = np.random.default_rng(3)
    plain = moments(0)
    labelled = [
        moment._replace(categories=rng.choice(["p", "q"], SAMPLES).tolist(), raw=[0, 1, 2, 3]) for moment in plain
    ]
    return record(tmp_path_factory.mktemp("runs"), "quiet", labelled)


def larger_unit(place: int, node: str, array: np.ndarray) -> np.ndarray:
    """Unit 2 of one node is half as large again at even steps."""
    if node == "falling" and place % 2 == 0:
        array = array.copy()
        array[:, 2] *= 1.5
    return array


# Between types of step


def test_drift_alone_is_no_difference(quiet: Path) -> None:
    assert endoscope.differences(quiet, type=("even", "odd")) == []


def test_a_unit_that_differs_between_types_is_found(tmp_path: Path) -> None:
    path = record(tmp_path, "t", moments(1, larger_unit))
    found = endoscope.differences(path, type=("even", "odd"))
    assert {one.node for one in found} == {"falling"}
    unit = next(one for one in found if one.unit is not None)
    assert unit.unit == (2,) and {one.unit for one in found} <= {(2,), None}
    assert unit.effect > 0 and unit.interval[0] < unit.effect < unit.interval[1] and unit.p < 0.05
    assert unit.a_mean / unit.b_mean == pytest.approx(1.5, rel=0.15)
    assert unit.source == "model.py:3" and "type=even" in unit.link and "b.type=odd" in unit.link
    assert "falling, unit 2" in unit.sentence and "'even'" in unit.sentence


def test_the_other_way_round_is_the_same_with_the_other_sign(tmp_path: Path) -> None:
    path = record(tmp_path, "t", moments(1, larger_unit))
    found = endoscope.differences(path, type=("even", "odd"))
    turned = endoscope.differences(path, type=("odd", "even"))
    assert [(one.node, one.unit, one.statistic) for one in found] == [(o.node, o.unit, o.statistic) for o in turned]
    assert [one.effect for one in found] == pytest.approx([-one.effect for one in turned])


def test_it_says_since_when(tmp_path: Path) -> None:
    def late(place: int, node: str, array: np.ndarray) -> np.ndarray:
        return array * 3 if node == "rising" and place % 2 == 0 and place >= 8 else array

    found = endoscope.differences(record(tmp_path, "t", moments(2, late)), type=("even", "odd"))
    assert found[0].node == "rising" and 60 <= found[0].first_step <= 120


def test_shuffled_types_are_reported_in_one_of_twenty_runs_at_most(quiet: Path) -> None:
    recording = look(quiet)
    false = 0
    for seed in range(20):
        facts = Facts(recording)  # type: ignore[arg-type]
        order = np.random.default_rng(seed).permutation(STEPS)
        facts.steps = [
            replace(step, type=facts.steps[other].type) for step, other in zip(facts.steps, order, strict=True)
        ]
        facts.types = np.array([step.type for step in facts.steps], dtype=object)
        false += bool(module._of_facts([facts], ("even", "odd"), None, 0.95))
    assert false <= 1


def test_types_that_do_not_take_turns_cannot_be_told_from_drift(tmp_path: Path) -> None:
    phases = [moment._replace(type="first" if n < 24 else "second") for n, moment in enumerate(moments(0))]
    path = record(tmp_path, "t", phases)
    with pytest.raises(endoscope.errors.BadArgument, match="24 recorded steps of 'first' and 24 of 'second'"):
        endoscope.differences(path, type=("first", "second"))


# Between trials


def test_trials(tmp_path: Path) -> None:
    def other(place: int, node: str, array: np.ndarray) -> np.ndarray:
        return array * 2 if node == "waving" else array

    record(tmp_path, "a", moments(1))
    record(tmp_path, "b", moments(2, other))
    found = endoscope.differences(tmp_path, trial=("a", "b"))
    assert {one.node for one in found} == {"waving"}
    assert {one.unit for one in found} == {None, (0,), (1,), (2,), (3,)}
    assert found[0].b_mean / found[0].a_mean == pytest.approx(2, rel=0.1)
    assert "b.trial=b" in found[0].link


def test_trials_that_are_alike(tmp_path: Path) -> None:
    record(tmp_path, "a", moments(1))
    record(tmp_path, "b", moments(2))
    assert endoscope.differences(tmp_path, trial=("a", "b")) == []


# Between categories of samples


def test_categories_drawn_at_random_differ_in_nothing(quiet: Path) -> None:
    assert endoscope.differences(quiet, category=("p", "q")) == []


def test_a_feature_that_tells_categories_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    found = []
    for moment in moments(4):
        categories = np.array(["p", "q"] * (SAMPLES // 2))
        rng.shuffle(categories)
        array = moment.arrays["waving"].copy()
        array[categories == "p", 1] += 3
        arrays = {**moment.arrays, "waving": array}
        found.append(moment._replace(arrays=arrays, categories=categories.tolist(), raw=list(range(6))))
    differences = endoscope.differences(record(tmp_path, "t", found), category=("p", "q"))
    assert {one.node for one in differences} == {"waving"}
    assert {one.unit for one in differences} == {None, (1,)}
    unit = next(one for one in differences if one.unit)
    assert unit.a_mean - unit.b_mean == pytest.approx(3, rel=0.15) and unit.n_a + unit.n_b <= 6 * STEPS


def test_the_same_samples_again_are_no_new_evidence(tmp_path: Path) -> None:
    """One batch, trained on again and again: what its few samples have by chance must not look certain."""
    rng = np.random.default_rng(11)
    batch = rng.standard_normal((SAMPLES, UNITS))
    categories = ["p", "q"] * (SAMPLES // 2)

    def again(place: int) -> Moment:
        noise = 0.01 * rng.standard_normal((SAMPLES, UNITS))
        return Moment(place, {"x": batch, "hidden": batch + noise}, "", categories, list(range(SAMPLES)))

    assert endoscope.differences(record(tmp_path, "t", map(again, range(40))), category=("p", "q")) == []


# What is asked


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "given was nothing"),
        ({"type": ("even", "odd"), "category": ("p", "q")}, "compares along one line"),
        ({"type": ("even", "even")}, "does not name two different sides"),
        ({"type": "even"}, "does not name two different sides"),
        ({"type": ("even", "strange")}, "No step of type 'strange'.*'even', 'odd'"),
        ({"category": ("p", "z")}, "no category 'z'"),
        ({"trial": ("a", "b")}, "is a single trial"),
        ({"type": ("even", "odd"), "confidence": 95}, "from 0.5 to below 1"),
    ],
)
def test_mistakes_are_explained(quiet: Path, asked: dict[str, object], said: str) -> None:
    with pytest.raises(endoscope.errors.EndoscopeError, match=said):
        endoscope.differences(quiet, **asked)  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path, "t", moments(1, larger_unit))
    assert main(["differences", str(path), "--type", "even", "odd"]) == 0
    assert "falling, unit 2" in capsys.readouterr().out
    assert main(["differences", str(path), "--type", "even", "odd", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert entries[0]["node"] == "falling" and entries[0]["interval"][0] < entries[0]["effect"]


# The parts


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [  # from tables and from scipy.stats
        (2.570582, 5, 0.05),
        (1.0, 1, 0.5),
        (12.0, 20, 1.3617e-10),
        (-3.0, 3, 0.057669),
        (40.0, 30, 1.2166e-27),
        (0.0, 4, 1.0),
    ],
)
def test_student(t: float, freedom: int, expected: float) -> None:
    assert float(student.two_sided(np.array(t), np.array(freedom))) == pytest.approx(expected, rel=1e-3)


def test_student_integrates_its_density() -> None:
    """The slow twin: the area under the density, by small steps."""
    freedom, t = 7, 2.3
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    places = np.linspace(-t, t, 200_001)
    inside = np.trapezoid(factor * (1 + places**2 / freedom) ** (-(freedom + 1) / 2), places)
    assert float(student.two_sided(np.array(t), np.array(freedom))) == pytest.approx(1 - inside, rel=1e-6)
    assert student.critical(float(inside), freedom) == pytest.approx(t, rel=1e-6)


def test_holm_is_as_in_the_book() -> None:
    assert student.holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])


def test_windows_cancel_every_parabola() -> None:
    rng = np.random.default_rng(0)
    numbers = np.sort(rng.choice(1000, 60, replace=False))
    is_a = rng.random(60) < 0.4
    windows = make_windows(numbers, is_a, np.zeros(60))
    time = numbers / 1000
    assert len(windows) >= 5
    assert windows.weights @ (5 - 3 * time + 7 * time**2) == pytest.approx(0, abs=1e-9)
    assert windows.weights @ is_a.astype(float) == pytest.approx(1)
    assert ((windows.weights != 0).sum(axis=0) <= 1).all()  # no step counts twice


def test_the_interval_holds_the_true_effect() -> None:
    """Two hundred made-up statistics that differ by one and a half standard deviations, over a steep drift."""
    rng = np.random.default_rng(0)
    numbers, is_a = np.arange(80), np.arange(80) % 2 == 0
    values = rng.standard_normal((200, 80)) + 1.5 * is_a + 0.01 * (numbers - 30) ** 2
    windows = make_windows(numbers, is_a, np.zeros(80))
    contrasts = Contrasts(
        [Subject(Key("node"), "mean")] * 200, values @ windows.weights.T, windows.noise, values.mean(axis=1),
        np.ones(200), np.zeros(200, dtype=bool), windows.first, (40, 40),
    )  # fmt: skip
    found = beyond_chance([contrasts], 0.95, 0.0, 1)
    assert len(found) >= 150  # the others are not certain after the correction for two hundred
    everyone = beyond_chance([replace(contrasts, subjects=contrasts.subjects[:1], deltas=contrasts.deltas[n : n + 1],
                               middle=contrasts.middle[:1], size=contrasts.size[:1], ratio=contrasts.ratio[:1])
                       for n in range(200)], 0.95, 0.0, 1)  # fmt: skip
    inside = [one.interval[0] <= 1.5 <= one.interval[1] for one in everyone]
    assert np.mean(inside) >= 0.9
    assert np.mean([one.effect for one in everyone]) == pytest.approx(1.5, abs=0.25)

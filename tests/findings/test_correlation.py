"""What happens together: planted strengths are found, chance is not, and sentences say it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import endoscope
from endoscope.analysis.user_rules import anomalies
from endoscope.cli import main
from endoscope.errors import BadArgument, NotARecording
from endoscope.findings import pairs
from endoscope.findings.event import CATEGORY, OUTLIER, Event, OverSamples, OverSteps
from endoscope.findings.together import FEWEST, Correlation, worth_telling
from endoscope.markup.tags import text
from endoscope.report import together_part
from tests.findings.made_up import write

NODES, STEPS, SAMPLES = 12, 200, 16


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    yield
    anomalies.clear()


def usual(chance: np.random.Generator, nodes: int = NODES, steps: int = STEPS) -> np.ndarray:
    return np.exp(0.2 * chance.standard_normal((nodes, steps, SAMPLES)))


def pair(found: list[Correlation], *names: str) -> Correlation:
    [one] = [one for one in found if {one.a, one.b} == set(names)]
    return one


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    """n2 is large in 5 % of the samples; n7 in 60 % of these and in 6 % of the others. Half of the first are `odd`."""
    chance = np.random.default_rng(0)
    norms = usual(chance)
    a = chance.random((STEPS, SAMPLES)) < 0.05
    b = chance.random((STEPS, SAMPLES)) < np.where(a, 0.6, 0.06)
    a[:10] = b[:10] = False
    norms[2][a] *= 8
    norms[7][b] *= 8
    odd = (a & (chance.random(a.shape) < 0.5)) | (chance.random(a.shape) < 0.05)
    losses = np.exp(0.3 * chance.standard_normal(a.shape)) * np.where(b, 5, 1)
    path = write(
        tmp_path_factory.mktemp("planted"), norms, losses=losses, categories=np.where(odd, "odd", "plain").tolist()
    )
    return path, a, b


def test_a_planted_pair_is_found_with_its_lift(planted: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, a, b = planted
    one = pair(endoscope.correlate(path), "n2 unusually large", "n7 unusually large")
    true = 0.6 / (0.05 * 0.6 + 0.95 * 0.06)
    assert one.interval.lift[0] < true < one.interval.lift[1]
    assert one.lift == pytest.approx((a & b).mean() / (a.mean() * b.mean()), rel=0.1)
    assert one.interval.phi[0] < np.corrcoef(a.ravel(), b.ravel())[0, 1] < one.interval.phi[1]
    assert (one.a, one.b, one.over) == ("n7 unusually large", "n2 unusually large", "samples")  # downstream first
    assert one.share == pytest.approx((a & b).sum() / b.sum(), rel=0.1)
    assert one.n == pytest.approx(b.sum(), rel=0.1)
    assert one.first_step == np.flatnonzero((a & b).any(axis=1))[0]
    assert one.upstream == "b" and one.leads is None


def test_losses_of_samples_and_categories(planted: tuple[Path, np.ndarray, np.ndarray]) -> None:
    found = endoscope.correlate(planted[0])
    loss = pair(found, "high loss_of_samples", "n7 unusually large")
    assert (loss.a, loss.upstream) == ("high loss_of_samples", "b") and loss.share > 0.85 and loss.lift > 8
    category = pair(found, "n2 unusually large", "category 'odd'")
    assert category.b == "category 'odd'" and 0.4 < category.share < 0.7
    assert category.sentence.startswith("N2 unusually large: ") and " of its samples are of category 'odd' (lift " in (
        category.sentence
    )


def test_the_strongest_first_and_pairs_of_outliers_last(planted: tuple[Path, np.ndarray, np.ndarray]) -> None:
    found = endoscope.correlate(planted[0])
    order = [(one.between_outliers, -abs(one.phi)) for one in found]
    assert order == sorted(order) and len(found) >= 3


def test_nothing_else_is_reported(planted: tuple[Path, np.ndarray, np.ndarray]) -> None:
    involved = {name for one in endoscope.correlate(planted[0]) for name in (one.a, one.b)}
    assert involved <= {"n2 unusually large", "n7 unusually large", "high loss_of_samples", "category 'odd'"}


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_numbers_say_nothing(tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    norms = usual(chance)
    for node in range(0, NODES, 2):
        norms[node][chance.random((STEPS, SAMPLES)) < 0.05] *= 8
    norms = np.stack([chance.permutation(node.ravel()).reshape(node.shape) for node in norms])
    types = chance.choice(["long", "short"], STEPS).tolist()
    categories = chance.choice(["a", "b"], (STEPS, SAMPLES)).tolist()
    path = write(tmp_path, norms, types=types, categories=categories, metrics={"loss": chance.random(STEPS)})
    assert endoscope.correlate(path) == []


def test_two_stretches_are_one_coincidence(tmp_path: Path) -> None:
    """Both happen in the same fifteen steps and never else: that is no evidence, however many samples there are."""
    norms = usual(np.random.default_rng(1))
    chance = np.random.default_rng(2)
    for node in (2, 7):
        norms[node, 60:75][chance.random((15, SAMPLES)) < 0.7] *= 8
    assert endoscope.correlate(write(tmp_path, norms), events=["outliers"]) == []


def test_whole_batches_that_go_wrong_together(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    norms = usual(chance)
    bad = np.sort(chance.choice(STEPS, 20, replace=False))
    norms[2, bad] *= 5
    norms[7, bad[:18]] *= 5
    loss = 1 + 0.1 * chance.standard_normal(STEPS)
    loss[bad] += 3
    found = endoscope.correlate(write(tmp_path, norms, metrics={"loss": loss}), events=["outliers", "losses"])
    one = pair(found, "high loss", "n2 unusually large")
    assert (one.over, one.upstream) == ("steps", "b") and one.share == 1.0 and one.first_step in bad
    assert one.b_also == ("n7",)  # the same thing, further on: told once
    assert "also have 'n2 unusually large' (and at 1 more node) (lift" in one.sentence


def test_types_of_step(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    norms = usual(chance)
    types = np.where(np.arange(STEPS) % 2, "long", "short")
    norms[3][chance.random((STEPS, SAMPLES)) < np.where(types == "long", 0.12, 0.01)[:, None]] *= 8
    found = endoscope.correlate(write(tmp_path, norms, types=types.tolist()), events=["outliers", "types"])
    assert [(one.a, one.b) for one in found] == [("n3 unusually large", "type 'long'")]
    assert found[0].interval.lift[0] < 2 * 0.12 / 0.13 < found[0].interval.lift[1]
    assert found[0].leads is None


def test_own_anomalies_and_checks(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    norms = usual(chance)
    a = chance.random((STEPS, SAMPLES)) < 0.05
    norms[2][a] *= 8
    norms[7][a & (chance.random(a.shape) < 0.7)] *= 0.02
    path = write(tmp_path, norms, metrics={"loss": np.ones(STEPS)})
    big = endoscope.anomaly("big X", "n2: sample.norm > 4")
    one = pair(endoscope.correlate(path), "big X", "n7 unusually small")
    assert one.a == "big X" and one.share == pytest.approx(0.7, abs=0.1) and one.a_node == "n2"
    assert one.sentence.startswith("Big X: ") and "also have 'n7 unusually small'" in one.sentence
    big.forget()
    assert "big X" not in {other.a for other in endoscope.correlate(path)}
    assert "big X" in {other.a for other in endoscope.correlate(path, events=["outliers", big])}
    steps = endoscope.anomaly("whole", "n2: norm > 3")  # of a step; never beside the same node's own outliers
    names = {frozenset((other.a, other.b)) for other in endoscope.correlate(path, events=["outliers", steps, big])}
    assert all({"whole", "big X"} != pair_ and {"whole", "n2 unusually large"} != pair_ for pair_ in names)


def test_a_rule_about_one_type_says_nothing_about_types(tmp_path: Path) -> None:
    chance = np.random.default_rng(7)
    norms = usual(chance)
    norms[2][chance.random((STEPS, SAMPLES)) < 0.1] *= 8
    types = np.where(np.arange(STEPS) % 2, "long", "short").tolist()
    typed = endoscope.anomaly("typed", "n2 type=long: sample.norm > 4")
    path = write(tmp_path, norms, types=types)
    assert endoscope.correlate(path, events=["types", typed]) == []
    free = endoscope.anomaly("free", "n2: sample.norm > 4")
    assert endoscope.correlate(path, events=["types", free]) == []


def test_the_same_samples_again_are_few_samples(tmp_path: Path) -> None:
    """Every batch is the same: that one place has both habits is one coincidence, at however many steps it shows."""
    chance = np.random.default_rng(8)
    norms = usual(chance)
    for node in (2, 7):
        norms[node, :, 5][chance.random(STEPS) < 0.5] *= 8
    assert endoscope.correlate(write(tmp_path, norms), events=["outliers"]) == []


def test_of_too_many_events_the_rarest_outliers_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    there = np.ones((20, 10), dtype=bool)
    samples, steps = OverSamples(20, 10, there), OverSteps(20)
    for number in range(6):
        mask = np.zeros((20, 10), dtype=bool)
        mask.flat[: 10 + number] = True
        kind = CATEGORY if number == 0 else OUTLIER
        samples.add(Event(f"{number}", kind, f"{number}"), mask, np.ones(20, dtype=bool))
    monkeypatch.setattr(pairs, "MOST_WORK", 3**2 * 200.0)
    pairs.limit(samples, steps)
    assert [event.name for event in samples.events] == ["0", "4", "5"]


def test_coincidences_against_plain_counting() -> None:
    chance = np.random.default_rng(9)
    masks = chance.random((7, 700, 24)) < 0.1
    samples = OverSamples(700, 24, np.ones((700, 24), dtype=bool))
    for number, mask in enumerate(masks):
        samples.add(Event(f"{number}", OUTLIER, f"{number}"), mask, np.ones(700, dtype=bool))
    counted = pairs.count_samples(samples)
    for one in range(7):
        for other in range(7):
            assert counted.both[one, other] == (masks[one] & masks[other]).sum()
            expected = (masks[one].sum(axis=1) * masks[other].sum(axis=1) / 24).sum()
            assert counted.expected[one, other] == pytest.approx(expected, rel=1e-5)


def test_a_folder_of_trials(planted: tuple[Path, np.ndarray, np.ndarray]) -> None:
    found = endoscope.correlate(planted[0].parent, events="outliers")
    assert [(one.trial, one.a) for one in found] == [("made-up", "n7 unusually large")]


def test_bad_questions(planted: tuple[Path, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="confidence=95 must be from"):
        endoscope.correlate(planted[0], confidence=95)
    with pytest.raises(BadArgument, match="events holds 'loss', did you mean 'losses'"):
        endoscope.correlate(planted[0], events=["loss"])
    with pytest.raises(NotARecording):
        endoscope.correlate(tmp_path)


def test_recordings_with_little_in_them(tmp_path: Path) -> None:
    chance = np.random.default_rng(6)
    assert endoscope.correlate(write(tmp_path, usual(chance, 2, 1), trial="one")) == []
    assert endoscope.correlate(write(tmp_path, usual(chance, 2, 6)[:, :, :1], trial="single")) == []
    with endoscope.Run(tmp_path, trial="empty"):
        pass
    assert endoscope.correlate(tmp_path / "empty") == []


def test_a_real_training(tmp_path: Path) -> None:
    from tests.findings.runs import classifier, train

    assert isinstance(endoscope.correlate(train(tmp_path, classifier(), steps=30)), list)


def test_on_the_command_line(planted: tuple[Path, np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", str(planted[0]), "--together"])
    text = capsys.readouterr().out
    assert "These happen together more often than by chance" in text and "High loss_of_samples: " in text
    main(["check", str(planted[0]), "--together", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"findings", "together"}
    first = answer["together"][0]
    names = "a b share lift phi interval n first_step leads upstream sentence over trial"
    assert set(names.split()) <= set(first) and set(first["interval"]) == {"lift", "phi"}


def test_people_are_told_only_of_what_matters(planted: tuple[Path, np.ndarray, np.ndarray]) -> None:
    found = endoscope.correlate(planted[0])
    told = worth_telling(found)
    assert told and any(one.between_outliers for one in found)
    assert not any(one.between_outliers or one.n < FEWEST for one in told)
    assert told == [one for one in found if not one.between_outliers and one.n >= 20]
    page = str(together_part.section(endoscope.open(planted[0])))
    assert all(text(one.sentence) in page for one in told[:8])
    assert not any(text(one.sentence) in page for one in found if one not in told)

"""The small tools of the checks, each against a slow twin in plain Python."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest

import endoscope
from endoscope.findings import lasting, units
from endoscope.findings.curves import past_median, past_spread
from endoscope.findings.facts import Facts
from endoscope.findings.rows import Tensor
from endoscope.query.recording import Recording
from endoscope.schema.recording import Key
from tests.findings.runs import classifier, train

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    recording = endoscope.open(train(tmp_path_factory.mktemp("healthy"), classifier(), steps=8))
    assert isinstance(recording, Recording)
    return Facts(recording)


def test_past_median_and_spread() -> None:
    values = RNG.normal(size=20)
    for place in range(20):
        before = values[max(0, place - 5) : place].tolist()
        median, spread = past_median(values, 5)[place], past_spread(values, 5)[place]
        if place < 5:
            assert np.isnan(median) and np.isnan(spread)
        else:
            middle = statistics.median(before)
            assert median == pytest.approx(middle)
            assert spread == pytest.approx(1.4826 * statistics.median([abs(value - middle) for value in before]))


def test_a_curve_that_is_shorter_than_the_window() -> None:
    assert np.isnan(past_median(np.ones(3), 5)).all()


def test_parts_of_the_steps_of_a_row() -> None:
    there = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0]], dtype=bool)
    assert np.flatnonzero(lasting.late(there)[0]).tolist() == [3, 5]
    assert np.flatnonzero(lasting.early(there)[0]).tolist() == [0]
    assert not lasting.late(there)[1].any()


def test_lasting_needs_a_share_and_a_number() -> None:
    there = np.ones((3, 6), dtype=bool)
    bad = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]], dtype=bool)
    assert lasting.lasts(bad, there, 0.5, 3).tolist() == [True, False, False]
    assert lasting.lasts(bad, there, 0.1, 2).tolist() == [True, True, False]


def test_the_median_of_chosen_steps_ignores_what_was_not_recorded() -> None:
    values = np.array([[1.0, np.nan, 5.0, 9.0], [np.nan, np.nan, 1.0, 2.0]])
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    found = lasting.median_where(values, mask)
    assert found[0] == 3.0 and np.isnan(found[1])


def test_steps_are_chosen_with_the_last_ten() -> None:
    assert units.chosen_steps(7, 24).tolist() == list(range(7))
    chosen = units.chosen_steps(1000, 24)
    assert chosen[0] == 0 and chosen[-10:].tolist() == list(range(990, 1000)) and len(chosen) == 24


def test_units_of_images_are_channels_and_of_sequences_the_last_dimension() -> None:
    numbers = np.arange(24, dtype=np.float32)
    image, sequence = Key("a", shape=(8, 4, 2, 3), batch_dim=0), Key("b", shape=(8, 6, 4), batch_dim=0)
    assert units.by_feature(numbers, (4, 2, 3), Tensor(0, image))[:, 1].tolist() == [6, 7, 8, 9, 10, 11]
    assert units.by_feature(numbers, (6, 4), Tensor(0, sequence))[:, 1].tolist() == [1, 5, 9, 13, 17, 21]


def test_matrices_hold_what_series_say(facts: Facts) -> None:
    for rows, of in ((facts.values, "value"), (facts.parameters, "value"), (facts.updates, "update")):
        for tensor in rows.tensors:
            key = tensor.key
            series = facts.recording.series(key.node, "std", of=of, role=key.role, pass_=key.pass_)
            np.testing.assert_allclose(rows["std"][tensor.row], series.values, rtol=1e-6)


def test_norms_of_gradients_are_those_of_the_parameters(facts: Facts) -> None:
    for tensor in facts.parameters.tensors:
        series = facts.recording.series(tensor.node, "norm", of="gradient")
        np.testing.assert_allclose(facts.parameter_gradients[tensor.row], series.values, rtol=1e-6)


def test_units_are_read_from_the_newest_step_backwards(facts: Facts) -> None:
    row = facts.values.row_of["1", "", 1]
    found = list(units.backwards(facts, {row}))
    assert [one.place for one in found] == list(range(7, -1, -1))
    np.testing.assert_array_equal(found[0].abs_max.ravel(), facts.recording.units("1", 7)["abs_max"])


def test_the_graph_knows_readers_beyond_other_names(tmp_path: Path) -> None:
    from torch import nn

    recording = endoscope.open(train(tmp_path, nn.Sequential(classifier(), nn.Identity()), steps=2))
    assert isinstance(recording, Recording)
    structure = Facts(recording).structure
    readers = {structure.type[place] for place in structure.readers(("0.2", "", 1))}
    assert readers == {"cross_entropy_loss"}
    assert ("input", "input", 1) in structure.above([("0.2", "", 1)])
    assert structure.depth(("0.0.weight", "", 1)) == structure.position["0.0", "", 1]

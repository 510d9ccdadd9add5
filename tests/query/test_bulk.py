"""Many tensors in one go; tests/server/test_tables.py compares the numbers with those of single ones."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from endoscope.errors import DamageWarning, LookupFailed, ValueNotKept
from endoscope.query import arrays, bulk
from endoscope.query.open import look
from endoscope.query.recording import Recording
from tests.store.made_up import check_steps, measured, write_trial


def damage(path: Path, part: float) -> None:
    file = path / "rank-0" / "stats-0001.arrow"
    data = bytearray(file.read_bytes())
    data[int(len(data) * part)] ^= 0xFF
    file.write_bytes(data)


def test_one_step_is_read_without_checking_the_others(tmp_path: Path) -> None:
    path = write_trial(tmp_path, steps=range(10))
    damage(path, 0.95)
    recording = Recording(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody has looked at the damaged step yet
        found = bulk.step_table(recording, bulk.step_at(recording, 2))
        assert found["mean"].to_pylist() == measured(3, seed=2).whole["mean"].tolist()
        assert recording.problems == []
    recording.tables.silence()
    with pytest.raises(ValueNotKept, match="Something is damaged"):
        bulk.step_table(recording, bulk.step_at(recording, 9))
    assert recording.series("layer.0", "mean").steps.tolist() == list(range(9))


def test_damage_is_still_a_warning_for_those_who_read_by_themselves(tmp_path: Path) -> None:
    path = write_trial(tmp_path, steps=range(10))
    damage(path, 0.95)
    with pytest.warns(DamageWarning):
        Recording(path).series("layer.0", "mean")


def test_memory_that_was_given_back_is_read_again(tmp_path: Path) -> None:
    recording = Recording(write_trial(tmp_path, steps=range(30)))
    bulk.warm(recording)
    series = recording.series("layer.0", "mean")
    array = recording.tensor("layer.0", 3)
    recording.tables.release()
    check_steps(recording, range(30))
    assert np.array_equal(recording.series("layer.0", "mean").values, series.values)
    assert np.array_equal(recording.tensor("layer.0", 3), array)


def test_the_matrix_leaves_out_nothing(tmp_path: Path) -> None:
    recording = Recording(write_trial(tmp_path, steps=[3, 5, 9]))
    found = bulk.matrix(recording, "value", "norm")
    expected = np.array([measured(3, seed=number).whole["norm"] for number in (3, 5, 9)], np.float32).T
    assert np.array_equal(found.values, expected) and found.ordinals.tolist() == [0, 1, 2]
    with pytest.raises(LookupFailed, match="Nothing was recorded of 'update'"):
        bulk.matrix(recording, "update", "norm")


def test_look_checks_nothing(tmp_path: Path) -> None:
    path = write_trial(tmp_path, steps=range(4))
    damage(path, 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(look(path), Recording)
        assert list(look(tmp_path)) == ["trial"]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16, np.int64, np.uint32, bool])
@pytest.mark.parametrize("size", [0, 1, 8, 13])
def test_arrays_are_those_of_arrow(kind: type, size: int) -> None:
    values = (np.arange(size) % 3).astype(kind)
    assert arrays.numbers(values).equals(pa.array(values))
    assert arrays.numbers(np.repeat(values, 2)[::2]).equals(pa.array(values))
    valid = np.arange(size) % 2 == 0
    assert arrays.numbers(values, valid).equals(pa.array(values, mask=~valid))


def test_texts_and_lists_are_those_of_arrow() -> None:
    words = ["train", "", "größer", "train"]
    assert arrays.texts(words).equals(pa.array(words))
    assert arrays.texts([]).equals(pa.array([], pa.string()))
    assert arrays.dictionary(np.array(words, object)).to_pylist() == words
    found = arrays.lists(np.array([2, 0, 1]), np.array([1, 2, 3], np.uint32))
    assert found.to_pylist() == [[1, 2], [], [3]] and found.type == pa.list_(pa.uint32())

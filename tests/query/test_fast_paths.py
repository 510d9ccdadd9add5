"""What is read in another way because that is faster gives what the plain way gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from endoscope.errors import DamageWarning
from endoscope.query import bulk, presence
from endoscope.query.recording import Recording
from endoscope.schema.stats import WHOLE
from endoscope.store.tensors import keys_in
from tests.query.small_recording import KEYS, STEPS, numbers_of, write_small_recording
from tests.store.made_up import write_trial


@pytest.fixture
def small(tmp_path: Path) -> Recording:
    return Recording(write_small_recording(tmp_path))


def test_series_without_a_way_to_read_at_a_place(small: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = [small.series("encoder", name).values.tolist() for name in WHOLE]
    monkeypatch.delattr(os, "pread")
    assert [small.series("encoder", name).values.tolist() for name in WHOLE] == fast


def test_series_of_files_that_have_gone(tmp_path: Path) -> None:
    recording = Recording(write_trial(tmp_path, steps=range(20)))
    before = recording.series("layer.1", "std").values.tolist()
    shutil.rmtree(recording.path / "rank-0")
    assert recording.series("layer.1", "std").values.tolist() == before  # what was mapped stays readable


def test_series_of_files_that_others_have_replaced(tmp_path: Path) -> None:
    """Another recording of the same name has other numbers; they were never checked, and belong to other steps."""
    recording = Recording(write_trial(tmp_path, steps=range(20)))
    before = recording.series("layer.1", "std").values.tolist()
    shutil.rmtree(recording.path)
    write_trial(tmp_path, steps=range(100, 120))
    assert recording.series("layer.1", "std").values.tolist() == before


def test_the_table_of_a_step_row_by_row(small: Recording) -> None:
    for ordinal, (number, type_, keys) in enumerate(STEPS):
        table = bulk.step_table(small, bulk.step_at(small, number, type_))
        assert table["node"].to_pylist() == [key.node for key in keys]
        assert table["role"].to_pylist() == [key.role for key in keys]
        assert table["pass"].to_pylist() == [key.pass_ for key in keys]
        assert table["shape"].to_pylist() == [list(key.shape) for key in keys]
        assert table["batch_dim"].to_pylist() == [key.batch_dim for key in keys]
        assert table["mean"].to_pylist() == numbers_of(ordinal).whole["mean"].tolist()  # type: ignore[attr-defined]


def test_names_that_are_lost_are_null(small: Recording) -> None:
    names = small.tables.names.columns(np.array([0, 4, 77], np.int32), ("node", "role", "pass", "shape"))
    assert names["node"].to_pylist() == ["encoder", "sums", None]
    assert names["role"].to_pylist() == ["", "digit 1", None]
    assert names["pass"].to_pylist() == [1, 1, None]
    assert names["shape"].to_pylist() == [[4, 3], [4, 3], None]


def test_which_tensors_steps_have(small: Recording) -> None:
    found = presence.presence(small)
    names = [(key.node, key.role, key.pass_, key.of) for key, _ in found.tensors]
    assert names == [(key.node, key.role, key.pass_, key.of) for key in KEYS]
    assert found.tensors[0][1] == 6  # the larger of two batches
    for place, (_, _, keys) in enumerate(STEPS):
        recorded = {names.index((key.node, key.role, key.pass_, key.of)) for key in keys}
        assert set(found.sets[found.set_of[place]]) == recorded
    assert len(found.sets) == 3  # all, few, and those with another shape


def test_a_step_whose_statistics_are_cut_off_has_none(tmp_path: Path) -> None:
    path = write_trial(tmp_path, steps=range(6))
    file = path / "rank-0/stats-0001.arrow"
    file.write_bytes(file.read_bytes()[:-2000])
    with pytest.warns(DamageWarning, match="stats-0001.arrow"):
        found = presence.presence(Recording(path))
    assert found.set_of[-1] == -1 and found.set_of[0] == 0


def test_many_batches_at_once_are_the_same_as_one_by_one(tmp_path: Path) -> None:
    recording = Recording(write_trial(tmp_path, steps=range(30)))
    reader = recording._reader
    at_once = pa.Table.from_batches(reader.batches("stats"))
    one_by_one = pa.Table.from_batches([reader.batch("stats", ordinal) for ordinal in range(30)])
    assert at_once.equals(one_by_one)


def test_metrics_by_name(tmp_path: Path) -> None:
    recording = Recording(write_trial(tmp_path, steps=range(5)))
    table = recording.metrics.of(["loss"])
    assert table["value"].to_pylist() == recording.metrics["loss"].values.tolist()
    assert recording.metrics.of([]).num_rows == 0


def test_the_head_of_a_file_of_raw_values(small: Recording) -> None:
    step = small.steps[0]
    assert keys_in(small.path / "rank-0" / step.raw_file) == [0, len(KEYS) - 1]
    damaged = small.path / "damaged"
    damaged.write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="damaged"):
        keys_in(damaged)


def test_raw_files_are_closed_again(tmp_path: Path) -> None:
    """Every mapped file is an open one, and a process may have a thousand."""
    recording = Recording(write_trial(tmp_path, steps=range(40)))
    for step in recording.steps:
        recording.tensor("layer.0", step.number)
        bulk.step_table(recording, step)
    raw = [file for file in recording._reader._maps._maps if file.startswith("raw")]
    assert len(raw) <= 8


def test_a_first_look_does_without_slow_imports(tmp_path: Path) -> None:
    path = write_trial(tmp_path, steps=range(5))
    code = (
        "import sys; from endoscope.query import bulk; from endoscope.query.recording import Recording\n"
        f"r = Recording({str(path)!r}); bulk.prepare(r); bulk.step_table(r, r.steps[0]); list(r.metrics)\n"
        "r.series('layer.0', 'mean'); bulk.histograms(r, bulk.Which('layer.0')); bulk.matrix(r, 'value', 'std')\n"
        "print([name for name in ('torch', 'pandas', 'duckdb', 'pyarrow.compute') if name in sys.modules])"
    )
    source = str(Path(bulk.__file__).parents[2])
    said = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True
    )
    assert said.stdout.strip() == "[]", said.stderr

"""The names of the read side, as they are written in the documentation of recordings; torch is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import endoscope
from endoscope.errors import LookupFailed, NotARecording
from tests.contract.recording.helpers import STATISTICS, batches, mlp, plain_step, sgd, strict_run


@pytest.fixture(scope="module")
def root(tmp_path_factory: Any) -> Any:
    """Two trials: every second step of two types."""
    folder = tmp_path_factory.mktemp("runs")
    for trial in ("one", "two"):
        model = mlp()
        optimizer = sgd(model)
        with strict_run(folder, trial=trial, keep=3) as run:
            run.watch(model, optimizer)
            for number, (x, y) in enumerate(batches(6)):
                with run.step(10 * number, type="long" if number % 3 == 0 else "short") as step:
                    step.metric("loss", plain_step(model, optimizer, x, y))
                    step.decide(keep=number % 2 == 0)
            run.note("done")
    return folder


@pytest.fixture
def recording(root: Any) -> Any:
    return endoscope.open(root / "one")


def test_a_folder_is_a_mapping(root: Any) -> None:
    trials = endoscope.open(root)
    assert list(trials) == ["one", "two"]
    assert len(trials) == 2
    assert [step.number for step in trials["two"].steps] == [0, 20, 40]
    with pytest.raises(LookupFailed, match="'two'"):
        trials["tow"]


def test_steps_types_and_nodes(recording: Any) -> None:
    assert [(step.number, step.type) for step in recording.steps] == [(0, "long"), (20, "short"), (40, "short")]
    assert all(0 < step.recording_seconds < 60 for step in recording.steps)
    assert sorted(recording.types) == ["long", "short"]
    assert {"0", "0.weight", "1", "2", "input", "output", "loss"} <= set(recording.nodes)
    assert recording.gaps == []


def test_series(recording: Any) -> None:
    for statistic in STATISTICS:
        series = recording.series("0", statistic)
        assert series.steps.tolist() == [0, 20, 40]
        assert isinstance(series.values, np.ndarray) and series.values.shape == (3,)
    assert recording.series("0", "mean", type="short").steps.tolist() == [20, 40]
    assert recording.series("0.weight", "norm", of="update").values.min() > 0
    assert recording.series("0", "mean", sample=2).steps.tolist() == [0, 20, 40]
    with pytest.raises(LookupFailed, match="'std'"):
        recording.series("0", "sdt")
    with pytest.raises(LookupFailed, match=r"'0\.weight'"):
        recording.series("0.wieght", "std")


def test_tensor(recording: Any) -> None:
    values = recording.tensor("0", 20, of="value", role="", pass_=1)
    assert isinstance(values, np.ndarray)
    assert values.shape == (3, 8)
    assert np.array_equal(recording.tensor("0", 20, sample=1), values[1])
    assert recording.tensor("0", 20, of="gradient:loss").shape == (3, 8)
    with pytest.raises(LookupFailed, match="20"):
        recording.tensor("0", 21)


def test_graph_metrics_notes_modules(recording: Any) -> None:
    graph = recording.graph(40)
    assert graph["hash"] == recording.steps[2].graph
    assert recording.metrics["loss"].steps.tolist() == [0, 10, 20, 30, 40, 50]
    assert [(note.step, note.text) for note in recording.notes] == [(50, "done")]
    assert any(entry["address"] == "2" for entry in recording.modules["modules"])


def test_tables(recording: Any) -> None:
    table = recording.to_arrow()
    assert {"step", "node", "mean", "q50"} <= set(table.column_names)
    assert table.num_rows == sum(step.tensors for step in recording.steps)
    frame = recording.to_pandas()
    assert set(frame["step"]) == {0, 20, 40}
    expected = recording.series("0", "std").values
    chosen = frame[(frame["node"] == "0") & (frame["of"] == "value")]
    assert np.array_equal(chosen["std"].to_numpy(), expected)


def test_sql(recording: Any, root: Any) -> None:
    pytest.importorskip("duckdb")
    answer = recording.sql("select step, std from stats where node = '0' and \"of\" = 'value' order by step")
    assert [row[0] for row in answer.fetchall()] == [0, 20, 40]
    assert [row[1] for row in answer.fetchall()] == recording.series("0", "std").values.tolist()
    for table in ("stats", "samples", "metrics", "steps", "notes"):
        assert recording.sql(f"select count(*) from {table}").fetchall()[0][0] > 0
    both = endoscope.open(root).sql("select trial, count(*) from steps group by trial order by trial")
    assert both.fetchall() == [("one", 3), ("two", 3)]


def test_live(tmp_path: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with strict_run(tmp_path) as run:
        run.watch(model, optimizer)
        data = iter(batches(5))
        plain_step(model, optimizer, *next(data))
        run.flush()
        recording = endoscope.open(run.path)
        assert len(recording.steps) == 1
        plain_step(model, optimizer, *next(data))
        run.flush()
        assert len(recording.steps) == 1  # as of the last refresh
        assert recording.refresh()
        assert [step.number for step in recording.steps] == [0, 1]
        assert recording.series("0", "mean").steps.tolist() == [0, 1]
        assert not recording.refresh()


def test_reading_needs_no_torch(root: Any) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import endoscope\n"
        f"recording = endoscope.open({str(root / 'one')!r})\n"
        "assert recording.series('0', 'mean').values.shape == (3,)\n"
        "assert recording.tensor('0', 20).shape == (3, 8)\n"
        "assert recording.graph(20)['nodes'] and recording.verify()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_what_is_no_recording(tmp_path: Any) -> None:
    with pytest.raises(NotARecording, match="nothing at"):
        endoscope.open(tmp_path / "missing")


def command(*arguments: Any) -> Any:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "endoscope", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=environment)


def test_the_command_line(root: Any, tmp_path: Any) -> None:
    import json
    import shutil

    listed = command("ls", root)
    assert listed.returncode == 0 and "one" in listed.stdout and "two" in listed.stdout, listed.stderr
    asked = command("query", root, "select trial, count(*) as n from steps group by trial order by trial", "--json")
    assert asked.returncode == 0, asked.stderr
    assert [row["n"] for row in json.loads(asked.stdout)] == [3, 3]
    copy = tmp_path / "runs"
    shutil.copytree(root, copy)
    removed = command("rm", copy / "one", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert list(endoscope.open(copy)) == ["two"]

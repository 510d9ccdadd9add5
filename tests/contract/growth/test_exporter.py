"""An exporter of somebody's own: one function. `endoscope export` knows it as it knows its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet
import pytest

import endoscope
from endoscope import errors
from endoscope.query.exporters import export, exporter
from endoscope.schema.recording import TABLES
from tests.contract.growth.plug_in import install, run, train

PLUG_IN = '''
import json

from endoscope.query.exporters import exporter


@exporter("lines")
def lines(recording, folder):
    """One line of JSON for each tensor and step."""
    def read(steps):
        columns = recording.tables.columns("stats")
        for number, key in recording.tables.keys.by_number.items():
            found = columns.numbers("std", [number])
            for step, value in zip(steps.numbers_of(found.ordinals).tolist(), found.values.tolist()):
                yield {"node": key.node, "of": key.of, "step": step, "std": value}

    rows = recording.tables.steadily(lambda steps: list(read(steps)))
    (folder / "std.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
'''


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs"))


def test_one_of_a_plug_in(trial: Path, tmp_path: Path) -> None:
    command = ("-m", "endoscope", "export", str(trial.parent), "--to", "lines", "-o", str(tmp_path / "out"))
    done = run(install(tmp_path, PLUG_IN), *command)
    assert done.returncode == 0 and done.stdout.strip() == f"{tmp_path / 'out' / 'first'}: 1 files", done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out" / "first" / "std.jsonl").read_text().splitlines()]
    mine = {row["step"]: row["std"] for row in rows if row["node"] == "1" and row["of"] == "value"}
    series = endoscope.open(trial).series("1", "std")
    assert mine == dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))
    without = run(None, *command)
    assert without.returncode == 1 and "There is no format 'lines'" in without.stderr


def test_parquet_holds_every_table(trial: Path, tmp_path: Path) -> None:
    recording = endoscope.open(trial)
    files = export(recording, "parquet", tmp_path / "out")
    assert {file.stem for file in files} == set(TABLES)
    for file in files:
        assert pyarrow.parquet.read_table(file).to_pylist() == recording.to_arrow(file.stem).to_pylist()


def test_csv_holds_everything_but_lists(trial: Path, tmp_path: Path) -> None:
    recording = endoscope.open(trial)
    export(recording, "csv", tmp_path / "out")
    with (tmp_path / "out" / "stats.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = recording.to_arrow()
    assert "hist" not in rows[0] and {"node", "type", "q50"} <= set(rows[0])
    assert [row["node"] for row in rows] == table["node"].to_pylist()
    assert [float(row["max"]) for row in rows] == table["max"].to_pylist()


def test_nothing_is_overwritten(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(errors.BadArgument, match="is not empty, and nothing is overwritten"):
        export(endoscope.open(trial), "csv", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_exporter_says_what_it_writes() -> None:
    with pytest.raises(errors.BadArgument, match="a docstring that says what it writes"):
        exporter("silent")(lambda recording, folder: None)
